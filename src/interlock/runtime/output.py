"""Typed results: validating what an agent returned against `output=`."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from interlock.errors import InvalidOption
from interlock.execution.ending import Ending
from interlock.model.outcome import ErrorRecord, Outcome, State


def check_output(output: Any, task_id: str) -> None:
    """Raise if no result could be validated against this type."""
    if output is None:
        return
    try:
        if isinstance(output, str):
            # pydantic would take it for a forward reference, and fail at the first result.
            raise TypeError("a string is not a type")
        _adapter(output)
    except Exception as error:  # a type of the program may raise anything
        raise InvalidOption(
            f"task {task_id!r}: output is {output!r}, which results cannot be validated against: "
            f"{error}"
        ) from error


def validated(ending: Ending, output: Any, *, printed: bool = False) -> Ending:
    """The same ending with its value as that type, or a failure that says what does not fit.

    The output of a program is parsed as JSON, unless the type is `str`.
    """
    if output is None:
        return ending
    pydantic = _pydantic()
    try:
        if printed and output is not str:
            return ending._replace(value=_adapter(output).validate_json(ending.value))
        return ending._replace(value=_adapter(output).validate_python(ending.value))
    except pydantic.ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'result'}: {each['msg']}"
            for each in error.errors(include_url=False)
        )
        record = ErrorRecord(
            "InvalidOutput", f"the result is not a valid {_named(output)}: {problems}"
        )
        return Ending(State.FAILED, None, record, error)


def as_type(outcome: Outcome[Any], output: Any) -> Outcome[Any]:
    """An outcome from a journal with its result as that type; unchanged if it does not fit."""
    if output is None or outcome.result is None:
        return outcome
    try:
        return replace(outcome, result=_adapter(output).validate_python(outcome.result))
    except _pydantic().ValidationError:
        # The type may have changed since. The task succeeded all the same, and is not run again.
        return outcome


def _adapter(output: Any) -> Any:
    try:
        hash(output)
    except TypeError:  # such as Annotated[int, [1, 2]]
        return _pydantic().TypeAdapter(output)
    return _remembered(output)


# Building an adapter takes milliseconds, and many tasks share a few types.
@lru_cache(maxsize=256)
def _remembered(output: Any) -> Any:
    return _pydantic().TypeAdapter(output)


def _pydantic() -> Any:
    """Imported on first use: it takes longer than all of Interlock, and few tasks need it."""
    return import_module("pydantic")


def _named(output: Any) -> str:
    return output.__name__ if isinstance(output, type) else str(output)
