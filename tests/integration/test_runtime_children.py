"""A parent that waits for its children never deadlocks."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from interlock import ChildWouldDeadlock, Runtime, State, Task, TaskContext, WouldDeadlock, current


async def nested(ctx: TaskContext, depth: int) -> int:
    """As deep as asked for, each level on the files of the one above."""
    if depth == 0:
        return 0
    return 1 + await ctx.submit(nested, depth - 1, writes="src/a.py").result()


def nested_in_threads(ctx: TaskContext, depth: int) -> int:
    if depth == 0:
        return 0
    outcome = ctx.submit(nested_in_threads, depth - 1, writes="src/a.py").wait()
    assert outcome.result is not None
    return 1 + outcome.result


@pytest.mark.parametrize("agent", [nested, nested_in_threads])
async def test_one_slot_is_enough_for_three_generations_on_the_same_file(agent: object) -> None:
    async with Runtime(max_parallel=1) as rt:
        outcome = await rt.submit(agent, 3, writes="src/**")  # type: ignore[call-overload]
        assert outcome.result == 3


@pytest.mark.parametrize("agent", [nested, nested_in_threads])
async def test_several_such_families_share_one_slot(agent: object) -> None:
    async with Runtime(max_parallel=1) as rt:
        result = await rt.run([Task(f"family-{i}", agent, args=(3,)) for i in range(4)])
        assert [each.result for each in result] == [3] * 4


async def test_children_that_wait_for_children_of_their_own_through_run_and_map() -> None:
    async def leaf(number: int) -> int:
        return number

    async def middle(ctx: TaskContext, number: int) -> int:
        outcomes = await ctx.map(leaf, range(number), writes="out/{item}.txt")
        return sum(each.result for each in outcomes if each.result is not None)

    async def root(ctx: TaskContext) -> list[int | None]:
        result = await ctx.run([Task(f"m{i}", middle, args=(i,)) for i in range(4)])
        return [each.result for each in result]

    async with Runtime(max_parallel=1) as rt:
        assert (await rt.submit(root, writes="out/")).result == [0, 0, 1, 3]


def test_children_write_the_parents_own_file_one_after_the_other(workspace: Path) -> None:
    file = workspace / "notes.txt"

    def append(line: str) -> None:
        before = file.read_text()
        file.write_text(before + line)

    def parent(ctx: TaskContext) -> None:
        file.write_text("title\n")
        outcomes = ctx.map(append, [f"line {i}\n" for i in range(10)], writes="notes.txt").wait()
        assert all(each.succeeded for each in outcomes)

    async def main() -> None:
        async with Runtime(max_parallel=4) as rt:
            assert (await rt.submit(parent, writes="notes.txt")).succeeded

    asyncio.run(main())
    assert sorted(file.read_text().splitlines()) == [*(f"line {i}" for i in range(10)), "title"]


async def test_a_parent_may_wait_for_several_handles_at_once() -> None:
    async def child(number: int) -> int:
        await asyncio.sleep(0)
        return number

    async def parent(ctx: TaskContext) -> int:
        first, second = ctx.submit(child, 1), ctx.submit(child, 2)
        async with asyncio.TaskGroup() as group:
            one = group.create_task(_result(first.result()))
            two = group.create_task(_result(second.result()))
        return one.result() + two.result()

    async def _result(wait: object) -> int:
        value: int = await wait  # type: ignore[misc]
        return value

    async with Runtime(max_parallel=1) as rt:
        assert (await rt.submit(parent)).result == 3


async def test_a_task_may_wait_for_one_that_is_not_its_child() -> None:
    async def other() -> str:
        return "other"

    async def waits() -> str:
        return str(await rt.handle("other").result())

    async with Runtime(max_parallel=1) as rt:
        waiting = rt.submit(waits, priority=1)
        rt.submit(other, id="other")
        assert (await waiting).result == "other"


async def test_two_tasks_that_wait_for_each_other_are_told() -> None:
    async def waits(ctx: TaskContext, for_whom: str) -> str:
        try:
            await rt.handle(for_whom)
        except WouldDeadlock:
            return "told"
        return "waited"

    async with Runtime() as rt:
        one = rt.submit(waits, "two", id="one")
        two = rt.submit(waits, "one", id="two")
        assert {(await one).result, (await two).result} == {"told", "waited"}


async def test_a_child_that_could_only_start_after_its_parent_is_refused() -> None:
    holding, go_on = asyncio.Event(), asyncio.Event()

    async def holds() -> None:
        holding.set()
        await go_on.wait()

    async def parent(ctx: TaskContext) -> str:
        await holding.wait()
        # `behind` comes after the parent itself, so a child cannot come after it.
        with pytest.raises(ChildWouldDeadlock):
            ctx.submit(lambda: None, after=["behind"])
        go_on.set()
        return "told"

    async with Runtime() as rt:
        rt.submit(holds)
        first = rt.submit(parent, id="parent")
        rt.submit(lambda: None, id="behind", after=["parent"])
        assert (await first).result == "told"


async def test_whoever_gives_up_waiting_has_its_slot_back_before_it_goes_on() -> None:
    running = 0
    go_on = asyncio.Event()

    async def child() -> None:
        nonlocal running
        running += 1
        await go_on.wait()
        running -= 1

    async def parent(ctx: TaskContext) -> int:
        handle = ctx.submit(child)
        try:
            await asyncio.wait_for(handle, 0.05)
        except TimeoutError:
            seen = running  # with one slot, the child cannot still be running
            await handle
            return seen
        return -1

    async with Runtime(max_parallel=1) as rt:
        waiting = rt.submit(parent)
        asyncio.get_running_loop().call_later(0.3, go_on.set)
        assert (await waiting).result == 0


def test_a_thread_that_gives_up_waiting_goes_on_with_its_slot() -> None:
    go_on = threading.Event()

    def child() -> str:
        assert go_on.wait(60)
        return "child"

    def parent(ctx: TaskContext) -> str:
        handle = ctx.submit(child)
        try:
            handle.wait(timeout=0.05)
        except TimeoutError:
            go_on.set()
        return str(handle.wait().result)

    async def main() -> None:
        async with Runtime(max_parallel=2) as rt:
            assert (await rt.submit(parent)).result == "child"

    asyncio.run(main())


async def test_children_end_with_their_parent() -> None:
    children = []

    async def parent(ctx: TaskContext) -> None:
        children.append(ctx.submit(asyncio.Event().wait))
        await asyncio.sleep(0)

    async with Runtime() as rt:
        assert (await rt.submit(parent)).succeeded
        outcome = await children[0]
        assert outcome.status is State.CANCELLED


async def test_cancelling_a_parent_cancels_three_generations() -> None:
    deepest = asyncio.Event()

    async def family(ctx: TaskContext, depth: int) -> None:
        if depth == 0:
            deepest.set()
            await asyncio.Event().wait()
        await ctx.submit(family, depth - 1)

    async with Runtime(max_parallel=1) as rt:
        root = rt.submit(family, 2)
        await deepest.wait()
        root.cancel()
        assert (await root).status is State.CANCELLED
    assert [each.status for each in rt.outcomes] == [State.CANCELLED] * 3


async def test_code_further_down_finds_the_context_of_its_own_task() -> None:
    def deep_down() -> str:
        return current().task.id

    async def parent() -> list[str]:
        mine = deep_down()
        childs = await current().submit(deep_down, id="child").result()
        return [mine, childs, deep_down()]

    async with Runtime() as rt:
        assert (await rt.submit(parent, id="parent")).result == ["parent", "child", "parent"]
