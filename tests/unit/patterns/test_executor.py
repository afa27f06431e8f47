"""A group of agents at once, and the outcome of each."""

from __future__ import annotations

import asyncio
import logging
import random
from types import SimpleNamespace
from typing import Any

import pytest

from interlock import (
    AgentOutcome,
    EngineError,
    InMemoryResourceLock,
    InvalidOption,
    NotRunning,
    ParallelExecutionError,
    ParallelExecutionResult,
    ResourceConflictError,
    ShuttingDown,
    State,
)
from tests.unit.patterns.groups import (
    Agent,
    Engine,
    Job,
    Report,
    Watcher,
    assign,
    executor,
    group,
    played,
    raises,
    resists,
    sleeps,
)


def _errors(result: ParallelExecutionResult) -> list[str | None]:
    return [each.error for each in result.outcomes]


@pytest.mark.parametrize("seed", range(5))
def test_each_outcome_belongs_to_its_assignment_whoever_ends_first(seed: int) -> None:
    async def main() -> None:
        delays = list(range(100))
        random.Random(seed).shuffle(delays)
        names = [f"t{number}" for number in range(100)]
        engine = Engine()
        result = await executor(engine).execute_group(
            group(*(assign(name, sleeps(d)) for name, d in zip(names, delays, strict=True)))
        )
        assert [each.task_id for each in result.outcomes] == names
        assert [each.agent_id for each in result.outcomes] == [f"agent-{each}" for each in names]
        assert [each.result.task_id for each in result.outcomes] == names
        assert engine.ended == sorted(names, key=lambda name: delays[names.index(name)])
        assert engine.most == 100
        assert result.all_succeeded
        assert result.total_cost_usd == 25.0
        assert result.total_duration_seconds == pytest.approx(99)

    played(main, seed)


def test_one_failure_leaves_the_others_alone() -> None:
    async def main() -> None:
        result = await executor().execute_group(
            group(assign("a", sleeps(1)), assign("b", raises(OSError("disk"))), assign("c"))
        )
        assert [each.is_success for each in result.outcomes] == [True, False, True]
        assert _errors(result) == [None, "OSError: disk", None]
        assert (result.agents_succeeded, result.agents_failed) == (2, 1)

    played(main)


def test_a_returned_result_that_is_no_success_counts_as_failed() -> None:
    async def main() -> None:
        watcher = Watcher()
        result = await executor(progress_callback=watcher).execute_group(
            group(assign("a", sleeps(0, False)), assign("b"))
        )
        failed = result.outcomes[0]
        assert failed.error is None
        assert failed.result == Report("a", "agent-a", is_success=False, total_cost_usd=0.25)
        assert (failed.is_success, result.agents_failed, result.total_cost_usd) == (False, 1, 0.5)
        assert (watcher.seen[-1].succeeded, watcher.seen[-1].failed) == (1, 1)

    played(main)


@pytest.mark.parametrize("failure", [sleeps(1, False), raises(OSError("disk"))])
def test_with_fail_fast_any_failure_cancels_the_others_and_the_result_is_returned(
    failure: Any,
) -> None:
    async def main() -> None:
        engine, watcher = Engine(), Watcher()
        result = await executor(engine, progress_callback=watcher).execute_group(
            group(
                assign("early"),
                assign("bad", failure),
                assign("long", sleeps(100)),
                assign("queued", sleeps(100)),
                fail_fast=True,
                max_concurrency=3,
            )
        )
        assert result.outcomes[0].is_success
        assert not result.outcomes[1].is_success
        ends = [each.error for each in result.outcomes if each.task_id in ("long", "queued")]
        assert ends == ["Cancelled", "Cancelled"]
        assert result.total_duration_seconds < 2
        assert not engine.inside
        assert (watcher.seen[-1].completed, watcher.seen[-1].failed) == (4, 3)

    played(main)


def test_no_more_than_max_concurrency_run_at_once_and_the_rest_is_pending() -> None:
    async def main() -> None:
        engine, watcher = Engine(), Watcher()
        result = await executor(engine, progress_callback=watcher).execute_group(
            group(*(assign(str(n), sleeps(1)) for n in range(10)), max_concurrency=3)
        )
        assert result.all_succeeded
        assert engine.most == 3
        assert max(each.in_progress for each in watcher.seen) == 3
        assert watcher.seen[2].pending == 7

    played(main)


