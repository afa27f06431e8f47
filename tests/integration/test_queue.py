"""TaskQueue with real threads: what may start, in which order, and how it ends."""

from __future__ import annotations

import concurrent.futures
import re
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import (
    AgentTask,
    DependencyCycle,
    DuplicateId,
    InvalidOption,
    InvalidPattern,
    NotAnAgent,
    Retry,
    ShuttingDown,
    TaskContext,
    TaskFailed,
    TaskQueue,
    UnknownDependency,
    WouldDeadlock,
)


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[TaskQueue]:
    with TaskQueue(workspace=tmp_path) as made:
        yield made


class Gate:
    """An agent that is there until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_go = threading.Event()

    def __call__(self) -> str:
        self.entered.set()
        assert self.let_go.wait(60)
        return "done"

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go.set()


def held(queue: TaskQueue, gate: Gate, agent_type: str = "holder", *files: str) -> Any:
    """Have a gate run in the queue."""
    future = queue.submit_task(AgentTask(agent_type, "hold", files, gate))
    assert gate.entered.wait(60)
    return future


def test_a_task_is_submitted_and_its_result_fetched_without_an_event_loop(
    queue: TaskQueue,
) -> None:
    future = queue.submit_task(AgentTask("architect", "write the spec", ["docs/a.md"], lambda: 42))
    assert isinstance(future, concurrent.futures.Future)
    assert future.result() == 42
    assert future.done()
    assert not future.running()


def test_the_original_exception_comes_out_of_result(queue: TaskQueue) -> None:
    error = LookupError("where is it?")

    def fails() -> None:
        raise error

    future = queue.submit_task(AgentTask("architect", "", [], fails))
    with pytest.raises(LookupError) as caught:
        future.result()
    assert caught.value is error
    assert future.exception() is error
    assert queue.submit_task(AgentTask("architect", "", [], lambda: 1)).result() == 1


def test_the_description_is_the_prompt_and_async_agents_run_too(queue: TaskQueue) -> None:
    async def agent(ctx: TaskContext) -> str | None:
        return ctx.prompt

    assert queue.submit_task(AgentTask("a", "write the spec", [], agent)).result() == (
        "write the spec"
    )


def test_one_task_of_an_agent_type_runs_at_a_time(queue: TaskQueue) -> None:
    with Gate() as gate:
        first = held(queue, gate, "architect")
        second = queue.submit_task(AgentTask("architect", "", [], lambda: 2))
        assert queue.get_status()["running_agents"] == ["architect"]
        assert not second.done()
        assert str(second.why()).startswith("architect#2 has been waiting")
        assert "architect#1 has held agent architect!" in str(second.why())
    assert (first.result(), second.result()) == ("done", 2)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("src/a.py", "src/a.py"),
        ("src/a.py", "./src//x/../a.py"),
        ("src/a.py", "src/*.py"),
        ("src/**", "src/deep/er/a.py"),
        ("src/", "src/a.py"),
        ("link/a.py", "src/a.py"),
        ("src", "src/a.py"),
    ],
)
def test_tasks_whose_files_overlap_wait_for_each_other(
    mine: str, theirs: str, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("src")
    with TaskQueue(workspace=tmp_path) as queue, Gate() as gate:
        held(queue, gate, "a", mine)
        absolute = str(tmp_path / theirs)
        waiting = [
            queue.submit_task(AgentTask(f"b{number}", "", [file], int))
            for number, file in enumerate((theirs, absolute))
        ]
        assert queue.get_status()["queued_tasks"] == 2
        gate.let_go.set()
        assert [each.result() for each in waiting] == [0, 0]


def test_tasks_that_read_only_or_touch_other_files_run_beside(queue: TaskQueue) -> None:
    with Gate() as gate:
        held(queue, gate, "a", "src/")
        assert queue.submit_task(AgentTask("b", "", [], lambda: 1)).result() == 1
        assert queue.submit_task(AgentTask("c", "", ["docs/"], lambda: 2)).result() == 2
        reader = queue.submit_task(AgentTask("d", "", [], lambda: 3, reads="src/x"))
        assert queue.get_status()["queued_tasks"] == 1
    assert reader.result() == 3


def test_no_more_than_max_parallel_run_at_once(tmp_path: Path) -> None:
    with TaskQueue(2, workspace=tmp_path) as queue, Gate() as one, Gate() as two:
        held(queue, one, "a")
        held(queue, two, "b")
        third = queue.submit_task(AgentTask("c", "", [], int))
        status = queue.get_status()
        assert status["running_agents"] == ["a", "b"]
        assert status["queued_tasks"] == 1
        assert "all 2 slots are busy" in status["tasks"][-1]["waits_for"][0]
        two.let_go.set()
        assert third.result() == 0


def test_above_its_gate_a_queue_runs_one_task_at_a_time_and_says_why(tmp_path: Path) -> None:
    # Some memory is always in use, so this gate is never open.
    with TaskQueue(workspace=tmp_path, max_memory_percent=0.01) as queue, Gate() as gate:
        held(queue, gate, "a")  # which starts, as nothing runs
        second = queue.submit_task(AgentTask("b", "", [], lambda: 2))
        [reason] = queue.get_status()["tasks"][1]["waits_for"]
        assert "memory" in reason
        assert queue.get_status()["running_agents"] == ["a"]
        gate.let_go.set()
        assert second.result() == 2
    with pytest.raises(InvalidOption, match="cpu"):
        TaskQueue(max_cpu_percent=101)


def test_below_its_gate_a_queue_runs_as_many_as_ever(tmp_path: Path) -> None:
    with TaskQueue(workspace=tmp_path, max_memory_percent=100) as queue, Gate() as gate:
        held(queue, gate, "a")
        assert queue.submit_task(AgentTask("b", "", [], lambda: 2)).result() == 2


def test_the_status_tells_how_busy_the_machine_is(queue: TaskQueue) -> None:
    status = queue.get_status()
    assert re.fullmatch(r"\d+\.\d of \d+ GB", status["memory"])
    while (cpu := queue.get_status()["cpu"]) is None:
        pass  # it takes a tenth of a second to measure
    assert re.fullmatch(r"\d+ %", cpu)


def test_an_unrelated_task_starts_at_once_behind_a_hundred_that_wait(queue: TaskQueue) -> None:
    with Gate() as gate:
        held(queue, gate, "holder", "src/")
        before = threading.active_count()
        waiting = [
            queue.submit_task(AgentTask(f"w{number}", "", [f"src/{number}"], int))
            for number in range(100)
        ]
        unrelated = queue.submit_task(AgentTask("unrelated", "", ["docs/"], lambda: "at once"))
        assert unrelated.result() == "at once"  # while the holder still runs
        assert queue.get_status()["queued_tasks"] == 100
        assert threading.active_count() <= before + 1  # they wait without a thread
        assert not any(each.done() for each in waiting)
    assert [each.result() for each in waiting] == [0] * 100


def order_of_starts(queue: TaskQueue, tasks: list[tuple[str, int]]) -> list[str]:
    """The order in which tasks of these priorities start when the slot becomes free."""
    order: list[str] = []
    with Gate() as gate:
        held(queue, gate)
        futures = [
            queue.submit_task(
                AgentTask(
                    name, "", [f"{name}-{n}" for n in range(len(name))], _note(order, name), p
                )
            )
            for name, p in tasks
        ]
    concurrent.futures.wait(futures)
    return order


def _note(order: list[str], name: str) -> Callable[[], None]:
    return lambda: order.append(name)


def test_equals_start_first_in_first_out_whatever_they_claim(tmp_path: Path) -> None:
    names = ["b", "aaaa", "cc", "d" * 9, "e", "ff"]
    with TaskQueue(1, workspace=tmp_path) as queue:
        assert order_of_starts(queue, [(name, 0) for name in names]) == names


def test_higher_priority_starts_first(tmp_path: Path) -> None:
    with TaskQueue(1, workspace=tmp_path) as queue:
        tasks = [("low", -1), ("a", 0), ("b", 0), ("high", 7), ("d", 2), ("e", 1), ("f", 3)]
        assert order_of_starts(queue, tasks) == ["high", "f", "d", "e", "a", "b", "low"]


def test_a_task_comes_after_those_it_names_by_id_or_future(queue: TaskQueue) -> None:
    with Gate() as gate:
        first = held(queue, gate, "a")
        second = queue.submit_task(AgentTask("b", "", [], lambda: 2, after=[first], id="second"))
        third = queue.submit_task(AgentTask("c", "", [], lambda: 3, after="second"))
        assert queue.get_status()["queued_tasks"] == 2
        assert "depends on second" in str(third.why())
    assert (second.result(), third.result()) == (2, 3)


def test_what_comes_after_a_failure_is_not_run(queue: TaskQueue) -> None:
    failed = queue.submit_task(AgentTask("a", "", [], int, id="first", attempts=1))
    assert failed.result() == 0

    def fails() -> None:
        raise LookupError

    failed = queue.submit_task(AgentTask("a", "", [], fails, id="broken"))
    skipped = queue.submit_task(AgentTask("b", "", [], lambda: ran.append(1), after=[failed]))
    ran: list[int] = []
    with pytest.raises(TaskFailed, match="skipped"):
        skipped.result()
    assert ran == []


def test_attempts_are_made_until_one_succeeds(queue: TaskQueue) -> None:
    tries: list[int] = []

    def third_time_lucky(ctx: TaskContext) -> str:
        tries.append(ctx.attempt)
        if ctx.attempt < 3:
            raise LookupError
        return "at last"

    task = AgentTask("a", "", [], third_time_lucky, attempts=3, backoff="1ms")
    assert queue.submit_task(task).result() == "at last"
    assert tries == [1, 2, 3]


def test_a_timeout_answers_at_once_and_the_files_stay_held_until_the_thread_ends(
    queue: TaskQueue,
) -> None:
    with Gate() as gate:
        task = AgentTask("a", "", ["src/"], gate, timeout="10ms")
        late = queue.submit_task(task)
        with pytest.raises(TimeoutError, match="timeout"):
            late.result()
        assert late.done()
        waiting = queue.submit_task(AgentTask("b", "", ["src/x"], lambda: 1))
        status = queue.get_status()
        assert status["running_agents"] == ["a"]
        assert status["running_files"] == ["src/"]
        assert status["tasks"][0]["state"] == "stopping"
        assert "was told to stop and has not exited" in status["tasks"][1]["waits_for"][0]
        assert not waiting.done()
    assert waiting.result() == 1


def test_a_queued_task_is_cancelled_through_its_future(queue: TaskQueue) -> None:
    ran: list[int] = []
    with Gate() as gate:
        held(queue, gate, "a")
        queued = queue.submit_task(AgentTask("a", "", [], lambda: ran.append(1)))
        assert queued.cancel()
        assert queued.cancelled()
        assert queued.cancel()  # as often as you like
        with pytest.raises(concurrent.futures.CancelledError):
            queued.result()
        assert queue.get_status()["queued_tasks"] == 0
        assert concurrent.futures.wait([queued], timeout=60).done == {queued}
    queue.shutdown()
    assert ran == []


def test_a_running_task_is_cancelled_through_its_future_and_told_to_stop(
    queue: TaskQueue,
) -> None:
    entered, told = threading.Event(), threading.Event()

    def agent() -> None:
        entered.set()
        while not interlock.cancelled():
            pass
        told.set()

    future = queue.submit_task(AgentTask("a", "", [], agent))
    assert entered.wait(60)
    assert future.running()
    assert future.cancel()
    assert future.cancelled()
    assert told.wait(60)


def test_what_has_ended_cannot_be_cancelled(queue: TaskQueue) -> None:
    future = queue.submit_task(AgentTask("a", "", [], lambda: 1))
    assert future.result() == 1
    assert not future.cancel()
    assert future.result() == 1
    assert future.why() is None


def test_the_status_is_up_to_date_when_a_future_resolves(queue: TaskQueue) -> None:
    for _ in range(50):
        queue.submit_task(AgentTask("a", "", ["f"], int)).result()
        status = queue.get_status()
        assert (status["running_agents"], status["running_files"]) == ([], [])
        assert status["queued_tasks"] == 0
        assert status["tasks"] == []


def test_the_status_names_each_task_with_its_files_and_what_it_waits_for(
    queue: TaskQueue,
) -> None:
    with Gate() as gate:
        held(queue, gate, "architect", "docs/spec.md")
        queue.submit_task(AgentTask("developer", "implement it", ["docs/", "src/"], int))
        status = queue.get_status()
    assert status["running_agents"] == ["architect"]
    assert status["running_files"] == ["docs/spec.md"]
    assert status["queued_tasks"] == 1
    running, waiting = status["tasks"]
    assert (running["id"], running["state"]) == ("architect#1", "running")
    assert (waiting["id"], waiting["state"]) == ("developer#1", "waiting")
    assert waiting["description"] == "implement it"
    assert waiting["files"] == ["docs/", "src/"]
    assert waiting["waits_for"][0].startswith("architect#1 has held write docs/spec.md")


def test_what_is_wrong_with_a_task_raises_at_once_and_queues_nothing(queue: TaskQueue) -> None:
    wrong: list[tuple[type[Exception], Callable[[], AgentTask]]] = [
        (InvalidPattern, lambda: AgentTask("a", "", ["src/["], int)),
        (interlock.ClaimOutsideWorkspace, lambda: AgentTask("a", "", ["../x"], int)),
        (NotAnAgent, lambda: AgentTask("a", "", [], 42)),
        (UnknownDependency, lambda: AgentTask("a", "", [], int, after="nobody")),
        (InvalidOption, lambda: AgentTask("a", "", [], int, after=[concurrent.futures.Future()])),
        (InvalidOption, lambda: AgentTask("a", "", [], int, attempts=0)),
        (InvalidOption, lambda: AgentTask("a", "", [], int, timeout=-1)),
        (InvalidOption, lambda: AgentTask("a", "", [], int, priority="high")),  # type: ignore[arg-type]
        (InvalidOption, lambda: AgentTask(" ", "", [], int)),
        (InvalidOption, lambda: AgentTask("a", "", 42, int)),  # type: ignore[arg-type]
        (InvalidOption, lambda: AgentTask("a", "", [], int, id=" ")),
        (interlock.InvalidOwnership, lambda: AgentTask("a", "", None, int)),
        (interlock.AgentError, lambda: AgentTask("nobody-configured", "", [])),
    ]
    for error, make in wrong:
        with pytest.raises(error):
            queue.submit_task(make())
    with pytest.raises(InvalidOption, match="not an AgentTask"):
        queue.submit_task("work")  # type: ignore[arg-type]
    assert queue.runtime.progress().total == 0


def test_an_id_is_unique_among_unfinished_tasks_and_may_be_used_again(queue: TaskQueue) -> None:
    with Gate() as gate:
        first = queue.submit_task(AgentTask("a", "", [], gate, id="spec"))
        with pytest.raises(DuplicateId, match="spec"):
            queue.submit_task(AgentTask("b", "", [], int, id="spec"))
    assert first.result() == "done"
    again = queue.submit_task(AgentTask("a", "", [], lambda: 2, id="spec"))
    assert again.result() == 2
    assert again.name == "spec"
    after = queue.submit_task(AgentTask("b", "", [], lambda: 3, after="spec"))
    assert after.result() == 3
    with pytest.raises(NotAnAgent):
        queue.submit_task(AgentTask("a", "", [], 42, id="spec"))
    assert queue.submit_task(AgentTask("b", "", [], lambda: 4, after="spec")).result() == 4


def test_tasks_that_wait_for_each_other_are_refused_together(queue: TaskQueue) -> None:
    with pytest.raises(DependencyCycle):
        queue.submit_tasks(
            [
                AgentTask("a", "", [], int, id="one", after="two"),
                AgentTask("b", "", [], int, id="two", after="one"),
            ]
        )
    assert queue.submit_task(AgentTask("a", "", [], lambda: 1, id="one")).result() == 1


def test_a_task_that_waits_for_another_lends_out_its_slot(tmp_path: Path) -> None:
    with TaskQueue(1, workspace=tmp_path) as queue:

        def outer() -> int:
            inner = queue.submit_task(AgentTask("inner", "", [], lambda: 41))
            return int(inner.result()) + 1

        assert queue.submit_task(AgentTask("outer", "", [], outer)).result() == 42


def test_a_task_that_waits_for_one_of_its_own_type_is_told_that_it_would_hang(
    queue: TaskQueue,
) -> None:
    def outer() -> None:
        inner.append(queue.submit_task(AgentTask("a", "", [], int)))
        inner[0].result()

    inner: list[Any] = []
    future = queue.submit_task(AgentTask("a", "", [], outer))
    with pytest.raises(WouldDeadlock):
        future.result()
    assert inner[0].result() == 0  # its turn comes when the other one has ended


def test_callbacks_are_called_and_may_raise_what_they_like(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    called = threading.Event()

    def bad(_: object) -> None:
        called.set()
        raise SystemExit

    with Gate() as gate:
        future = held(queue, gate, "a")
        future.add_done_callback(bad)
    assert called.wait(60)
    assert queue.submit_task(AgentTask("a", "", [], lambda: 2)).result() == 2


def test_context_variables_are_those_of_the_submitter(queue: TaskQueue) -> None:
    number = ContextVar[int]("number")
    number.set(7)
    assert queue.submit_task(AgentTask("a", "", [], number.get)).result() == 7


def test_it_can_be_steered_and_followed_as_any_run(queue: TaskQueue) -> None:
    rt = queue.runtime
    rt.pause()
    future = queue.submit_task(AgentTask("a", "", [], int, id="paused"))
    assert "paused" in str(rt.why("paused"))
    rt.resume()
    assert future.result() == 0
    assert [each.task_id for each in rt.outcomes] == ["paused"]
    assert rt.handle("paused").task.labels["agent_type"] == "a"


def test_ending_with_an_exhausted_retry_raises_the_last_exception(queue: TaskQueue) -> None:
    def fails(ctx: TaskContext) -> None:
        raise LookupError(ctx.attempt)

    future = queue.submit_task(AgentTask("a", "", [], fails, attempts=2, backoff=0))
    with pytest.raises(LookupError, match="2"):
        future.result()
    assert Retry(2, 0) == queue.runtime.handle("a#1").task.retry


def test_shutdown_refuses_new_work(tmp_path: Path) -> None:
    queue = TaskQueue(workspace=tmp_path)
    queue.shutdown()
    with pytest.raises(ShuttingDown):
        queue.submit_task(AgentTask("a", "", [], int))
    with pytest.raises(ShuttingDown):
        queue.submit_tasks([AgentTask("a", "", [], int)])
    queue.shutdown()  # again is fine
    queue.shutdown(wait=False)
    assert queue.get_status()["shutting_down"]
    assert queue.get_status()["queued_tasks"] == 0


def test_a_queue_that_lasts_keeps_few_outcomes_and_all_ids() -> None:
    with TaskQueue() as queue:
        first = queue.submit_task(AgentTask("a", "first", [], lambda: 1, id="first"))
        assert first.result() == 1
        done = [queue.submit_task(AgentTask(f"t{n}", "", [], lambda: 2)) for n in range(1_200)]
        assert {each.result() for each in done} == {2}
        assert len(queue.runtime.outcomes) == 1_000
        late = queue.submit_task(AgentTask("b", "late", [], lambda: 3, after=["first"]))
        assert late.result() == 3
