"""How an attempt ended, before anybody has decided what follows from it."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from typing import Any, NamedTuple

from interlock.errors import AgentFailed, InvalidOption
from interlock.model.duration import seconds
from interlock.model.outcome import ErrorRecord, Outcome, State

_LONGEST_TEXT = 20_000


class Ending(NamedTuple):
    """A value, or what went wrong; `fatal` when the process itself is in danger."""

    status: State
    value: Any = None
    error: ErrorRecord | None = None
    exception: BaseException | None = None
    retry_after: float = 0.0
    fatal: bool = False
    rate: str = ""
    """The rate that nobody is to use within `retry_after`."""


def returned(value: Any) -> Ending:
    """The ending of an agent that returned; failures that are returned are failures."""
    if isinstance(value, BaseException):
        return raised(value)
    if isinstance(value, Outcome):
        if value.status is not State.SUCCEEDED:
            error = value.error or ErrorRecord(
                "AgentFailed", f"returned an outcome: {value.reason}"
            )
            return Ending(State.FAILED, None, error, value.exception)
        return Ending(State.SUCCEEDED, value.result)
    if inspect.iscoroutine(value):
        value.close()  # or Python warns, at a place that has nothing to do with it
        return raised(
            AgentFailed(
                f"returned the coroutine {value.__qualname__}() instead of a value, and nobody "
                "awaits it: submit the async function itself",
                retryable=False,
            )
        )
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return raised(
            AgentFailed(
                f"returned the generator {value.__qualname__}() instead of a value, and nothing of "
                "it has run: an agent returns its result, and does not yield",
                retryable=False,
            )
        )
    return Ending(State.SUCCEEDED, value)


def raised(exception: BaseException) -> Ending:
    """The ending of an agent that raised; whatever it raised, it is this attempt's failure."""
    fatal = _is_fatal(exception)
    retryable, retry_after, rate = not fatal, 0.0, ""
    if isinstance(exception, AgentFailed):
        retryable, retry_after = bool(exception.retryable), _wait(exception.retry_after)
        rate = exception.rate if isinstance(exception.rate, str) else ""
    elif isinstance(exception, (SystemExit, KeyboardInterrupt)):
        retryable = False
    error = ErrorRecord(type(exception).__name__, _message(exception), _story(exception), retryable)
    return Ending(State.FAILED, None, error, exception, retry_after, fatal, rate)


def _wait(retry_after: Any) -> float:
    """What an agent asks for, if it makes sense; no number of a stranger gets to the kernel."""
    try:
        return seconds(retry_after)
    except InvalidOption:
        return 0.0


def _is_fatal(exception: BaseException) -> bool:
    if isinstance(exception, BaseExceptionGroup):
        return any(_is_fatal(each) for each in exception.exceptions)
    return isinstance(exception, (MemoryError, RecursionError))


def _message(exception: BaseException) -> str:
    if isinstance(exception, SystemExit):
        return f"the agent called sys.exit({exception.code!r})"
    if isinstance(exception, asyncio.CancelledError) and not exception.args:
        return "the agent was cancelled from inside"
    return _safely(str, exception)[:_LONGEST_TEXT]


def _story(exception: BaseException) -> str:
    return _safely(lambda each: "".join(traceback.format_exception(each)), exception)[
        -_LONGEST_TEXT:
    ]


def _safely(describe: Any, exception: BaseException) -> str:
    """Text about an exception of a stranger, whose own methods may raise anything as well."""
    try:
        return str(describe(exception))
    except BaseException as broken:  # noqa: BLE001 - it is the code of a stranger
        return f"<{type(exception).__name__} that cannot be printed: {type(broken).__name__}>"
