"""Blocking agents on an async scheduler, in virtual time."""

from __future__ import annotations

import asyncio
import inspect
import logging
from random import Random
from typing import Any

import pytest

import interlock
from interlock import (
    BlankId,
    Claim,
    InvalidOption,
    Kind,
    NotAnAgent,
    NotRunning,
    ShuttingDown,
    State,
    TaskFailed,
    TaskScheduler,
    uses,
    write,
)
from interlock.patterns.scheduler.scheduler import OnError
from tests.unit.patterns.steps import Agent, World, played, scheduler


def test_the_defaults_are_three_at_once_and_two_minutes_and_fail_fast() -> None:
    parameters = inspect.signature(TaskScheduler).parameters
    defaults = [parameters[name].default for name in ("max_concurrent", "timeout_s", "on_error")]
    assert defaults == [3, 120.0, "fail_fast"]


def test_the_results_are_plain_values_in_the_order_of_the_agents() -> None:
    async def main() -> None:
        world = World()
        values: list[Any] = [1, "two", None, {"four": [4]}]
        agents = [
            Agent(world, f"a{index}", 10 - index, value) for index, value in enumerate(values)
        ]
        assert await scheduler(4).run(agents) == values
        assert world.ended == ["a3", "a2", "a1", "a0"]

    played(main)


def test_no_more_than_max_concurrent_run_at_once_and_no_fewer() -> None:
    async def main() -> None:
        world = World()
        await scheduler(3).run([world.agent(f"a{n}", 1) for n in range(10)])
        assert world.most == 3
        assert asyncio.get_running_loop().time() == pytest.approx(4)

    played(main)


@pytest.mark.parametrize("seed", range(20))
def test_one_at_a_time_the_order_is_that_of_the_input(seed: int) -> None:
    async def main() -> None:
        world, chance = World(), Random(seed)
        names = [f"a{n}" for n in range(20)]
        chance.shuffle(names)
        await scheduler(1, seed=seed).run([world.agent(each, chance.random()) for each in names])
        assert world.begun == world.ended == names

    played(main, seed)


def test_the_first_failure_cancels_the_rest_and_is_raised() -> None:
    async def main() -> None:
        world, boom = World(), LookupError("nothing there")
        agents = [
            world.agent("slow", 50),
            world.agent("bad", 1, boom),
            world.agent("worse", 2, OSError()),
            world.agent("late"),
        ]
        with pytest.raises(LookupError) as caught:
            await scheduler(3).run(agents)
        assert caught.value is boom
        assert boom.__notes__ == ["raised by agent 'bad'"]
        assert asyncio.get_running_loop().time() == pytest.approx(1)
        assert "late" not in world.begun

    played(main, stuck=2)


def test_a_returned_exception_is_a_failure_as_well() -> None:
    async def main() -> None:
        agents = [World().agent("a", value=1)]

        class Returns:
            role = "b"

            def run_step(self) -> Exception:
                return ValueError("returned")

        with pytest.raises(ValueError, match="returned"):
            await scheduler().run([*agents, Returns()])

    played(main)


def test_isolated_failures_stand_in_the_place_of_results() -> None:
    async def main() -> None:
        world, boom = World(), LookupError("nothing there")
        agents = [world.agent("a", 3), world.agent("b", 1, boom), world.agent("c", 2)]
        assert await scheduler(on_error="isolate").run(agents) == ["a", boom, "c"]

    played(main)


def test_a_timeout_counts_from_the_start_of_the_work() -> None:
    async def main() -> None:
        world = World()
        agents = [world.agent(each, 9) for each in "abcd"]
        assert await scheduler(1, timeout_s=10).run(agents) == list("abcd")

    played(main)


@pytest.mark.parametrize("on_error", ["fail_fast", "isolate"])
def test_the_caller_is_answered_on_time_though_a_thread_cannot_be_killed(
    on_error: OnError,
) -> None:
    async def main() -> None:
        world = World()
        agents = [world.agent("stuck", 1000), world.agent("b", 1)]
        running = scheduler(1, timeout_s=10, on_error=on_error).run(agents)
        if on_error == "isolate":
            results = await running
            assert isinstance(results[0], TimeoutError)
            assert str(results[0]) == "agent 'stuck' was not done after 10 s"
            assert results[1] == "b"  # its slot was not waited for
            assert asyncio.get_running_loop().time() == pytest.approx(11)
        else:
            with pytest.raises(TimeoutError, match="'stuck'"):
                await running
            assert asyncio.get_running_loop().time() == pytest.approx(10)
        assert world.alive == ["stuck"]

    played(main, stuck=1)