def test_groups_at_the_same_time_have_a_limit_each() -> None:
    async def main() -> None:
        engines = [Engine(), Engine()]

        async def run(identity: Agent, task: Job) -> Any:
            return await engines[task.id.startswith("x")].run(identity, task)

        ex = executor(SimpleNamespace(run=run))
        async with asyncio.TaskGroup() as both:
            for name, limit in (("x", 2), ("y", 1)):
                these = [assign(f"{name}{n}", sleeps(1)) for n in range(6)]
                both.create_task(ex.execute_group(group(*these, id=name, max_concurrency=limit)))
        assert [each.most for each in engines] == [1, 2]

    played(main)


def test_without_a_limit_all_run_at_once_also_when_there_are_very_many() -> None:
    async def main() -> None:
        engine = Engine()
        many = [assign(str(number), sleeps(1)) for number in range(300)]
        await executor(engine).execute_group(group(*many))
        assert engine.most == 300

    played(main)


def test_a_timeout_is_enforced_and_counts_from_the_start_of_work() -> None:
    async def main() -> None:
        result = await executor().execute_group(
            group(
                assign("a", sleeps(8), timeout_seconds=10),
                assign("b", sleeps(8), timeout_seconds=10),  # waits 8 s for its turn
                assign("c", sleeps(100), timeout_seconds=2.5),
                max_concurrency=1,
            )
        )
        assert _errors(result) == [None, None, "Timed out after 2.5 s"]
        assert result.outcomes[2].termination_reason == "timed_out"
        assert result.total_duration_seconds == pytest.approx(18.5)

    played(main)


def test_an_agent_that_will_not_stop_is_waited_for_at_most_the_grace() -> None:
    async def main() -> None:
        engine = Engine()
        ex = executor(engine, grace=3.0)
        late = assign("late", resists(50), "a.py", timeout_seconds=1)
        result = await ex.execute_group(group(late, assign("b")))
        assert _errors(result) == ["Timed out after 1 s", None]
        assert result.total_duration_seconds == pytest.approx(4)
        assert engine.inside == {"agent-late"}
        again = await ex.execute_group(group(assign("c"), id="h"))  # the run is still open
        assert again.all_succeeded
        assert asyncio.get_running_loop().time() < 6
        await asyncio.sleep(60)
        assert not engine.inside
        with pytest.raises(NotRunning):
            _ = ex.runtime

    played(main)


