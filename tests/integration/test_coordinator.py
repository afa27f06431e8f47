"""The synchronous doors of the coordinator, with real threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import (
    AttemptsStillAlive,
    NotRunning,
    OrchestratorException,
    ParallelAgentCoordinator,
    ShuttingDown,
    SubTask,
    WouldDeadlock,
)
from tests.unit.patterns.coordination import Notebook, part, statuses, title_in


class Floor:
    """Where agents wait until they are let go; the test sees who is there."""

    def __init__(self) -> None:
        self.inside: set[str] = set()
        self.most = 0
        self.asked: list[str] = []
        self.changed = threading.Condition()
        self.open: set[str] = set()

    def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
        title = title_in(prompt)
        with self.changed:
            self.inside.add(title)
            self.asked.append(title)
            self.most = max(self.most, len(self.inside))
            self.changed.notify_all()
            done = self.changed.wait_for(
                lambda: title in self.open or "all" in self.open or interlock.cancelled(), 60
            )
            self.inside.discard(title)
            assert done
        return f"{title} done"

    def let_go(self, *titles: str) -> None:
        with self.changed:
            self.open.update(titles or ("all",))
            self.changed.notify_all()

    def wait_for(self, *titles: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.inside >= set(titles), 60)

    def wake(self) -> None:
        """Have everybody look whether they were told to stop."""
        with self.changed:
            self.changed.notify_all()


@pytest.fixture
def floor() -> Floor:
    return Floor()


def made(floor: Floor, manager: Any = None, **options: Any) -> ParallelAgentCoordinator:
    config = {"max_retries": 0} | options.pop("config", {})
    return ParallelAgentCoordinator(manager, lambda: floor, config, **options)


def threads() -> set[str]:
    """Threads of ours that do not end; one that has said so may take a moment longer."""
    ours = [each for each in threading.enumerate() if each.name.startswith(("task-", "inter"))]
    for each in ours:
        each.join(10)
    return {each.name for each in ours if each.is_alive()}


def test_subtasks_run_in_threads_for_code_that_is_not_async(floor: Floor) -> None:
    floor.let_go()
    coord = made(floor)
    for _ in range(2):  # ids may be used again
        results = coord.execute_parallel([part(3, 1), part(1, 2), part(2, 1)], "T", {})
        assert [each["subtask_id"] for each in results] == [1, 2, 3]
        assert [each["result"] for each in results] == ["s1 done", "s2 done", "s3 done"]
    assert not threads()
    with pytest.raises(NotRunning):
        coord.runtime.progress()


def test_results_stream_as_they_come(floor: Floor) -> None:
    stream = made(floor).stream([part(number, 1) for number in (1, 2, 3)], "T")
    came = []
    for number in (2, 3, 1):
        floor.let_go(f"s{number}")
        came.append(next(stream)["subtask_id"])
    assert came == [2, 3, 1]
    assert list(stream) == []
    assert not threads()


def test_a_stream_is_checked_at_once_and_begins_with_the_first_result(floor: Floor) -> None:
    coord = made(floor)
    with pytest.raises(OrchestratorException):
        coord.stream([part(1, 1), part(2, 1, is_test=True)], "T")
    coord.stream([part(1, 1)], "T")
    assert floor.asked == []


def test_whoever_asks_for_no_more_results_cancels_the_rest(floor: Floor) -> None:
    notebook = Notebook()
    floor.let_go("s1")
    stream = made(floor, notebook).stream([part(1, 1), part(2, 1), part(3, 2)], "T")
    assert next(stream)["subtask_id"] == 1
    floor.wait_for("s2")
    stream.close()  # type: ignore[attr-defined]
    assert {n: states[-1] for n, states in notebook.states.items()} == {
        **{1: "completed", 2: "cancelled", 3: "cancelled"}
    }
    assert floor.asked.count("s3") == 0
    floor.wake()  # a thread can only be asked to stop


def test_an_interrupted_caller_cancels_the_rest(floor: Floor) -> None:
    class Interrupted(Notebook):
        def update_subtask(self, subtask_id: Any, state: str) -> None:
            super().update_subtask(subtask_id, state)
            if state == "completed":
                floor.wait_for("s2")
                raise KeyboardInterrupt

    notebook = Interrupted()
    floor.let_go("s1")
    parts = [part(1, 1), part(2, 1), part(3, 2)]
    with pytest.raises(KeyboardInterrupt):
        made(floor, notebook).execute_parallel(parts, "T")
    assert notebook.states[2] == ["pending", "in_progress", "cancelled"]
    assert notebook.states[3] == ["pending", "cancelled"]
    floor.wake()  # a thread can only be asked to stop


def test_another_thread_can_cancel_and_the_caller_gets_all_results(floor: Floor) -> None:
    coord = made(floor)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(coord.execute_parallel, [part(1, 1), part(2, 1, 1), part(3, 2)], "T")
        floor.wait_for("s1")
        coord.cancel()
        floor.wake()
        assert statuses(call.result()) == dict.fromkeys((1, 2, 3), "cancelled")
    coord.cancel()  # nothing to cancel is fine
    floor.let_go()
    assert statuses(coord.execute_parallel([part(1)], "T")) == {1: "completed"}


def test_calls_from_several_threads_share_limit_and_claims(floor: Floor) -> None:
    floor.let_go()
    coord = made(floor, config={"max_parallel_agents": 3})
    with ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(coord.execute_parallel, [part(n, 1) for n in range(10)], "T")
            for _ in range(8)
        ]
        for call in calls:
            assert set(statuses(call.result()).values()) == {"completed"}
    assert floor.most <= 3
    assert len(floor.asked) == 80
    assert not threads()


def test_the_limit_can_be_raised_while_a_call_is_blocked_in_it(floor: Floor) -> None:
    coord = made(floor, config={"max_parallel_agents": 1})
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(coord.execute_parallel, [part(n, 1) for n in (1, 2, 3)], "T")
        with floor.changed:
            assert floor.changed.wait_for(lambda: len(floor.inside) == 1, 60)
        coord.set_max_parallel(3)
        floor.wait_for("s1", "s2", "s3")
        floor.let_go()
        assert len(call.result()) == 3


def test_the_state_manager_is_used_on_the_thread_of_the_caller_alone(floor: Floor) -> None:
    class Home(Notebook):
        def update_subtask(self, subtask_id: Any, state: str) -> None:
            assert threading.current_thread() is threading.main_thread()
            super().update_subtask(subtask_id, state)

    notebook = Home()
    floor.let_go()
    made(floor, notebook).execute_parallel([part(1, 1), part(2, 2)], "T")
    assert list(notebook.states.values()) == [["pending", "in_progress", "completed"]] * 2
    assert [each["group"] for each in notebook.records] == [1, 2]


def test_a_thread_that_hangs_is_a_timeout_for_its_caller_and_keeps_its_files(
    floor: Floor, tmp_path: Path
) -> None:
    stuck, entered = threading.Event(), threading.Event()

    class Deaf:
        def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
            if title_in(prompt) == "s1":
                entered.set()
                assert stuck.wait(60)
            return "done"

    coord = ParallelAgentCoordinator(
        None,
        Deaf,
        {"agent_timeout_seconds": 0.2, "max_retries": 0, "deadline_seconds": 0.5},
        workspace=tmp_path,
        grace=0.1,
    )
    parts = [part(1, 1, files="a.py"), part(2, 1, files="b.py"), part(3, 2, files="a.py")]
    results = coord.execute_parallel(parts, "T")
    assert not stuck.is_set()
    assert entered.is_set()
    assert statuses(results) == {1: "timeout", 2: "completed", 3: "timeout"}
    # Also in the next call, until it has ended.
    again = coord.execute_parallel([part(4, files="a.py")], "T")
    assert statuses(again) == {4: "timeout"}
    assert again[0]["attempts"] == 0
    stuck.set()


def test_shutdown_lets_what_runs_finish_and_refuses_what_comes(floor: Floor) -> None:
    coord = made(floor, config={"max_parallel_agents": 1})
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(coord.execute_parallel, [part(1, 1), part(2, 2)], "T")
        floor.wait_for("s1")
        ending = pool.submit(coord.shutdown)
        floor.let_go()
        ending.result()
        assert statuses(call.result()) in (
            {1: "completed", 2: "cancelled"},
            {1: "completed", 2: "completed"},  # it was done before the shutdown was heard
        )
    with pytest.raises(ShuttingDown):
        coord.execute_parallel([part(1)], "T")


def test_a_block_keeps_one_run_open_and_is_its_end(floor: Floor) -> None:
    floor.let_go()
    with made(floor) as coord:
        run = coord.runtime.run_id
        for count in (1, 2):
            coord.execute_parallel([part(1)], "T")
            assert coord.runtime.run_id == run
            name = "T/1" if count == 1 else "T~2/1"
            assert coord.runtime.handle(name).task.prompt
    assert not threads()
    with pytest.raises(ShuttingDown):
        coord.execute_parallel([part(1)], "T")


def test_an_error_in_the_block_cancels_and_a_thread_that_will_not_stop_is_named() -> None:
    stuck, entered = threading.Event(), threading.Event()

    def deaf() -> None:
        entered.set()
        assert stuck.wait(60)

    with ThreadPoolExecutor(1) as pool:
        once = {"agent_timeout_seconds": 0.05, "max_retries": 0}
        cut = ParallelAgentCoordinator(None, lambda: deaf, grace=0.05)
        with pytest.raises(AttemptsStillAlive) as named, cut:
            call = pool.submit(cut.execute_parallel, [part(1)], "T")
            assert entered.wait(60)
            raise LookupError
        assert isinstance(named.value.__context__, LookupError)
        assert statuses(call.result()) == {1: "cancelled"}
        late = ParallelAgentCoordinator(None, lambda: deaf, once, grace=0.05)
        with pytest.raises(AttemptsStillAlive), late:
            assert statuses(late.execute_parallel([part(1)], "T")) == {1: "timeout"}
        stuck.set()


def test_an_agent_that_calls_its_own_coordinator_is_told_instead_of_hanging() -> None:
    def agent() -> Any:
        return coord.execute_parallel([part(2)], "T")

    coord = ParallelAgentCoordinator(
        None, lambda: agent, {"max_parallel_agents": 1, "max_retries": 0}
    )
    (result,) = coord.execute_parallel([part(1)], "T")
    assert result["status"] == "failed"
    assert WouldDeadlock.__name__ in result["error"]


async def test_it_can_be_used_where_a_loop_is_running(floor: Floor) -> None:
    floor.let_go()
    assert statuses(made(floor).execute_parallel([part(1)], "T")) == {1: "completed"}
    assert statuses(await made(floor).execute([part(1)], "T")) == {1: "completed"}


# -- with a journal ---------------------------------------------------------------------------


def test_a_run_that_is_taken_up_does_not_repeat_what_was_completed(tmp_path: Path) -> None:
    asked: list[str] = []
    broken = True

    def agent(ctx: interlock.TaskContext) -> str:
        title = title_in(str(ctx.prompt))
        asked.append(title)
        if broken and title == "s2":
            raise LookupError("not today")
        return f"{title} done"

    parts = [part(1, 1), part(2, 1), part(3, 2, 2), part(4, 2)]

    def run(resume: bool, manager: Any = None) -> dict[Any, str]:
        coord = ParallelAgentCoordinator(
            manager, lambda: agent, {"max_retries": 0}, journal=tmp_path / "j.db", resume=resume
        )
        return statuses(coord.execute_parallel(parts, "T"))

    assert run(False) == {1: "completed", 2: "failed", 3: "skipped", 4: "completed"}
    assert sorted(asked) == ["s1", "s2", "s4"]
    broken = False
    asked.clear()
    notebook = Notebook()
    assert run(True, notebook) == dict.fromkeys((1, 2, 3, 4), "completed")
    assert asked == ["s2", "s3"]
    assert {states[-1] for states in notebook.states.values()} == {"completed"}
    assert [each["success"] for each in notebook.records] == [True, True]


def test_history_feeds_the_estimates(tmp_path: Path) -> None:
    def agent() -> str:
        return "done"

    def estimates(parts: list[SubTask]) -> list[float | None]:
        with ParallelAgentCoordinator(None, lambda: agent, journal=tmp_path / "j.db") as coord:
            coord.execute_parallel(parts, "T")
            return [coord.runtime.handle(f"T/{each.subtask_id}").task.estimate for each in parts]

    first = estimates([part(n, 1, minutes=5) for n in (1, 2, 3)])
    assert first == [300.0] * 3  # as somebody has guessed
    again, alike, other, unknown = estimates(
        [
            part(1, 1, minutes=5),
            part(8, 1, minutes=5),  # the same complexity
            SubTask(9, "T", "s9", "", 99, 5),
            SubTask(10, "T", "s10", "", None, None),
        ]
    )
    assert again is not None
    assert again < 60
    assert alike is not None
    assert alike < 60
    assert other == 300.0
    assert unknown is None or unknown < 60  # what the Runtime knows of all of them
