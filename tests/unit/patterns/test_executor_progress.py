"""What is told while a group goes on: counts that add up, and an event for everything."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Any

import pytest

from interlock import (
    PARALLEL_AGENT_CANCELLED,
    PARALLEL_AGENT_COMPLETE,
    PARALLEL_AGENT_ERROR,
    PARALLEL_AGENT_START,
    PARALLEL_GROUP_COMPLETE,
    PARALLEL_GROUP_START,
    PARALLEL_LOCK_ACQUIRED,
    PARALLEL_LOCK_RELEASED,
    PARALLEL_PROGRESS_UPDATE,
    ParallelProgress,
    ShutdownManager,
)
from interlock.patterns.executor import events as executor_events
from tests.unit.patterns.groups import (
    Engine,
    Watcher,
    assign,
    executor,
    group,
    played,
    raises,
    resists,
    sleeps,
)


def _told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    return [
        (each.getMessage(), getattr(each, "interlock", {}))
        for each in caplog.records
        if each.getMessage().startswith("execution.parallel.")
    ]


@pytest.mark.parametrize("seed", range(10))
def test_the_counts_add_up_at_every_callback_and_agree_with_the_result(seed: int) -> None:
    async def main() -> None:
        engine, watcher = Engine(), Watcher()

        def look(progress: ParallelProgress) -> None:
            watcher(progress)
            assert progress.in_progress <= 3
            # Whoever waits for a slot is pending, not in progress.
            assert progress.completed + progress.in_progress >= len(engine.ended)

        these = [
            assign("ok", sleeps(1)),
            assign("no", sleeps(2, False)),
            assign("error", raises(OSError())),
            assign("late", sleeps(50), timeout_seconds=2),
            assign("stuck", resists(20), timeout_seconds=2),
            *(assign(f"more{number}", sleeps(number)) for number in range(6)),
        ]
        ex = executor(engine, progress_callback=look, grace=5.0)
        result = await ex.execute_group(group(*these, max_concurrency=3))
        for before, after in zip(watcher.seen, watcher.seen[1:], strict=False):
            assert after.total == before.total == len(these)
            assert after.completed - before.completed in (0, 1)
            assert after.pending <= before.pending
        last = watcher.seen[-1]
        assert (last.completed, last.in_progress, last.pending) == (len(these), 0, 0)
        assert (last.succeeded, last.failed) == (result.agents_succeeded, result.agents_failed)
        await asyncio.sleep(60)
        assert watcher.seen[-1] is last  # who stops late is not told of twice

    played(main, seed)


def test_with_fail_fast_the_counts_agree_with_the_result_also_when_all_end_at_once() -> None:
    async def main() -> None:
        watcher = Watcher()
        these = [assign(str(number), sleeps(1, number != 3)) for number in range(8)]
        result = await executor(progress_callback=watcher).execute_group(
            group(*these, fail_fast=True)
        )
        last = watcher.seen[-1]
        assert (last.succeeded, last.failed) == (result.agents_succeeded, result.agents_failed)
        assert last.completed == 8

    for seed in range(20):
        played(main, seed)


def test_a_callback_that_raises_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def callback(progress: ParallelProgress) -> None:
        raise LookupError("the screen is gone")

    async def main() -> None:
        result = await executor(progress_callback=callback).execute_group(group(assign("a")))
        assert result.all_succeeded

    played(main)
    failed = [each for each in caplog.records if each.getMessage() == PARALLEL_PROGRESS_UPDATE]
    assert [each.levelno for each in failed] == [logging.ERROR, logging.ERROR]


def test_everything_that_happens_has_its_event(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        these = [
            assign("ok", None, "a.py"),
            assign("no", sleeps(1, False), "b.py"),
            assign("error", raises(OSError("disk"))),
            assign("late", sleeps(9), timeout_seconds=2),
        ]
        await executor(progress_callback=Watcher()).execute_group(group(*these))

    with caplog.at_level(logging.DEBUG, "interlock"):
        played(main)
    told = _told(caplog)
    assert Counter(event for event, _ in told) == {
        PARALLEL_LOCK_ACQUIRED: 2,
        PARALLEL_GROUP_START: 1,
        PARALLEL_AGENT_START: 4,
        PARALLEL_PROGRESS_UPDATE: 8,
        PARALLEL_AGENT_COMPLETE: 2,
        PARALLEL_AGENT_ERROR: 2,
        PARALLEL_LOCK_RELEASED: 2,
        PARALLEL_GROUP_COMPLETE: 1,
    }
    errors = {about["task_id"]: about["reason"] for event, about in told if "agent_error" in event}
    assert errors == {"error": "OSError: disk", "late": "Timed out after 2 s"}
    event, about = told[-1]
    assert event == PARALLEL_GROUP_COMPLETE
    assert (about["group_id"], about["succeeded"], about["failed"]) == ("g", 1, 3)


@pytest.mark.parametrize("how", ["fail fast", "the caller is cancelled", "a shutdown"])
def test_a_cancelled_agent_has_its_event_too(how: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        manager = ShutdownManager("immediate")
        first = assign("a", sleeps(2, how != "fail fast"))
        these = group(first, assign("b", sleeps(9)), assign("c", sleeps(9)), fail_fast=True)
        running = asyncio.ensure_future(executor(shutdown_manager=manager).execute_group(these))
        await asyncio.sleep(1)
        if how == "the caller is cancelled":
            running.cancel()
        elif how == "a shutdown":
            await manager.initiate_shutdown()
        await asyncio.wait([running])

    with caplog.at_level(logging.INFO, "interlock"):
        played(main)
    told = _told(caplog)
    cancelled = {about["task_id"] for event, about in told if event == PARALLEL_AGENT_CANCELLED}
    assert cancelled == ({"b", "c"} if how == "fail fast" else {"a", "b", "c"})
    assert told[-1][0] == PARALLEL_GROUP_COMPLETE


def test_the_names_of_the_events_are_those_people_know() -> None:
    names = [name for name in vars(executor_events) if name.startswith("PARALLEL_")]
    assert len(names) == 12
    for name in names:
        event = getattr(executor_events, name)
        assert event == f"execution.parallel.{name.removeprefix('PARALLEL_').lower()}"
