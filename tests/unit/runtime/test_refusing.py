"""Refusing tasks instead of letting them wait for a claim."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from interlock import (
    AttemptsStillAlive,
    InvalidOption,
    ResourceConflictError,
    Runtime,
    Task,
    TaskContext,
)
from interlock.testing.simulated_ports import simulated_ports
from tests.unit.execution.worlds import story


async def nap() -> None:
    await asyncio.sleep(1)


@story
async def test_a_claim_that_an_unfinished_task_has_is_refused_and_free_afterwards() -> None:
    async with Runtime(1, ports=simulated_ports()) as rt:
        running = rt.submit(nap, id="running", writes="src/")
        waiting = rt.submit(nap, id="waiting", uses="db!")
        again = [Task("a", nap, writes="src/a.py")]
        with pytest.raises(ResourceConflictError, match=r"'a' claims write src/a\.py.*'running'"):
            rt.submit_all(again, on_conflict="refuse")
        with pytest.raises(ResourceConflictError, match="'waiting'"):
            await rt.run([Task("b", nap, uses="db!")], on_conflict="refuse")
        await running
        assert (await rt.run(again, on_conflict="refuse")).all_succeeded
        await waiting
        assert len(rt.outcomes) == 3  # what was refused left nothing behind


@story
async def test_tasks_of_one_call_conflict_unless_they_come_after_each_other() -> None:
    async with Runtime(ports=simulated_ports()) as rt:
        first, second = Task("a", nap, writes="x"), Task("b", nap, writes="x")
        with pytest.raises(ResourceConflictError, match=r"'b' claims write x.*'a'"):
            rt.submit_all([first, second], on_conflict="refuse")
        chain = [first, Task("m", nap, after=["a"]), second.replace(after=("m",))]
        assert (await rt.run(chain, on_conflict="refuse")).all_succeeded


@story
async def test_a_child_may_claim_what_its_ancestors_hold_and_may_wait_for_amounts() -> None:
    async def parent(ctx: TaskContext) -> bool:
        children = [Task("c", nap, writes="x/a", uses="gpu"), Task("d", nap, uses="gpu")]
        return (await ctx.run(children, on_conflict="refuse")).all_succeeded

    async with Runtime(capacity={"gpu": 1}, ports=simulated_ports()) as rt:
        assert (await rt.submit(parent, writes="x/")).result is True


@story
async def test_what_an_attempt_was_granted_later_is_refused_as_well() -> None:
    async def wider(ctx: TaskContext) -> None:
        await ctx.extend(writes="y")
        await asyncio.sleep(1)

    async with Runtime(ports=simulated_ports()) as rt:
        running = rt.submit(wider, id="running", writes="x")
        await asyncio.sleep(0.5)
        with pytest.raises(ResourceConflictError, match=r"conflicts with write y of 'running'"):
            rt.submit_all([Task("a", nap, writes="y")], on_conflict="refuse")
        await running


@story
async def test_a_task_does_not_conflict_with_itself_under_its_key() -> None:
    async with Runtime(ports=simulated_ports()) as rt:
        task = Task("a", nap, key="k", writes="x")
        (first,) = rt.submit_all([task], on_conflict="refuse")
        assert rt.submit_all([task.replace(id="b")], on_conflict="refuse") == [first]
        await first


async def test_what_an_attempt_of_an_earlier_run_still_holds_is_refused(tmp_path: Path) -> None:
    begun, stuck = threading.Event(), threading.Event()

    def agent() -> None:
        begun.set()
        stuck.wait()

    with pytest.raises(AttemptsStillAlive):
        async with Runtime(workspace=tmp_path, grace=0.05) as rt:
            zombie = rt.submit(agent, id="zombie", writes="x")
            await asyncio.to_thread(begun.wait)
            zombie.cancel()
    async with Runtime(workspace=tmp_path) as rt:
        with pytest.raises(ResourceConflictError, match="write x of 'zombie of run"):
            rt.submit_all([Task("a", nap, writes="x")], on_conflict="refuse")
        stuck.set()


@story
async def test_any_other_word_is_refused() -> None:
    async with Runtime(ports=simulated_ports()) as rt:
        with pytest.raises(InvalidOption, match="on_conflict"):
            rt.submit_all([Task("a", nap)], on_conflict="fail")  # type: ignore[arg-type]
