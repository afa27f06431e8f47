"""Data on its way into and out of tasks: copied, with results in place of handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock.runtime.handle import Handle


def copied(value: Any) -> Any:
    """A copy of plain data (nested lists, tuples, dicts, sets); other objects are not copied.

    The submitter of a list may go on using it, and two tasks that get the same result do not share
    it.
    """
    # Exact types: copying a subclass this way would turn it into its base class.
    kind = value.__class__
    if kind is list:
        return [copied(each) for each in value]
    if kind is dict:
        return {key: copied(each) for key, each in value.items()}
    if kind is tuple:
        return tuple(copied(each) for each in value) if value else value
    if kind is set:
        return set(value)
    if kind is bytearray:
        return bytearray(value)
    return value


def handles_in(value: Any, found: dict[str, Handle[Any] | None]) -> None:
    """Collect the handles in plain data, by id: their tasks are dependencies."""
    kind = value.__class__
    if kind is Handle:
        found[value.task_id] = value
    elif kind is list or kind is tuple or kind is set:
        for each in value:
            handles_in(each, found)
    elif kind is dict:
        for each in value.values():
            handles_in(each, found)


def delivered(value: Any, result_of: Callable[[Handle[Any]], Any]) -> Any:
    """A copy of plain data with results in place of handles."""
    kind = value.__class__
    if kind is Handle:
        return copied(result_of(value))
    if kind is list:
        return [delivered(each, result_of) for each in value]
    if kind is dict:
        return {key: delivered(each, result_of) for key, each in value.items()}
    if kind is tuple:
        return tuple(delivered(each, result_of) for each in value)
    if kind is set:
        return {delivered(each, result_of) for each in value}
    return copied(value)