@pytest.mark.parametrize("error", [MemoryError("no more"), RecursionError("too deep")])
def test_after_a_fatal_error_the_others_finish_and_all_outcomes_are_there(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> ParallelExecutionError:
        engine = Engine()
        with pytest.raises(ParallelExecutionError, match="agent 'agent-b' ended with") as caught:
            await executor(engine).execute_group(
                group(assign("a", sleeps(5)), assign("b", raises(error)), assign("c"))
            )
        assert engine.ended[-1] == "a"
        return caught.value

    raised = played(main)
    outcomes: tuple[AgentOutcome, ...] = raised.outcomes
    assert raised.__cause__ is error
    assert [each.task_id for each in outcomes] == ["a", "b", "c"]
    assert [each.is_success for each in outcomes] == [True, False, True]
    name = type(error).__name__
    told = [each for each in caplog.records if each.getMessage().endswith("agent_error")]
    assert [each.levelno for each in told] == [logging.ERROR]
    assert outcomes[1].error is not None
    assert outcomes[1].error.startswith(f"{name}: ")


def test_fatal_errors_of_two_groups_at_once_are_raised_to_both() -> None:
    async def main() -> None:
        ex = executor()
        both = [
            asyncio.ensure_future(
                ex.execute_group(group(assign("a", raises(MemoryError())), id=name))
            )
            for name in ("g", "h")
        ]
        await asyncio.wait(both)
        assert [type(each.exception()) for each in both] == [ParallelExecutionError] * 2

    played(main)


def test_ids_may_be_used_again_one_after_another_and_at_the_same_time() -> None:
    async def main() -> None:
        ex = executor()
        one = group(assign("a", sleeps(1)), assign("b"))
        for _ in range(2):
            assert (await ex.execute_group(one)).all_succeeded
        async with ex:
            async with asyncio.TaskGroup() as several:
                tasks = [several.create_task(ex.execute_group(one)) for _ in range(3)]
            assert all(each.result().all_succeeded for each in tasks)
            assert (await ex.execute_group(group(assign("2/a"), id="g~"))).all_succeeded
            assert len(ex.runtime.outcomes) == 7

    played(main)


def test_the_run_can_be_looked_at_while_it_goes_on() -> None:
    async def main() -> None:
        async with executor() as ex:
            running = asyncio.ensure_future(
                ex.execute_group(
                    group(assign("a", sleeps(9)), assign("b", sleeps(9)), max_concurrency=1)
                )
            )
            await asyncio.sleep(1)
            assert ex.runtime.handle("g/b").state is State.WAITING
            why = str(ex.runtime.why("g/b"))
            assert "the only slot of g is busy: g/a" in why, why
            await running
            outcome = ex.runtime.handle("g/a").outcome
            assert outcome is not None
            assert outcome.usage.cost == 0.25
            kinds = []
            async for event in ex.runtime.events():
                if event.task_id == "g/a":
                    kinds.append(str(event.kind))
                if event.kind == "settled" and event.task_id == "g/b":
                    break
            assert kinds == ["submitted", "started", "used", "ended", "settled"]

    played(main)


def test_cancelling_the_caller_cancels_the_agents() -> None:
    async def main() -> None:
        engine, watcher = Engine(), Watcher()
        ex = executor(engine, progress_callback=watcher)
        running = asyncio.ensure_future(
            ex.execute_group(
                group(assign("a", sleeps(9)), assign("b", sleeps(9)), max_concurrency=1)
            )
        )
        await asyncio.sleep(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert engine.ended == ["a"]
        last = watcher.seen[-1]
        assert (last.completed, last.failed, last.in_progress) == (2, 2, 0)
        assert len(asyncio.all_tasks()) == 1
        assert (await ex.execute_group(group(assign("c")))).all_succeeded

    played(main)


def test_leaving_its_block_waits_and_then_refuses() -> None:
    async def main() -> None:
        async with executor() as ex:
            running = asyncio.ensure_future(ex.execute_group(group(assign("a", sleeps(5)))))
            await asyncio.sleep(1)
        assert (await running).all_succeeded
        with pytest.raises(ShuttingDown, match="takes no new work"):
            await ex.execute_group(group(assign("b")))

    played(main)


def test_leaving_its_block_by_an_error_cancels() -> None:
    async def main() -> None:
        engine = Engine()
        running = None
        with pytest.raises(LookupError):
            async with executor(engine) as ex:
                running = asyncio.ensure_future(ex.execute_group(group(assign("a", sleeps(5)))))
                await asyncio.sleep(1)
                raise LookupError
        assert running is not None
        assert _errors(await running) == ["Cancelled"]

    played(main)


def test_a_shutdown_lets_what_runs_finish_within_its_time_and_refuses_new_work() -> None:
    async def main() -> None:
        ex = executor()
        these = [assign("a", sleeps(5)), assign("b", sleeps(500)), assign("c")]
        running = asyncio.ensure_future(ex.execute_group(group(*these, max_concurrency=2)))
        await asyncio.sleep(1)
        ending = asyncio.ensure_future(ex.shutdown(timeout=10))
        await asyncio.sleep(0)
        with pytest.raises(ShuttingDown):
            await ex.execute_group(group(assign("d"), id="h"))
        await ending
        assert _errors(await running) == [None, "Cancelled", "Cancelled"]
        await ex.shutdown()

    played(main)


class TakesAll:
    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    async def run(self, **options: Any) -> Report:
        self.calls.append(options)
        return Report(options["task"].id, options["identity"].id)


def test_an_engine_is_called_with_all_that_it_takes() -> None:
    async def main() -> None:
        engine = TakesAll()
        given = assign(
            "a", completion_config={"x": 1}, memory_messages=("hi",), max_turns=3, timeout_seconds=9
        )
        await executor(engine).execute_group(group(given))
        assert engine.calls == [
            {
                "identity": given.identity,
                "task": given.task,
                "completion_config": {"x": 1},
                "max_turns": 3,
                "memory_messages": ("hi",),
                "timeout_seconds": 9,
            }
        ]

    played(main)


async def _no_task(identity: Agent) -> None: ...


@pytest.mark.parametrize(
    "engine", [object(), SimpleNamespace(run=3), SimpleNamespace(run=_no_task)]
)
def test_what_is_no_engine_is_refused_at_once(engine: Any) -> None:
    with pytest.raises(EngineError):
        executor(engine)


@pytest.mark.parametrize(
    ("returns", "problem"),
    [
        (lambda: asyncio.sleep(0, Report("z", "agent-a")), "task 'z', but 'a' was executed"),
        (lambda: asyncio.sleep(0, Report("a", "agent-z")), "agent 'agent-z', but 'agent-a'"),
        pytest.param(
            lambda: asyncio.sleep(0, "done"),
            "a str is not a result",
            id="<lambda>-a str is no result",
        ),
        pytest.param(
            lambda: asyncio.sleep(0),
            "a NoneType is not a result",
            id="<lambda>-a NoneType is no result",
        ),
        (lambda: Report("a", "agent-a"), "not async"),
    ],
)
def test_an_engine_that_returns_something_else_has_failed(returns: Any, problem: str) -> None:
    async def main() -> None:
        engine = SimpleNamespace(run=lambda identity, task: returns())
        result = await executor(engine).execute_group(group(assign("a")))
        assert result.outcomes[0].error is not None
        assert problem in result.outcomes[0].error
        assert result.outcomes[0].error.startswith("EngineError: ")

    played(main)


async def test_wrong_options_are_errors_where_they_are_given() -> None:
    async def progress(_: Any) -> None: ...

    for wrong in ({"on_conflict": "queue"}, {"progress_callback": progress}, {"grace": -1}):
        with pytest.raises(InvalidOption):
            executor(**wrong)
    with pytest.raises(InvalidOption, match="not a ParallelExecutionGroup"):
        await executor().execute_group([assign("a")])  # type: ignore[arg-type]


def test_every_event_names_its_group_agent_and_task_by_the_same_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unreleasable(InMemoryResourceLock):
        async def release_all(self, holder: str) -> int:
            raise OSError("no")

    async def main() -> None:
        lock = Unreleasable()
        ex = executor(resource_lock=lock)
        both = [assign("a", None, "a.py"), assign("b", raises(OSError("x")))]
        await ex.execute_group(group(*both))
        both = [assign("c", sleeps(9)), assign("d", raises(OSError("x")))]
        await ex.execute_group(group(*both, fail_fast=True))
        with pytest.raises(ResourceConflictError):
            await ex.execute_group(group(assign("e", None, "a.py")))
        with pytest.raises(ResourceConflictError):
            await ex.execute_group(group(assign("e", None, "x"), assign("f", None, "x")))
        await executor(progress_callback=lambda _: None).execute_group(
            group(assign("g", None, "g"))
        )

    with caplog.at_level("DEBUG", "interlock"):
        played(main)
    told = [each for each in caplog.records if each.getMessage().startswith("execution.parallel")]
    assert len({each.getMessage() for each in told}) == 12
    for each in told:
        fields: dict[str, Any] = each.interlock  # type: ignore[attr-defined]
        assert not {"group", "agent", "task"} & set(fields)
        assert fields["group_id"] == "g"
        about_a_group = ("group_start", "group_complete", "progress_update")
        if not each.getMessage().endswith(about_a_group):
            assert fields["agent_id"] == f"agent-{fields['task_id']}"


def test_errors_of_an_execution_are_engine_errors() -> None:
    assert issubclass(ParallelExecutionError, EngineError)
    assert issubclass(ResourceConflictError, EngineError)
