"""Agents for every backend: plain functions of a module, so that a process finds them too."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn

from interlock.errors import AgentFailed
from interlock.model.outcome import ErrorRecord, Outcome, State

COLOUR: ContextVar[str] = ContextVar("colour", default="none")


def double(number: int) -> int:
    return 2 * number


def fail(text: str) -> NoReturn:
    raise ValueError(text)


def fail_for_good() -> NoReturn:
    raise AgentFailed("never", retryable=False, retry_after=7.0, rate="openai")


def leave(code: int) -> NoReturn:
    sys.exit(code)


def raise_group() -> NoReturn:
    raise BaseExceptionGroup("many", [ValueError("one"), KeyboardInterrupt("two")])


def raise_this(exception: BaseException) -> NoReturn:
    raise exception


def return_this(value: Any) -> Any:
    return value


def return_failed_outcome() -> Outcome[int]:
    return Outcome("other", State.FAILED, error=ErrorRecord("Bad", "it went wrong"))


async def _later() -> int:
    return 7


def hand_on_a_coroutine() -> Coroutine[Any, Any, int]:
    return _later()


def colour() -> str:
    return COLOUR.get()


def own_name() -> str:
    """What a stack dump would call it."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return threading.current_thread().name
    assert task is not None
    return task.get_name()


def announce(fifo: str) -> None:
    """Say that we run, and wait until that has been read."""
    Path(fifo).write_text(str(os.getpid()))


def wait(announced: str, released: str) -> str:
    """Block until the test says so."""
    announce(announced)
    return Path(released).read_text()


async def wait_on_the_loop(announced: str, released: str) -> str:
    announce(announced)
    await asyncio.Event().wait()
    return "never"


async def clean_up_slowly(announced: str, cleaned: list[str]) -> None:
    announce(announced)
    try:
        await asyncio.Event().wait()
    finally:
        for _ in range(10):
            await asyncio.sleep(0)
        cleaned.append("all of it")


async def swallow_cancellation(announced: str, times: int) -> str:
    announce(announced)
    for _ in range(times):
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    return "in the end"
