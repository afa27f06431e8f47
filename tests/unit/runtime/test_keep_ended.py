"""A run that lasts keeps the outcomes of so many tasks, and forgets older ones."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    DuplicateId,
    InvalidOption,
    Runtime,
    Task,
    TaskContext,
    UnknownDependency,
    UnknownTask,
)
from interlock.runtime import runtime, task_table


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


def _remembered(monkeypatch: pytest.MonkeyPatch, ids: int) -> None:
    monkeypatch.setattr(task_table, "REMEMBERED_IDS", ids)
    monkeypatch.setattr(runtime, "REMEMBERED_IDS", ids)


def test_after_long_an_id_is_free_again_and_cannot_be_depended_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _remembered(monkeypatch, 3)

    async def main() -> None:
        async with Runtime(max_outcomes=1) as rt:
            await rt.submit(number, 1, id="first")
            for each in range(3):
                await rt.submit(number, each)
            with pytest.raises(DuplicateId):
                rt.submit(number, 2, id="first")
            await rt.submit(number, 3)
            with pytest.raises(UnknownDependency, match=r"'first'.*or it ended long ago and was"):
                rt.submit(number, 2, after=["first"])
            with pytest.raises(UnknownTask, match=r"forgotten long ago \(max_outcomes is 1\)"):
                rt.handle("first")
            again = await rt.submit(number, 2, id="first")
            assert (again.succeeded, again.result) == (True, 2)
            assert rt.progress().succeeded == 6

    asyncio.run(main())


def test_a_key_returns_its_outcome_as_long_as_the_id_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _remembered(monkeypatch, 3)

    async def main() -> None:
        async with Runtime(max_outcomes=1) as rt:
            first = rt.submit(number, 1, id="first", key="k")
            await first
            for each in range(4):
                assert rt.submit(number, each, id=f"again-{each}", key="k") is first
                await rt.submit(number, each, id=f"other-{each}", key=f"other-{each}")
            last = rt.submit(number, 2, id="last", key="k")
            assert last is not first
            assert (await last).result == 2

    asyncio.run(main())


def test_with_a_journal_a_forgotten_key_finds_its_success_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _remembered(monkeypatch, 1)

    async def main() -> None:
        async with Runtime(max_outcomes=1, journal=tmp_path / "journal") as rt:
            await rt.submit(number, 1, id="first", key="k")
            for each in range(4):
                await rt.submit(number, each, id=f"other-{each}")
            again = rt.submit(number, 2, id="again", key="k")
            assert (await again).result == 1
            with pytest.raises(DuplicateId, match="'first' in this run, long ago; the journal"):
                rt.submit(number, 3, id="first")
            assert rt.fresh_id("first") == "first~2"

    asyncio.run(main())


def test_a_failed_dependency_is_not_taken_for_a_success_when_it_is_about_to_be_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _remembered(monkeypatch, 1)

    async def fail() -> None:
        raise ValueError

    async def main() -> None:
        async with Runtime(max_outcomes=1) as rt:
            await rt.submit(fail, id="failed")
            skipped = [Task(f"t{each}", number, args=(each,), after=["failed"]) for each in "abcd"]
            result = await rt.run(skipped)
            assert [each.status for each in result.outcomes] == ["skipped"] * 4

    asyncio.run(main())


def test_resuming_finds_what_unfinished_tasks_depend_on_among_many_ended_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _remembered(monkeypatch, 1)
    path, hangs = tmp_path / "journal", [True]

    async def hang() -> None:
        while hangs[0]:
            await asyncio.sleep(10)

    async def main() -> None:
        async with Runtime(max_outcomes=3, journal=path) as rt:
            await rt.submit(number, 1, id="first")
            rt.submit(hang, id="hangs")
            rt.submit(number, 3, id="after", after=["first", "hangs"])
            for each in range(9):
                await rt.submit(number, each, id=f"other-{each}")
            await rt.flush()
            rt._shell.suspend()  # as a signal does
        hangs[0] = False
        async with Runtime(max_outcomes=3, journal=path, resume=True) as rt:
            assert rt.unsubmitted == ("hangs", "after")
            await rt.submit(hang, id="hangs")
            assert (await rt.submit(number, 3, id="after", after=["first", "hangs"])).succeeded

    asyncio.run(main())


def test_a_handle_delivers_its_result_also_if_its_task_was_forgotten() -> None:
    async def both(first: int, second: int) -> int:
        return first + second

    async def waiting(ctx: TaskContext, done: list[str]) -> list[Any]:
        return [each.result for each in await ctx.wait_all([handles[each] for each in done])]

    handles: dict[str, Any] = {}

    async def main() -> None:
        async with Runtime(max_outcomes=1) as rt:
            go_on = asyncio.Event()

            async def slow() -> int:
                await go_on.wait()
                return 40

            handles["first"] = first = rt.submit(number, 2, id="first")
            blocked = rt.submit(both, first, rt.submit(slow, id="slow"), id="blocked")
            for each in range(5):
                await rt.submit(number, each)
            go_on.set()
            assert await blocked.result() == 42
            assert await rt.submit(both, first, 1).result() == 3
            assert [each.result for each in await rt.wait_all([first])] == [2]
            assert await rt.submit(waiting, ["first"]).result() == [2]

    asyncio.run(main())


def test_a_resumed_program_finds_the_keys_that_it_submitted_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _remembered(monkeypatch, 4)
    begun: list[int] = []

    async def count(of: int) -> int:
        begun.append(of)
        return of

    async def program(rt: Runtime) -> None:
        for each in (*range(20), *range(20)):  # some keys are known, others are forgotten
            assert (await rt.submit(count, each, key=f"k{each}")).result == each
        for each in range(5):
            assert (await rt.submit(count, 100 + each)).result == 100 + each
        assert not rt._shell.tasks.ids._given

    async def main() -> None:
        copy = tmp_path / "copy.db"
        async with Runtime(max_outcomes=2, journal=tmp_path / "j.db") as rt:
            await program(rt)
            for suffix in ("", "-wal"):  # as a kill at this moment would leave them
                shutil.copy(f"{tmp_path}/j.db{suffix}", f"{copy}{suffix}")
        assert len(begun) == 25
        async with Runtime(max_outcomes=2, journal=copy, resume=True) as rt:
            await program(rt)
        assert len(begun) == 25

    asyncio.run(main())