def test_a_thread_that_is_told_to_stop_can_know_it_and_its_result_is_fenced_off() -> None:
    async def main() -> None:
        told: list[bool] = []

        class Polling(Agent):
            async def _work(self) -> str:
                await asyncio.sleep(11)
                told.append(interlock.cancelled())
                return "too late"

        agent = Polling(World(), "polling", 0, None)
        async with scheduler(timeout_s=10, on_error="isolate") as running:
            results = await running.run([agent])
            assert isinstance(results[0], TimeoutError)
            async for event in running.runtime.events():
                if event.kind is Kind.ATTEMPT_EXITED:
                    break
            assert told == [True]
            assert [each.status for each in running.runtime.outcomes] == [State.TIMED_OUT]
        assert isinstance(results[0], TimeoutError)

    played(main)


def test_what_a_timed_out_thread_claims_stays_its_own_until_it_ends() -> None:
    async def main() -> None:
        world = World()

        def claims(agent: Agent) -> list[Claim]:
            return [write(f"{agent.role[0]}.txt")]

        async with scheduler(2, timeout_s=10, on_error="isolate", claims=claims) as running:
            stuck = world.agent("a1", 100)
            first = await running.run([stuck])
            assert isinstance(first[0], TimeoutError)
            later = asyncio.create_task(running.run([world.agent("a2"), world.agent("b")]))
            await asyncio.sleep(1)
            assert world.ended == ["b"]  # a2 wants the same file
            assert "a1 has held write a.txt" in str(running.runtime.why("a2"))
            assert "was told to stop and has not exited" in str(running.runtime.why("a2"))
            assert await later == ["a2", "b"]
            assert world.ended == ["b", "a1", "a2"]

    played(main)


def test_agents_whose_claims_conflict_never_run_together() -> None:
    async def main() -> None:
        world = World()
        one = scheduler(4, claims=lambda agent: [uses("printer", exclusive=True)])
        await one.run([world.agent(f"a{n}", 1) for n in range(4)])
        assert world.most == 1

    played(main)


def test_calls_may_be_repeated_and_roles_used_again() -> None:
    async def main() -> None:
        world = World()
        one = scheduler()
        assert await one.run([world.agent("a"), world.agent("a", value=2)]) == ["a", 2]
        assert await one.run([world.agent("a")]) == ["a"]
        async with scheduler() as two:
            assert await two.run([world.agent("a"), world.agent("a-2")]) == ["a", "a-2"]
            assert await two.run([world.agent("a"), world.agent("a")]) == ["a", "a"]
            assert [each.task_id for each in two.runtime.outcomes] == ["a", "a-2", "a-3", "a-4"]

    played(main)


def test_a_role_that_comes_over_and_over_finds_its_name_at_once() -> None:
    tried: list[str] = []

    class Role(str):
        __slots__ = ()

        def __format__(self, spec: str) -> str:
            tried.append(self)
            return super().__format__(spec)

    async def main() -> None:
        world, each_time = World(), []
        async with scheduler() as one:
            for _ in range(50):
                tried.clear()
                await one.run([world.agent(Role("a"), value=1)])
                each_time.append(len(tried))
            assert [each.task_id for each in one.runtime.outcomes][-1] == "a-50"
        assert each_time[-1] == each_time[1] > 0

    played(main)


def test_a_run_that_lasts_keeps_no_more_than_a_thousand_outcomes() -> None:
    async def main() -> None:
        world = World()
        async with scheduler(50) as one:
            assert await one.run([world.agent(f"a{n}") for n in range(1_100)]) == [
                f"a{n}" for n in range(1_100)
            ]
            assert len(one.runtime.outcomes) == 1_000

    played(main)


def test_calls_at_the_same_time_share_the_limit() -> None:
    async def main() -> None:
        world, one = World(), scheduler(2)
        async with asyncio.TaskGroup() as group:
            calls = [
                group.create_task(one.run([world.agent(f"{n}{each}", 1) for each in "ab"]))
                for n in range(3)
            ]
        assert [each.result() for each in calls] == [["0a", "0b"], ["1a", "1b"], ["2a", "2b"]]
        assert world.most == 2

    played(main)


def test_nothing_to_run_is_nothing_to_do() -> None:
    async def main() -> None:
        assert await scheduler().run([]) == []

    played(main)


class NoRole:
    def run_step(self) -> int:
        return 1


class NoStep:
    role = "writer"


class Async:
    role = "writer"

    async def run_step(self) -> int:
        return 1


