"""Running tasks without async code, even where an event loop is already running."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from interlock.model.duration import Duration
from interlock.model.result import RunResult
from interlock.model.task import Task
from interlock.runtime.hosting.host import RuntimeHost
from interlock.runtime.hosting.hosted_run import run_abandoning_zombies
from interlock.runtime.limits.options import MaxParallel
from interlock.runtime.runtime import Runtime


def run(
    tasks: Iterable[Task],
    max_parallel: MaxParallel = 8,
    *,
    fail_fast: bool = False,
    deadline: Duration | None = None,
    **options: Any,
) -> RunResult:
    """Run tasks and wait for all of them; the options are those of `Runtime`.

    Where an event loop is running already, as in a notebook, it uses another loop in a thread, and
    blocks like any function.
    """

    async def main() -> RunResult:
        async with Runtime(max_parallel, **options) as runtime:
            return await runtime.run(tasks, fail_fast=fail_fast, deadline=deadline)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_abandoning_zombies(main())
    with RuntimeHost(lambda: Runtime(max_parallel, **options)) as runtime:
        return runtime.run(tasks, fail_fast=fail_fast, deadline=deadline).wait()
