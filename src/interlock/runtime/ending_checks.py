"""Checking how an attempt ended before the kernel is told: its value, its size, its rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from interlock.errors import AgentFailed, InvalidOption, UnknownResource
from interlock.execution.ending import Ending, raised
from interlock.model.command import Command
from interlock.model.outcome import ErrorRecord, State
from interlock.model.task import Task
from interlock.runtime.data import copied
from interlock.runtime.output import validated
from interlock.runtime.waitable import Waitable


def with_own_value(ending: Ending, task: Task) -> Ending:
    """The same ending with our own copy of its value, as the type that the task declares."""
    if ending.status is not State.SUCCEEDED:
        return ending
    if isinstance(ending.value, Waitable):
        what = ending.value.drop()
        return raised(AgentFailed(f"returned {what} without awaiting it", retryable=False))
    try:
        ending = validated(ending, task.output, printed=isinstance(task.agent, Command))
        return ending._replace(value=copied(ending.value))
    except RecursionError:
        return raised(InvalidOption("the result contains itself, or is nested too deeply"))
    except Exception as error:  # noqa: BLE001 - a stranger's data, or its validation, raised
        return raised(error)


def with_storable_value(ending: Ending, store: Callable[[Any, str], object]) -> Ending:
    """The ending, if `store` takes its value; or a failure that says what is in the way."""
    if ending.value is None:
        return ending
    try:
        store(ending.value, "result")
    except Exception as error:  # noqa: BLE001 - a stranger's data may raise anything
        return raised(error)._replace(error=ErrorRecord("NotStorable", str(error), "", False))
    return ending


def with_rate_held(ending: Ending, hold: Callable[[str, float], object]) -> Ending:
    """Make all users of the rate wait that a failure names; its error says if there is none."""
    assert ending.error is not None
    try:
        hold(ending.rate, ending.retry_after)
    except UnknownResource as error:
        said = f"{ending.error.message} ({error})"
        return ending._replace(error=replace(ending.error, message=said))
    return ending


def with_prefix(ending: Ending, prefix: str) -> Ending:
    """A failure whose message says first what was being done."""
    assert ending.error is not None
    message = f"{prefix}: {ending.error.message}"
    return ending._replace(error=replace(ending.error, message=message))
