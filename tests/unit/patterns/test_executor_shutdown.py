"""Ending what runs: refuse new tasks, give the running ones some time, clean up."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interlock import InvalidOption, ShutdownManager, ShutdownResult, ShuttingDown
from tests.unit.patterns.groups import (
    Engine,
    Watcher,
    assign,
    executor,
    group,
    played,
    resists,
    sleeps,
)


async def _shut_down(manager: ShutdownManager, *durations: float) -> ShutdownResult:
    """Shut down while tasks of these lengths run, named by them."""
    tasks = {str(each): asyncio.ensure_future(asyncio.sleep(each)) for each in durations}
    for name, task in tasks.items():
        manager.register_task(name, task)
    result = await manager.initiate_shutdown()
    assert all(each.done() for each in tasks.values())
    return result


def test_cooperative_lets_tasks_finish_within_the_grace_of_30_seconds() -> None:
    async def main() -> None:
        manager = ShutdownManager()
        assert not manager.is_shutting_down()
        result = await _shut_down(manager, 10, 29, 31, 99)
        assert (result.strategy, result.tasks_completed) == ("cooperative", 2)
        assert (result.tasks_interrupted, result.tasks_saved) == (2, 0)
        assert result.duration_seconds == pytest.approx(30)
        assert manager.is_shutting_down()

    played(main)


def test_immediate_cancels_at_once() -> None:
    async def main() -> None:
        result = await _shut_down(ShutdownManager("immediate"), 10, 20)
        assert (result.tasks_completed, result.tasks_interrupted) == (0, 2)
        assert result.duration_seconds == 0

    played(main)


def test_checkpoint_saves_each_task_before_it_is_cancelled() -> None:
    async def main() -> None:
        saved: list[str] = []

        async def save(task_id: str) -> None:
            assert not tasks[task_id].done()
            saved.append(task_id)
            if task_id == "b":
                raise OSError("disk full")

        tasks = {each: asyncio.ensure_future(asyncio.sleep(99)) for each in "abc"}
        manager = ShutdownManager("checkpoint", grace_seconds=5, save=save)
        for name, task in tasks.items():
            manager.register_task(name, task)
        result = await manager.initiate_shutdown()
        assert saved == ["a", "b", "c"]
        assert (result.tasks_saved, result.tasks_interrupted) == (2, 1)
        assert all(each.cancelled() for each in tasks.values())

    played(main)


async def _never_returns(task_id: str) -> None:
    await asyncio.Event().wait()


async def _ignores_cancellation(task_id: str) -> None:
    await resists(50)()


@pytest.mark.parametrize("save", [_never_returns, _ignores_cancellation])
def test_a_save_that_hangs_is_bounded(save: Callable[[str], Awaitable[None]]) -> None:
    async def main() -> None:
        async def one_hangs(task_id: str) -> None:
            if task_id == "b":
                await save(task_id)

        tasks = {each: asyncio.ensure_future(asyncio.sleep(99)) for each in "abc"}
        manager = ShutdownManager("checkpoint", grace_seconds=5, save=one_hangs, save_seconds=3)
        for name, task in tasks.items():
            manager.register_task(name, task)
        result = await manager.initiate_shutdown()
        assert (result.tasks_saved, result.tasks_interrupted) == (2, 1)
        assert result.duration_seconds == pytest.approx(8)
        assert all(each.cancelled() for each in tasks.values())
        await asyncio.sleep(60)

    played(main)


def test_a_blocking_save_that_hangs_is_bounded_too() -> None:
    released = threading.Event()

    def save(task_id: str) -> None:
        released.wait(30)

    async def main() -> None:
        manager = ShutdownManager("checkpoint", grace_seconds=0, save=save, save_seconds=0.1)
        task = asyncio.ensure_future(asyncio.sleep(99))
        manager.register_task("a", task)
        began = time.monotonic()
        result = await manager.initiate_shutdown()
        assert time.monotonic() - began < 5
        assert (result.tasks_saved, result.tasks_interrupted) == (0, 1)

    try:
        asyncio.run(main())
    finally:
        released.set()


def test_a_clean_up_that_ignores_its_cancellation_is_bounded() -> None:
    async def main() -> None:
        manager = ShutdownManager(cleanup_seconds=5)
        manager.register_cleanup(resists(50))
        result = await manager.initiate_shutdown()
        assert not result.cleanup_completed
        assert result.duration_seconds == pytest.approx(5)
        await asyncio.sleep(60)

    played(main)


def test_a_save_that_returns_false_has_not_saved() -> None:
    async def main() -> None:
        async def save(task_id: str) -> bool | None:
            return {"a": True, "b": False}.get(task_id)

        manager = ShutdownManager("checkpoint", grace_seconds=1, save=save)
        for each in "abc":
            manager.register_task(each, asyncio.ensure_future(asyncio.sleep(99)))
        result = await manager.initiate_shutdown()
        assert (result.tasks_saved, result.tasks_interrupted) == (2, 1)

    played(main)


def test_a_task_that_raised_or_was_cancelled_in_the_grace_is_not_completed() -> None:
    async def main() -> None:
        async def raises() -> None:
            await asyncio.sleep(1)
            raise OSError("disk")

        tasks = {
            "fine": asyncio.ensure_future(asyncio.sleep(1)),
            "failed": asyncio.ensure_future(raises()),
            "cancelled": asyncio.ensure_future(asyncio.sleep(9)),
            "slow": asyncio.ensure_future(asyncio.sleep(99)),
        }
        manager = ShutdownManager()
        for name, task in tasks.items():
            manager.register_task(name, task)
        asyncio.get_running_loop().call_later(2, tasks["cancelled"].cancel)
        result = await manager.initiate_shutdown()
        assert (result.tasks_completed, result.tasks_failed) == (1, 1)
        assert (result.tasks_saved, result.tasks_interrupted) == (0, 2)

    played(main)


def test_a_task_is_unregistered_outside_a_loop_too() -> None:
    manager = ShutdownManager()

    async def main() -> None:
        manager.register_task("a", asyncio.ensure_future(asyncio.sleep(0)))

    asyncio.run(main())
    manager.unregister_task("a")
    manager.unregister_task("never registered")

    async def end() -> ShutdownResult:
        return await manager.initiate_shutdown()

    assert asyncio.run(end()).tasks_completed == 0


def test_no_exception_of_a_shutdown_was_never_retrieved() -> None:
    complaints: list[str] = []

    async def fails_in(seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            raise OSError("disk")

    async def late() -> None:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            raise OSError("disk") from None

    async def save(task_id: str) -> None:
        try:
            await asyncio.sleep(9)
        finally:
            raise OSError("disk")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
        manager = ShutdownManager("checkpoint", grace_seconds=0.05, save=save, save_seconds=0.01)
        manager.register_task("early", asyncio.ensure_future(fails_in(0.01)))
        manager.register_task("cancelled", asyncio.ensure_future(fails_in(9)))
        manager.register_task("late", asyncio.ensure_future(late()))
        manager.register_cleanup(lambda: fails_in(0))
        result = await manager.initiate_shutdown()
        assert (result.tasks_failed, result.tasks_interrupted) == (1, 2)
        manager._tasks.clear()
        await asyncio.sleep(0.1)
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(main())
    gc.collect()
    assert complaints == []


def test_a_task_that_will_not_stop_is_named() -> None:
    async def main() -> None:
        stuck = asyncio.ensure_future(resists(50)())
        manager = ShutdownManager(grace_seconds=1)
        manager.register_task("stuck", stuck)
        await asyncio.sleep(0)
        assert (await manager.initiate_shutdown()).still_running == ("stuck",)
        await stuck

    played(main)


def test_while_it_drains_new_tasks_are_refused() -> None:
    async def main() -> None:
        manager = ShutdownManager()
        ending = asyncio.ensure_future(_shut_down(manager, 5))
        await asyncio.sleep(1)
        assert not ending.done()
        late = asyncio.ensure_future(asyncio.sleep(0))
        with pytest.raises(ShuttingDown, match="task 'late' was not started"):
            manager.register_task("late", late)
        await ending
        with pytest.raises(ShuttingDown):
            manager.register_task("late", late)
        await late

    played(main)


def test_a_task_that_was_unregistered_is_not_waited_for() -> None:
    async def main() -> None:
        manager = ShutdownManager()
        task = asyncio.ensure_future(asyncio.sleep(5))
        manager.register_task("a", task)
        manager.unregister_task("a")
        manager.unregister_task("never registered")
        assert (await manager.initiate_shutdown()).tasks_completed == 0
        await task

    played(main)


def test_two_tasks_with_one_id_are_both_known_until_each_unregisters_itself() -> None:
    async def main() -> None:
        manager = ShutdownManager()

        async def work(seconds: float) -> None:
            current = asyncio.current_task()
            assert current is not None
            manager.register_task("same", current)
            await asyncio.sleep(seconds)
            manager.unregister_task("same")

        tasks = [asyncio.ensure_future(work(each)) for each in (1, 9)]
        await asyncio.sleep(2)
        assert (await manager.initiate_shutdown()).tasks_completed == 1
        assert all(each.done() for each in tasks)

    played(main)


def test_clean_up_comes_last_in_order_and_one_that_fails_does_not_stop_the_next() -> None:
    async def main() -> None:
        done: list[str] = []
        manager = ShutdownManager()

        async def first() -> None:
            assert task.done()
            done.append("first")

        def second() -> None:
            done.append("second")
            raise OSError("no")

        async def third() -> None:
            done.append("third")

        for each in (first, second, third):
            manager.register_cleanup(each)
        task = asyncio.ensure_future(asyncio.sleep(2))
        manager.register_task("a", task)
        result = await manager.initiate_shutdown()
        assert done == ["first", "second", "third"]
        assert not result.cleanup_completed

    played(main)


def test_clean_up_has_a_time_of_its_own() -> None:
    async def main() -> None:
        manager = ShutdownManager(cleanup_seconds=5)
        manager.register_cleanup(sleeps(2))
        assert (await manager.initiate_shutdown()).cleanup_completed
        slow = ShutdownManager(cleanup_seconds=5)
        slow.register_cleanup(sleeps(9))
        result = await slow.initiate_shutdown()
        assert not result.cleanup_completed
        assert result.duration_seconds == pytest.approx(5)

    played(main)


def test_a_second_shutdown_is_the_first_one_and_who_gives_up_does_not_stop_it() -> None:
    async def main() -> None:
        manager = ShutdownManager()
        first = asyncio.ensure_future(_shut_down(manager, 5))
        await asyncio.sleep(1)
        impatient = asyncio.ensure_future(manager.initiate_shutdown())
        await asyncio.sleep(1)
        impatient.cancel()
        assert await manager.initiate_shutdown() is await first

    played(main)


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "brutal"},
        {"strategy": "checkpoint"},
        {"save": print},
        {"grace_seconds": -1},
        {"cleanup_seconds": "soon"},
        {"save_seconds": -1},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        ShutdownManager(**options)


# -- with an executor -----------------------------------------------------------------------


def test_tasks_that_a_shutdown_refuses_have_outcomes_and_count_in_progress() -> None:
    async def main() -> None:
        engine, watcher, manager = Engine(), Watcher(), ShutdownManager()
        ex = executor(engine, shutdown_manager=manager, progress_callback=watcher)
        these = [assign(each, sleeps(5)) for each in "abc"]
        running = asyncio.ensure_future(ex.execute_group(group(*these, max_concurrency=1)))
        await asyncio.sleep(1)
        shutdown = await manager.initiate_shutdown()
        assert shutdown.tasks_completed == 1
        result = await running
        assert engine.began == ["a"]
        assert [each.is_success for each in result.outcomes] == [True, False, False]
        assert [each.termination_reason for each in result.outcomes[1:]] == ["refused"] * 2
        assert result.outcomes[1].error is not None
        assert "a shutdown is in progress" in result.outcomes[1].error
        last = watcher.seen[-1]
        assert (last.completed, last.succeeded, last.failed) == (3, 1, 2)
        assert max(each.in_progress for each in watcher.seen) == 1
        refused = await ex.execute_group(group(assign("d")))
        assert refused.agents_failed == 1

    played(main)


def test_agents_that_a_shutdown_cancels_are_cancelled_and_nothing_stays_registered() -> None:
    async def main() -> None:
        manager = ShutdownManager(grace_seconds=3)
        ex = executor(shutdown_manager=manager)
        these = [assign("a", sleeps(2)), assign("b", sleeps(50), "b.py")]
        running = asyncio.ensure_future(ex.execute_group(group(*these)))
        await asyncio.sleep(1)
        shutdown = await manager.initiate_shutdown()
        assert (shutdown.tasks_completed, shutdown.tasks_interrupted) == (1, 1)
        assert [each.error for each in (await running).outcomes] == [None, "Cancelled"]

    played(main)


def test_whatever_becomes_of_an_agent_it_is_unregistered() -> None:
    class Noting(ShutdownManager):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def register_task(self, task_id: str, asyncio_task: asyncio.Task[Any]) -> None:
            super().register_task(task_id, asyncio_task)
            self.open.append(task_id)

        def unregister_task(self, task_id: str) -> None:
            super().unregister_task(task_id)
            self.open.remove(task_id)
            if task_id == "b":
                raise OSError("a manager that fails")

    async def main() -> None:
        manager = Noting()
        these = [assign("a"), assign("b"), assign("c", sleeps(9), timeout_seconds=2)]
        result = await executor(shutdown_manager=manager).execute_group(group(*these))
        assert [each.is_success for each in result.outcomes] == [True, True, False]
        assert manager.open == []

    played(main)
