"""How an attempt ended, before the kernel decides what follows from it."""

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
    """A value, or an error; `fatal` if the error endangers this process itself."""

    status: State
    value: Any = None
    error: ErrorRecord | None = None
    exception: BaseException | None = None
    retry_after: float = 0.0
    fatal: bool = False
    rate: str = ""
    """The rate that no task may use within `retry_after`."""


def returned(value: Any) -> Ending:
    """Return the ending of an agent that returned; a returned failure is a failure."""
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
        value.close()  # otherwise Python warns later, at an unrelated place
        return raised(
            AgentFailed(
                f"returned the coroutine {value.__qualname__}() instead of a value, and nothing "
                "awaits it: submit the async function itself",
                retryable=False,
            )
        )
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return raised(
            AgentFailed(
                f"returned the generator {value.__qualname__}() instead of a value, and none of it "
                "has run: an agent returns its result, and does not yield",
                retryable=False,
            )
        )
    return Ending(State.SUCCEEDED, value)


def raised(exception: BaseException) -> Ending:
    """Return the ending of an agent that raised; any exception is the failure of its attempt."""
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
    """What an agent asks for, if that is a duration: the kernel gets no unchecked number."""
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
    """Describe an exception of an agent; its own methods may raise as well."""
    try:
        return str(describe(exception))
    except BaseException as broken:  # noqa: BLE001 - it is the agent's code
        return f"<{type(exception).__name__} that cannot be printed: {type(broken).__name__}>"
