"""A further attempt of a parent submits its children again."""

from __future__ import annotations

import asyncio

from interlock import Retry, Runtime, Task, TaskContext


def test_a_further_attempt_does_not_run_again_the_children_that_succeeded() -> None:
    ran: list[str] = []

    async def child(name: str) -> str:
        ran.append(name)
        if ran.count(name) == 1 and name == "b":
            raise OSError("the first time")
        return name

    async def parent(ctx: TaskContext) -> list[str | None]:
        tasks = [Task("a", child, args=("a",)), Task("b", child, args=("b",), after="a")]
        result = await ctx.run(tasks)
        result.raise_for_failures()
        return [result["a"].result, result["b"].result]

    async def main() -> None:
        async with Runtime(max_parallel=1) as rt:
            outcome = await rt.submit(parent, retry=Retry(attempts=2, backoff=0))
            assert outcome.result == ["a", "b"]
            assert ran == ["a", "b", "b"]
            assert rt.handle("b").outcome is not None  # its first outcome stands
            assert rt.handle("b~2").done()

    asyncio.run(main())