class Blank(NoRole):
    role = "  "


@pytest.mark.parametrize(
    ("bad", "error", "said"),
    [
        (NoRole(), NotAnAgent, r"agents\[1\] has no role"),
        (NoStep(), NotAnAgent, r"agents\[1\], 'writer', has no run_step"),
        (Async(), NotAnAgent, r"agents\[1\], 'writer', is async"),
        (Blank(), BlankId, r"role of agents\[1\] is blank"),
        (Async, NotAnAgent, r"agents\[1\] is the class Async"),
    ],
)
def test_what_is_no_agent_is_named_before_anything_starts(
    bad: Any, error: type[Exception], said: str
) -> None:
    async def main() -> None:
        world = World()
        with pytest.raises(error, match=said):
            await scheduler().run([world.agent("a"), bad])
        assert world.begun == []

    played(main)


@pytest.mark.parametrize(
    "options",
    [
        {"max_concurrent": 0},
        {"timeout_s": -1},
        {"on_error": "ignore"},
        {"grace": -1},
        {"resume": True},
    ],
)
def test_impossible_options_raise_when_it_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        TaskScheduler(**options)


@pytest.mark.parametrize("number", [0, -1, "3", 1.5, True, None])
def test_an_impossible_max_concurrent_is_called_by_its_name(number: Any) -> None:
    with pytest.raises(InvalidOption, match="max_concurrent is "):
        TaskScheduler(number)


@pytest.mark.parametrize("claimed", [None, 7, write("a.py")])
def test_what_is_no_list_of_claims_is_refused_with_the_agent_it_was_given_for(
    claimed: Any,
) -> None:
    async def main() -> None:
        world = World()
        with pytest.raises(InvalidOption, match="for agent 'b'; it must return a list"):
            await scheduler(claims=lambda agent: claimed if agent.role == "b" else []).run(
                [world.agent("a"), world.agent("b")]
            )
        assert world.begun == []

    played(main)


def test_claims_is_a_function() -> None:
    claims: Any = [write("a.py")]
    with pytest.raises(InvalidOption, match=r"claims is .* a function"):
        TaskScheduler(claims=claims)


@pytest.mark.parametrize("bad", ["agents", 7])
def test_agents_come_in_a_list(bad: Any) -> None:
    async def main() -> None:
        with pytest.raises(InvalidOption, match="list of agents"):
            await scheduler().run(bad)

    played(main)


def test_cancelling_the_caller_cancels_the_work_and_releases_everything() -> None:
    async def main() -> None:
        world = World()
        one = scheduler(2, claims=lambda agent: [write("shared.txt")])
        running = asyncio.create_task(one.run([world.agent(f"a{n}", 5) for n in range(3)]))
        await asyncio.sleep(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert world.begun == ["a0"]
        with pytest.raises(NotRunning):
            _ = one.runtime
        # The thread that could not be stopped has the file until it ends; then it is free.
        assert await one.run([world.agent("b")]) == ["b"]
        assert asyncio.get_running_loop().time() == pytest.approx(5)
        assert world.ended == ["a0", "b"]

    played(main)


def test_a_shutdown_lets_what_runs_finish_and_refuses_what_comes() -> None:
    async def main() -> None:
        world, one = World(), scheduler(1, on_error="isolate")
        running = asyncio.create_task(one.run([world.agent("a", 5), world.agent("b")]))
        await asyncio.sleep(1)
        await one.shutdown(timeout=10)
        results = await running
        assert results[0] == "a"
        assert isinstance(results[1], TaskFailed)
        assert "shut down" in str(results[1])
        with pytest.raises(ShuttingDown):
            await one.run([world.agent("c")])
        await one.shutdown()
        assert world.begun == ["a"]

    played(main)


def test_after_async_with_there_is_no_new_work() -> None:
    async def main() -> None:
        async with scheduler() as one:
            assert await one.run([World().agent("a")]) == ["a"]
        with pytest.raises(ShuttingDown):
            await one.run([World().agent("a")])

    played(main)


def test_outside_of_asyncio_the_error_says_what_to_do() -> None:
    call = scheduler().run([World().agent("a")])
    with pytest.raises(NotRunning, match="trio is not supported"):
        call.send(None)  # what trio, or any other loop, would do


def test_a_thread_that_is_left_behind_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            await scheduler(timeout_s=1).run([World().agent("stuck", 60)])

    with caplog.at_level(logging.WARNING, "interlock"):
        played(main, stuck=1)
    assert [each for each in caplog.messages if "'stuck'" in each and "still running" in each]
