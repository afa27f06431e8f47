"""Running tasks without async, also where an event loop is already running."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Iterable
from typing import Any

from interlock.model.duration import Duration
from interlock.model.result import RunResult
from interlock.model.task import Task
from interlock.runtime.runtime import Runtime


def run(
    tasks: Iterable[Task],
    max_parallel: int = 8,
    *,
    fail_fast: bool = False,
    deadline: Duration | None = None,
    **options: Any,
) -> RunResult:
    """Run tasks and wait for all of them; the options are those of `Runtime`.

    In a notebook, where a loop is running, it uses a loop in a thread of its own, and blocks
    the cell as any function does.
    """

    async def main() -> RunResult:
        async with Runtime(max_parallel, **options) as runtime:
            return await runtime.run(tasks, fail_fast=fail_fast, deadline=deadline)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main())
    return _in_a_thread(main())


def _in_a_thread(main: Any) -> RunResult:
    """Run a coroutine on a loop in another thread; an interrupt here cancels it there."""
    answer: concurrent.futures.Future[RunResult] = concurrent.futures.Future()
    started: concurrent.futures.Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]]
    started = concurrent.futures.Future()

    async def body() -> RunResult:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        result: RunResult = await main
        return result

    def work() -> None:
        try:
            answer.set_result(asyncio.run(body()))
        except BaseException as error:  # noqa: BLE001 - raised again, in the calling thread
            answer.set_exception(error)

    threading.Thread(target=work, name="interlock-run", daemon=True).start()
    loop, task = started.result()
    try:
        return answer.result()
    except KeyboardInterrupt:
        loop.call_soon_threadsafe(task.cancel)
        concurrent.futures.wait([answer])
        raise
