"""A blocking call from async code, on a thread that begins and ends with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


async def in_own_thread(call: Callable[[], T], name: str) -> T:
    """Call something that blocks, with the context variables of this task.

    A thread pool would not do: all its threads may be busy, and the call would begin later.
    Cancelling the caller takes effect at once; the thread cannot be killed and continues.
    """
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    context = copy_context()
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(context.run(call))
        except BaseException as error:  # noqa: BLE001 - raised again, in the waiting task
            errors.append(error)
        with suppress(RuntimeError):  # the loop was closed: there is no waiter any more
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=work, name=name, daemon=True).start()
    await over.wait()
    try:
        if errors:
            raise errors[0]
        return results[0]
    finally:
        errors.clear()  # or the error and this frame would keep each other alive
