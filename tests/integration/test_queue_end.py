"""How a queue ends: shutdown, blocks, the end of the program."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import AgentTask, AttemptsStillAlive, Kind, ShuttingDown, TaskQueue, WouldDeadlock
from interlock.journal.reader import Reader


def test_shutdown_finishes_what_is_queued() -> None:
    queue = TaskQueue(1)
    order: list[int] = []
    futures = [
        queue.submit_task(AgentTask("a", "", [], lambda number=number: order.append(number)))
        for number in range(20)
    ]
    queue.shutdown()
    assert all(each.done() for each in futures)
    assert order == list(range(20))


def test_shutdown_without_waiting_cancels_what_is_queued_and_lets_what_runs_go_on() -> None:
    queue = TaskQueue(1)
    entered, let_go = threading.Event(), threading.Event()

    def agent() -> str:
        entered.set()
        assert let_go.wait(60)
        return "done"

    running = queue.submit_task(AgentTask("a", "", [], agent))
    assert entered.wait(60)
    queued = [queue.submit_task(AgentTask("b", "", [], int)) for _ in range(5)]
    queue.shutdown(wait=False)
    assert all(each.cancelled() for each in queued)
    assert not running.done()
    with pytest.raises(ShuttingDown):
        queue.submit_task(AgentTask("c", "", [], int))
    assert queue.get_status()["running_agents"] == ["a"]
    let_go.set()
    assert running.result() == "done"
    queue.shutdown()


def test_leaving_the_block_by_an_error_cancels_what_was_submitted() -> None:
    futures = []
    told = threading.Event()
    entered = threading.Event()

    def agent() -> None:
        entered.set()
        while not interlock.cancelled():
            pass
        told.set()

    with pytest.raises(LookupError), TaskQueue(1) as queue:
        futures = [queue.submit_task(AgentTask("a", "", [], agent)) for _ in range(3)]
        assert entered.wait(60)
        raise LookupError
    assert all(each.cancelled() for each in futures)
    assert told.is_set()


def test_a_task_that_will_not_stop_is_named() -> None:
    let_go, entered = threading.Event(), threading.Event()

    def agent() -> None:
        entered.set()
        assert let_go.wait(60)

    queue = TaskQueue(1, grace="10ms")
    future = queue.submit_task(AgentTask("stubborn", "", ["src/"], agent))
    assert entered.wait(60)
    future.cancel()
    with pytest.raises(AttemptsStillAlive, match="stubborn#1"):
        queue.shutdown()
    let_go.set()
    with TaskQueue() as other:  # which has the files when that one has ended
        assert other.submit_task(AgentTask("next", "", ["src/"], int)).result() == 0


def test_a_task_cannot_wait_for_the_end_of_its_own_queue() -> None:
    with TaskQueue() as queue:
        with pytest.raises(WouldDeadlock):
            queue.submit_task(AgentTask("a", "", [], queue.shutdown)).result()

        async def agent() -> None:
            queue.shutdown()

        with pytest.raises(WouldDeadlock):
            queue.submit_task(AgentTask("a", "", [], agent)).result()
        assert queue.submit_task(AgentTask("a", "", [], lambda: 1)).result() == 1


def test_a_task_may_shut_its_queue_down_without_waiting() -> None:
    queue = TaskQueue()
    future = queue.submit_task(AgentTask("a", "", [], lambda: queue.shutdown(wait=False)))
    assert future.result() is None
    queue.shutdown()


def test_an_agent_that_runs_out_of_memory_hurts_nobody_else() -> None:
    def agent() -> None:
        raise MemoryError("no more")

    queue = TaskQueue()
    bad = queue.submit_task(AgentTask("a", "", [], agent))
    good = queue.submit_task(AgentTask("b", "", [], lambda: 1))
    queue.shutdown()
    assert good.result() == 1
    assert isinstance(bad.exception(), MemoryError)


SCRIPT = """
import threading
from interlock import AgentTask, TaskQueue
queue = TaskQueue(1)
for number in range(5):
    queue.submit_task(AgentTask("a", "", [], lambda number=number: print(number, flush=True)))
"""


def test_a_program_that_submits_and_forgets_ends_when_its_work_is_done(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(interlock.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["0", "1", "2", "3", "4"]
    assert done.stderr == ""


def test_ten_thousand_tasks_of_sixteen_threads_are_neither_lost_nor_doubled() -> None:
    each_thread, threads = 625, 16
    ran: list[tuple[int, int]] = []  # appending is atomic
    futures: list[list[Any]] = [[] for _ in range(threads)]

    with TaskQueue(8) as queue:
        begin = threading.Barrier(threads)

        def submit(thread: int) -> None:
            begin.wait(60)
            for number in range(each_thread):
                item = (thread, number)

                def work(item: tuple[int, int] = item) -> tuple[int, int]:
                    ran.append(item)
                    return item

                task = AgentTask(f"type-{number % 24}", "", [], work)
                futures[thread].append(queue.submit_task(task))

        workers = [threading.Thread(target=submit, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(100)
        for thread, mine in enumerate(futures):
            concurrent.futures.wait(mine)
            assert [each.result() for each in mine] == [(thread, n) for n in range(each_thread)]
        status = queue.get_status()
        assert (status["queued_tasks"], status["running_agents"]) == (0, [])
        assert queue.runtime.progress().succeeded == each_thread * threads
    assert len(ran) == len(set(ran)) == each_thread * threads


def test_a_thread_that_submits_and_cancels_at_once_is_served_in_that_order() -> None:
    """Also while other threads keep the queue busy."""
    with TaskQueue(2) as queue:
        ends: list[str] = []

        def submit(number: int) -> None:
            for _ in range(50):
                future = queue.submit_task(AgentTask(f"t{number}", "", [], int))
                ends.append("cancelled" if future.cancel() else str(future.result()))

        workers = [threading.Thread(target=submit, args=(number,)) for number in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
    assert len(ends) == 400
    assert set(ends) <= {"cancelled", "0"}


def test_a_queue_with_a_journal_takes_up_what_was_done(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    ran: list[str] = []

    def work(name: str) -> AgentTask:
        return AgentTask(name, f"do {name}", [f"{name}.txt"], _doing(ran, name), id=name)

    with pytest.raises(LookupError), TaskQueue(journal=journal) as queue:
        assert queue.submit_task(work("a")).result() == "a"
        raise LookupError
    with TaskQueue(journal=journal, resume=True) as queue:
        futures = [queue.submit_task(work(name)) for name in ("a", "b")]
        assert [each.result() for each in futures] == ["a", "b"]
    assert ran == ["a", "b"]
    with Reader(journal) as reader:
        last = reader.last_run()
        assert last is not None
        told = [(event.kind, event.task_id) for event in reader.all_events(last)]
        assert (Kind.REUSED, "a") in told
        assert (Kind.SETTLED, "b") in told


def _doing(ran: list[str], name: str) -> Any:
    def work() -> str:
        ran.append(name)
        return name

    return work
