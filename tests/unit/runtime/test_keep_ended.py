"""A run that lasts keeps the outcomes of so many tasks, and forgets older ones."""

from __future__ import annotations

import asyncio
import threading

import pytest

from interlock import DuplicateId, InvalidOption, Runtime, TaskContext, UnknownTask


async def number(of: int) -> int:
    return of


def test_only_the_latest_outcomes_are_kept_and_all_were_delivered() -> None:
    async def main() -> None:
        async with Runtime(max_outcomes=10) as rt:
            assert [each.result for each in await rt.map(number, range(50))] == list(range(50))
            assert [each.result for each in rt.outcomes] == list(range(40, 50))
            assert rt.progress().succeeded == 50

    asyncio.run(main())


def test_an_id_that_was_forgotten_stays_taken_and_can_be_depended_on() -> None:
    async def after(ctx: TaskContext) -> list[str]:
        return list(ctx.results)

    async def main() -> None:
        async with Runtime(max_outcomes=1) as rt:
            first = rt.submit(number, 1, id="first")
            await first
            await rt.submit(number, 2, id="second")
            assert first.outcome is not None  # a handle keeps what it has
            with pytest.raises(UnknownTask, match="'first' has ended and was forgotten"):
                rt.handle("first")
            with pytest.raises(DuplicateId):
                rt.submit(number, 3, id="first")
            assert (await rt.submit(after, after=["first"])).result == []

    asyncio.run(main())


def test_what_still_runs_is_not_forgotten() -> None:
    stuck = threading.Event()

    async def main() -> None:
        async with Runtime(max_outcomes=1, grace=0.1) as rt:
            zombie = rt.submit(stuck.wait, id="zombie", writes="x", timeout=0.01)
            await zombie
            for each in range(5):
                await rt.submit(number, each)
            assert [each.task_id for each in rt.running()] == ["zombie"]
            assert rt.handle("zombie") is zombie
            stuck.set()

    asyncio.run(main())


@pytest.mark.parametrize("wrong", [0, -1, True, "3", 1.5])
def test_it_is_a_number_of_tasks(wrong: object) -> None:
    with pytest.raises(InvalidOption, match="max_outcomes is"):
        Runtime(max_outcomes=wrong)  # type: ignore[arg-type]
