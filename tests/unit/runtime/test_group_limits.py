"""How many tasks of one submission may run at once."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from interlock import InvalidOption, Retry, Runtime, Task, TaskContext, UnknownDependency
from interlock.testing.simulated_ports import simulated_ports
from tests.unit.execution.worlds import story


class Crowd:
    """Counts how many are inside at once."""

    def __init__(self) -> None:
        self.inside = self.most = 0

    async def __call__(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(1)
        self.inside -= 1


@story
async def test_no_more_of_a_group_run_at_once_than_it_allows() -> None:
    first, second = Crowd(), Crowd()
    async with Runtime(8, ports=simulated_ports()) as rt:
        handles = rt.submit_all([Task(f"a{n}", first) for n in range(6)], max_parallel=2)
        await rt.run([Task(f"b{n}", second) for n in range(6)], max_parallel=3, name="b")
        for each in handles:
            await each
    assert (first.most, second.most) == (2, 3)


@story
async def test_why_names_the_limit_of_the_group() -> None:
    async def agent(ctx: TaskContext) -> None:
        await ctx.sleep(1)

    async with Runtime(8, ports=simulated_ports()) as rt:
        _, waiting = rt.submit_all(
            [Task("a", agent), Task("b", agent)], max_parallel=1, name="sprint"
        )
        await asyncio.sleep(0.5)
        assert "slots of sprint" in str(rt.why(waiting))


@pytest.mark.parametrize("wrong", [0, True, "2"])
@story
async def test_a_limit_that_is_no_number_is_refused(wrong: object) -> None:
    async with Runtime(ports=simulated_ports()) as rt:
        with pytest.raises(InvalidOption, match="max_parallel"):
            rt.submit_all([Task("a", abs), Task("b", abs)], max_parallel=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [1, 2, 9, None])
async def test_a_group_without_a_name_is_resumed_in_any_order_and_with_any_limit(
    most: int | None, tmp_path: Path
) -> None:
    begun: list[str] = []

    async def agent(ctx: TaskContext) -> None:
        begun.append(ctx.task.id)

    def tasks(name: str) -> list[Task]:
        return [Task(f"{name}{n}", agent, writes=f"{name}{n}") for n in range(3)]

    copy = tmp_path / "copy.db"
    async with Runtime(journal=tmp_path / "j.db") as rt:
        await rt.run(tasks("a"), max_parallel=2)
        await rt.run(tasks("b"), max_parallel=2)
        for suffix in ("", "-wal"):  # as a kill at this moment would leave them
            shutil.copy(f"{tmp_path}/j.db{suffix}", f"{copy}{suffix}")
    assert len(begun) == 6
    async with Runtime(journal=copy, resume=True) as rt:
        assert (await rt.run(tasks("b"), max_parallel=most)).all_succeeded
        assert (await rt.run(tasks("a"), max_parallel=most)).all_succeeded
    assert len(begun) == 6


@story
async def test_a_name_can_be_used_again_and_each_group_has_a_limit_of_its_own() -> None:
    first, second = Crowd(), Crowd()
    async with Runtime(8, ports=simulated_ports()) as rt:
        handles = rt.submit_all([Task(f"a{n}", first) for n in range(6)], max_parallel=2, name="n")
        await rt.run([Task(f"b{n}", second) for n in range(6)], max_parallel=3, name="n")
        for each in handles:
            await each
    assert (first.most, second.most) == (2, 3)


@story
async def test_what_was_rejected_with_a_name_can_be_submitted_again_with_it() -> None:
    crowd = Crowd()
    async with Runtime(8, ports=simulated_ports()) as rt:
        tasks = [Task(f"a{n}", crowd) for n in range(3)]
        with pytest.raises(UnknownDependency):
            await rt.run([*tasks, Task("b", crowd, after=["nothing"])], max_parallel=1, name="n")
        assert (await rt.run(tasks, max_parallel=1, name="n")).all_succeeded
    assert crowd.most == 1


@story
async def test_a_parent_that_is_tried_again_limits_its_children_again() -> None:
    async def parent(ctx: TaskContext) -> bool:
        children = [Task(f"c{n}", Crowd()) for n in range(3)]
        result = await ctx.run(children, max_parallel=1, name="children")
        if ctx.attempt == 1:
            raise OSError("not yet")
        return result.all_succeeded

    async with Runtime(8, ports=simulated_ports()) as rt:
        outcome = await rt.submit(parent, retry=Retry(2, backoff=0))
        assert outcome.result is True, outcome.error
