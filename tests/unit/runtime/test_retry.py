"""Running tasks again that did not succeed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from interlock import InvalidOption, Runtime, State, Task, TaskContext, UnknownTask
from interlock.testing.simulated_ports import simulated_ports
from tests.unit.execution.worlds import story


class Flaky:
    """Fails the first so many times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    async def run(self, ctx: TaskContext) -> str:
        self.failures -= 1
        if self.failures >= 0:
            raise OSError("not yet")
        return ctx.task.id


@story
async def test_a_task_is_retried_with_all_that_was_skipped_because_of_it() -> None:
    async with Runtime(ports=simulated_ports()) as rt:
        await rt.run(
            [
                Task("c", Flaky(0), after=["b"]),
                Task("b", Flaky(0), after=["a"]),
                Task("a", Flaky(2)),
                Task("other", Flaky(0)),
            ]
        )
        again = rt.retry("a")
        assert {old: each.task_id for old, each in again.items()} == {
            "a": "a~2",
            "b": "b~2",
            "c": "c~2",
        }
        assert (await again["c"]).status is State.SKIPPED
        third = rt.retry(again["a"])
        assert (await third["c~2"]).result == "c~3"
        assert rt.handle("a").state is State.FAILED  # the first outcome stands


@story
async def test_what_cannot_be_retried_is_refused_with_the_reason() -> None:
    async with Runtime(ports=simulated_ports()) as rt:
        failed = rt.submit(Flaky(2), id="failed")
        taking = rt.submit(lambda value: value, failed, id="taking")
        done = rt.submit(Flaky(0), id="done")
        waiting = rt.submit(Flaky(0), id="waiting")
        for handle, why in ((waiting, "has not ended"), (failed, "has not ended")):
            with pytest.raises(InvalidOption, match=why):
                rt.retry(handle)
        for handle in (failed, taking, done):
            await handle
        with pytest.raises(InvalidOption, match="succeeded; what succeeded is never run again"):
            rt.retry(done)
        with pytest.raises(InvalidOption, match="taking has the handle of failed"):
            rt.retry(failed)
        with pytest.raises(UnknownTask):
            rt.retry("nothing")


@story
async def test_a_task_that_was_retried_is_retried_by_its_last_follow_up() -> None:
    async with Runtime(ports=simulated_ports()) as rt:
        await rt.submit(Flaky(1), id="a")
        follow_up = rt.retry("a")["a"]
        with pytest.raises(InvalidOption, match="has been retried as a~2"):
            rt.retry("a")
        assert (await follow_up).succeeded


async def test_a_resumed_program_that_retries_again_finds_its_follow_ups(tmp_path: Path) -> None:
    begun: list[str] = []

    async def agent(ctx: TaskContext) -> str:
        begun.append(ctx.task.id)
        if ctx.task.id in ("a", "a~2"):
            raise OSError("not yet")
        return ctx.task.id

    async def program(rt: Runtime) -> list[State]:
        await rt.run([Task("a", agent), Task("b", agent, after=["a"])])
        second = rt.retry("a")
        await second["b"]
        third = rt.retry("a~2")
        return [(await third[each]).status for each in third]

    copy = tmp_path / "copy.db"
    async with Runtime(journal=tmp_path / "j.db") as rt:
        assert await program(rt) == [State.SUCCEEDED, State.SUCCEEDED]
        for suffix in ("", "-wal"):  # as a kill at this moment would leave them
            shutil.copy(f"{tmp_path}/j.db{suffix}", f"{copy}{suffix}")
    assert begun == ["a", "a~2", "a~3", "b~3"]
    async with Runtime(journal=copy, resume=True) as rt:
        assert await program(rt) == [State.SUCCEEDED, State.SUCCEEDED]
        with pytest.raises(InvalidOption, match="has been retried as a~3"):
            rt.retry("a")
    assert begun == ["a", "a~2", "a~3", "b~3"]  # nothing runs twice
