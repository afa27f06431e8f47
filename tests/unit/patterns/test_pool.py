"""Tasks for the agents of a pool: one answer for each, whatever becomes of the others."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any

import pytest

from interlock import (
    AgentFailed,
    AgentPool,
    Breaker,
    InvalidOption,
    Kind,
    NotRunning,
    ShuttingDown,
    TaskContext,
    cancelled,
)
from interlock.testing.simulated_backends import Blocking
from tests.unit.patterns.groups import played
from tests.unit.patterns.pools import Cast, agents, of, pool_of, raising, resting, stuck, tasks


def _busy(pool: AgentPool) -> tuple[int, int]:
    status = pool.get_pool_status()["agents"]["a"]
    return status["running"], status["stopping"]


async def _fails(ctx: TaskContext) -> None:
    raise OSError("line busy")


@pytest.mark.parametrize("seed", range(5))
def test_one_failing_task_of_four_leaves_three_results_in_order(seed: int) -> None:
    async def main() -> None:
        delays = [1.0, 2.0, 3.0, 4.0]
        random.Random(seed).shuffle(delays)
        cast = Cast(**{name: resting(d, name) for name, d in zip("abcd", delays, strict=True)})
        cast.does["b"] = raising(OSError("line busy"))
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents(*"abcd"))
            found = await pool.run_parallel_tasks(tasks(*"abcd"))
        assert of(found, "agent_id") == [*"abcd"]
        assert of(found, "status") == ["success", "error", "success", "success"]
        assert of(found, "output") == ["a", None, "c", "d"]
        assert of(found, "error") == [None, "OSError: line busy", None, None]
        assert found[0]["latency_ms"] == pytest.approx(delays[0] * 1000)
        assert all(type(each["latency_ms"]) is int for each in found)
        assert set(found[0]) == {"agent_id", "status", "output", "latency_ms", "tokens", "error"}

    played(main, seed)


def test_an_unknown_agent_is_an_error_entry_and_the_others_run() -> None:
    async def main() -> None:
        async with pool_of() as pool:
            await pool.spawn_agents(agents("a", "b"))
            found = await pool.run_parallel_tasks(tasks("a", "nobody", "b"))
            assert of(found, "status") == ["success", "error", "success"]
            assert found[1]["error"] == "there is no agent 'nobody'; the pool has 'a', 'b'"
            assert of(await pool.run_parallel_tasks(tasks("nobody")), "status") == ["error"]
            assert await pool.run_parallel_tasks([]) == []

    played(main)


def test_an_agent_has_its_prompt_its_arguments_and_what_it_used_is_counted() -> None:
    async def agent(ctx: TaskContext, tone: str) -> str:
        ctx.usage(tokens_in=100, tokens_out=20)
        return f"{ctx.prompt} {tone}"

    async def main() -> None:
        async with pool_of(lambda entry: agent) as pool:
            await pool.spawn_agents(agents("a"))
            kind, wrong = await pool.run_parallel_tasks(
                [
                    {"agent_id": "a", "prompt": "hi", "session_id": None, "kwargs": {"tone": "!"}},
                    {"agent_id": "a", "prompt": "hi", "kwargs": {"colour": "red"}},
                ]
            )
            assert (kind["output"], kind["tokens"]) == ("hi !", 120)
            assert wrong["status"] == "error"
            assert "colour" in wrong["error"]

    played(main)


def test_a_timeout_counts_from_the_start_of_work_and_hits_that_task_alone() -> None:
    async def main() -> None:
        cast = Cast(a=resting(4), b=resting(4), c=resting(100))
        async with pool_of(cast, max_concurrent=1) as pool:
            await pool.spawn_agents(agents(*"abc"))
            found = await pool.run_parallel_tasks(tasks(*"abc"), timeout=5)
            assert of(found, "status") == ["success", "success", "timeout"]
            assert found[2]["latency_ms"] == pytest.approx(5000)
            assert found[2]["error"]
            status = pool.get_pool_status()["agents"]["c"]
            assert (status["status"], status["running"]) == ("running", 0)
            assert status["consecutive_failures"] == 1

    played(main)


def test_a_thread_that_goes_on_after_its_timeout_is_seen_until_it_ends() -> None:
    async def slow() -> str:
        await asyncio.sleep(60)
        return "late"

    async def main() -> None:
        async with pool_of(lambda entry: lambda: Blocking(slow()), grace=100) as pool:
            await pool.spawn_agents(agents("a"))
            (found,) = await pool.run_parallel_tasks(tasks("a"), timeout=5)
            assert found["status"] == "timeout"
            assert _busy(pool) == (0, 1)
            # The session is its own until then: nobody else speaks in it.
            (second,) = await pool.run_parallel_tasks(tasks("a"), timeout=100)
            assert asyncio.get_running_loop().time() == pytest.approx(120)
            assert second["output"] == "late"
            assert _busy(pool) == (0, 0)

    played(main)


def test_the_messages_of_a_session_are_answered_one_at_a_time_in_their_order() -> None:
    seen: list[tuple[str | None, list[str]]] = []

    async def remembers(ctx: TaskContext) -> str:
        seen.append((ctx.prompt, [each.content for each in ctx.session.messages]))
        await asyncio.sleep(random.Random(str(ctx.prompt)).random())
        return f"re {ctx.prompt}"

    async def main() -> None:
        cast = Cast(a=remembers, b=resting(1))
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents("a", "b"))
            found = await pool.run_parallel_tasks(
                [
                    *tasks("a", prompt="1"),
                    *tasks("b"),
                    *tasks("a", prompt="2"),
                    *tasks("a", prompt="3"),
                ]
            )
            assert of(found, "output") == ["re 1", "done", "re 2", "re 3"]
            assert cast.most_of["a"] == 1
            assert cast.most == 2
        assert seen == [
            ("1", []),
            ("2", ["1", "re 1"]),
            ("3", ["1", "re 1", "2", "re 2"]),
        ]

    for seed in range(10):
        seen.clear()
        played(main, seed)


def test_sessions_are_isolated_and_belong_to_one_agent() -> None:
    async def says(ctx: TaskContext) -> tuple[str, int]:
        await asyncio.sleep(1)
        return ctx.session.session_id, len(ctx.session.messages)

    async def main() -> None:
        cast = Cast(a=says, b=says)
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents("a", "b", model="m", system_prompt="Be kind."))
            first = await pool.run_parallel_tasks([*tasks("a", "b"), *tasks("a", session_id="s")])
            names = [name for name, _ in of(first, "output")]
            assert len(set(names)) == 3
            assert cast.most_of["a"] == 2  # two sessions, at the same time
            again = await pool.run_parallel_tasks(
                [*tasks("a", session_id="s"), *tasks("b", session_id="s"), *tasks("b")]
            )
            assert again[0]["output"] == ("s", 2)
            assert again[1]["error"] == "session 's' belongs to agent 'a', not 'b'"
            assert again[2]["output"] == (names[1], 2)
            kept = dict(pool.runtime.records("sessions").items())
            assert kept["s"] == {
                "agent_id": "a",
                "session_type": "pool",
                "model": "m",
                "system_prompt": "Be kind.",
            }

    played(main)


def test_what_failed_or_came_too_late_was_not_said() -> None:
    async def late(ctx: TaskContext) -> str:
        if ctx.prompt == "fail":
            raise OSError
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return "too late"
        return "said"

    async def look(ctx: TaskContext) -> int:
        return len(ctx.session.messages)

    async def main() -> None:
        cast = Cast(a=late)
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents("a"))
            await pool.run_parallel_tasks(tasks("a", prompt="fail"))
            await pool.run_parallel_tasks(tasks("a"), timeout=5)
            cast.does["a"] = look
            assert of(await pool.run_parallel_tasks(tasks("a")), "output") == [0]

    played(main)


@pytest.mark.parametrize(
    "wrong",
    [
        {"agent_id": "a"},
        {"prompt": "x"},
        {"agent_id": "a", "prompt": 3},
        {"agent_id": "a", "prompt": "x", "session_id": " "},
        {"agent_id": "a", "prompt": "x", "kwargs": [1]},
        {"agent_id": "a", "prompt": "x", "kwargs": {1: 2}},
        {"agent_id": "a", "prompt": "x", "kwargs": {"ctx": 2}},
        "a",
    ],
)
def test_what_is_no_task_is_refused_before_anything_runs(wrong: Any) -> None:
    async def main() -> None:
        cast = Cast()
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents("a"))
            with pytest.raises(InvalidOption, match="task number 1"):
                await pool.run_parallel_tasks([*tasks("a"), wrong])
            with pytest.raises(InvalidOption, match="timeout"):
                await pool.run_parallel_tasks(tasks("a"), timeout=-1)
            assert not cast.prompts

    played(main)


async def test_the_status_may_be_asked_for_in_a_thread_while_agents_come() -> None:
    never = asyncio.Event()

    async def waits(entry: dict[str, Any]) -> None:
        await never.wait()

    async with AgentPool(agent_factory=waits) as pool, asyncio.TaskGroup() as spawning:

        def spawn(*ids: str) -> asyncio.Task[Any]:
            return spawning.create_task(pool.spawn_agents(agents(*ids)))

        started = [spawn(*(f"a{n}" for n in range(100)))]
        looking = asyncio.ensure_future(asyncio.to_thread(pool.get_pool_status))
        while not looking.done():
            started.append(spawn(f"b{len(started)}"))
            await asyncio.sleep(0)
        status = await looking
        assert status["total_agents"] == len(status["agents"]) >= 100
        for each in started:
            each.cancel()


def test_with_fail_fast_the_first_failure_cancels_the_others() -> None:
    async def main() -> None:
        cast = Cast(a=resting(0.5), b=raising(OSError("x")), c=resting(100))
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents(*"abc"))
            found = await pool.run_parallel_tasks(tasks(*"abc"), fail_fast=True)
            assert of(found, "status") == ["success", "error", "cancelled"]
            assert asyncio.get_running_loop().time() < 2

    played(main)


def test_whoever_stops_waiting_cancels_the_work_and_the_status_is_truthful() -> None:
    async def main() -> None:
        cast = Cast(a=resting(100), b=resting(100), c=resting(100))
        async with pool_of(cast, max_concurrent=2) as pool:
            await pool.spawn_agents(agents(*"abc"))
            batch = asyncio.create_task(pool.run_parallel_tasks(tasks(*"abc")))
            await asyncio.sleep(1)
            busy = pool.get_pool_status()["agents"]
            assert [busy[each]["running"] for each in "abc"] == [1, 1, 0]
            batch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await batch
            free = pool.get_pool_status()["agents"]
            assert [free[each]["running"] for each in "abc"] == [0, 0, 0]
            assert {each["status"] for each in free.values()} == {"running"}
            assert {each["consecutive_failures"] for each in free.values()} == {0}
            cast.does.clear()
            found = await pool.run_parallel_tasks(tasks(*"abc"))
            assert of(found, "status") == ["success"] * 3

    played(main)


def test_shutdown_of_four_stuck_agents_takes_its_budget_once_and_reports_them() -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("abcd", stuck))
        pool = pool_of(cast)
        await pool.spawn_agents(agents(*"abcde"))
        batch = asyncio.create_task(pool.run_parallel_tasks(tasks(*"abcd")))
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        assert await pool.shutdown(timeout=1.0) == [*"abcd"]
        assert asyncio.get_running_loop().time() - began == pytest.approx(1.0)
        assert of(await batch, "status") == ["cancelled"] * 4
        status = pool.get_pool_status()
        assert (status["total_agents"], status["agents"]) == (0, {})
        assert status["shutdown_requested"]
        await asyncio.sleep(3600)  # they end at last

    played(main)


def test_shutdown_cancels_what_runs_empties_the_pool_and_refuses_what_comes_after() -> None:
    async def main() -> None:
        cast = Cast(a=resting(100))
        pool = pool_of(cast, max_concurrent=1)
        await pool.shutdown()  # nothing was there yet
        pool = pool_of(cast, max_concurrent=1)
        await pool.spawn_agents(agents("a", "b"))
        batch = asyncio.create_task(pool.run_parallel_tasks(tasks("a", "b")))
        await asyncio.sleep(1)
        async with asyncio.TaskGroup() as both:
            ends = [both.create_task(pool.shutdown()) for _ in range(2)]
        assert [each.result() for each in ends] == [[], []]
        assert of(await batch, "status") == ["cancelled", "cancelled"]
        assert await pool.shutdown() == []
        with pytest.raises(ShuttingDown):
            await pool.run_parallel_tasks(tasks("a"))
        with pytest.raises(ShuttingDown):
            await pool.spawn_agents(agents("c"))
        assert pool.get_pool_status()["total_agents"] == 0
        assert asyncio.get_running_loop().time() == 1
        with pytest.raises(NotRunning):
            _ = pool.runtime

    played(main)


def test_during_a_shutdown_agents_that_have_stopped_are_terminated() -> None:
    async def main() -> None:
        cast = Cast(a=stuck)
        pool = pool_of(cast)
        await pool.spawn_agents(agents("a", "b"))
        batch = asyncio.create_task(pool.run_parallel_tasks(tasks("a")))
        await asyncio.sleep(1)
        ending = asyncio.create_task(pool.shutdown(timeout=10))
        await asyncio.sleep(1)
        status = pool.get_pool_status()["agents"]
        assert _busy(pool) == (0, 1)
        assert [status[each]["status"] for each in "ab"] == ["running", "terminated"]
        assert await ending == ["a"]
        await batch
        await asyncio.sleep(3600)

    played(main)


def test_leaving_the_block_by_an_error_cancels_what_runs() -> None:
    async def main() -> None:
        cast = Cast(a=resting(100))
        with pytest.raises(LookupError):
            async with pool_of(cast) as pool:
                await pool.spawn_agents(agents("a"))
                batch = asyncio.create_task(pool.run_parallel_tasks(tasks("a")))
                await asyncio.sleep(1)
                raise LookupError
        assert of(await batch, "status") == ["cancelled"]
        assert asyncio.get_running_loop().time() == 1

    played(main)


def test_three_failures_in_a_row_mark_an_agent_and_a_success_unmarks_it() -> None:
    async def main() -> None:
        cast = Cast(a=raising(OSError("x")))
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents("a", "b"))
            for count in (1, 2, 3, 4):
                # It may be asked all the same, and answers with an error.
                assert of(await pool.run_parallel_tasks(tasks("a", "b")), "status") == [
                    "error",
                    "success",
                ]
                status = pool.get_pool_status()["agents"]["a"]
                assert status["consecutive_failures"] == count
                assert status["status"] == ("error" if count >= 3 else "running")
            assert pool.get_pool_status()["agents"]["b"]["status"] == "running"
            cast.does.clear()
            await pool.run_parallel_tasks(tasks("a"))
            status = pool.get_pool_status()["agents"]["a"]
            assert (status["status"], status["consecutive_failures"]) == ("running", 0)
            assert status["uptime_s"] == pytest.approx(4)

    played(main)


def test_a_cancelled_caller_returns_when_the_agents_have_stopped() -> None:
    async def slow_to_stop(ctx: TaskContext) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)

    async def main() -> None:
        cast = Cast(a=slow_to_stop, b=resting(100))
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents("a", "b", "c"))
            batch = asyncio.create_task(pool.run_parallel_tasks(tasks("a", "b", "a", "c")))
            await asyncio.sleep(1)
            batch.cancel()
            await asyncio.sleep(2)
            assert not batch.done()
            batch.cancel()  # once more: it still waits
            with pytest.raises(asyncio.CancelledError):
                await batch
            assert asyncio.get_running_loop().time() == pytest.approx(6)
            assert not +cast.inside
            assert pool.get_pool_status()["agents"]["a"]["stopping"] == 0

    played(main)


def test_a_cancelled_caller_does_not_wait_longer_than_the_grace() -> None:
    async def main() -> None:
        pool = pool_of(Cast(a=stuck), grace=10)
        await pool.spawn_agents(agents("a"))
        batch = asyncio.create_task(pool.run_parallel_tasks(tasks("a")))
        await asyncio.sleep(1)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        assert asyncio.get_running_loop().time() == pytest.approx(11)
        assert pool.get_pool_status()["agents"]["a"]["stopping"] == 1
        assert await pool.shutdown(1) == ["a"]
        await asyncio.sleep(3600)

    played(main)


def test_a_cancelled_caller_waits_for_agents_in_threads_too() -> None:
    begun, ended = threading.Event(), threading.Event()

    def blocking(ctx: TaskContext) -> None:
        begun.set()
        while not cancelled():
            ended.wait(0.005)
        ended.wait(0.2)
        ended.set()

    async def main() -> None:
        async with AgentPool(agent_factory=lambda entry: blocking) as pool:
            await pool.spawn_agents(agents("a"))
            batch = asyncio.create_task(pool.run_parallel_tasks(tasks("a")))
            await asyncio.to_thread(begun.wait)
            batch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await batch
            assert ended.is_set()
            assert pool.runtime.running() == ()

    asyncio.run(main())


def test_latency_and_uptime_are_whole_numbers() -> None:
    async def main() -> None:
        async with pool_of(Cast(a=resting(0.7306, "a"))) as pool:
            await pool.spawn_agents(agents("a"))
            assert type(pool.get_pool_status()["agents"]["a"]["uptime_s"]) is int
            [found] = await pool.run_parallel_tasks(tasks("a"))
            [refused] = await pool.run_parallel_tasks(tasks("z"))
            assert type(found["latency_ms"]) is type(refused["latency_ms"]) is int
            assert (found["latency_ms"], refused["latency_ms"]) == (731, 0)
            assert type(pool.get_pool_status()["agents"]["a"]["uptime_s"]) is int

    played(main)


class HttpError(Exception):
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code
        super().__init__(f"HTTP {status_code}")


class RateLimitError(Exception):
    """As model libraries name it."""


@pytest.mark.parametrize(
    "error",
    [ValueError("no such file"), OSError("line busy"), HttpError(400), AgentFailed("no")],
)
def test_errors_of_agents_open_no_breaker_and_refuse_no_task_of_their_batch(
    error: Exception,
) -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("abcd", raising(error)))
        async with pool_of(cast, max_concurrent=2) as pool:
            await pool.spawn_agents(agents(*"abcdefgh", model="m"))
            found = await pool.run_parallel_tasks(tasks(*"abcdefgh"))
            assert of(found, "status") == ["error"] * 4 + ["success"] * 4
            assert set(cast.prompts) == {*"abcdefgh"}
            assert await pool.spawn_agents(agents("z", model="m")) == {"z": "running"}
            assert asyncio.get_running_loop().time() == 2  # it did not wait for a cool-down

    played(main)


def test_timeouts_open_no_breaker() -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("abcd", resting(100)))
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents(*"abcde", model="m"))
            found = await pool.run_parallel_tasks(tasks(*"abcd"), timeout=5)
            assert of(found, "status") == ["timeout"] * 4
            assert await pool.spawn_agents(agents("z", model="m")) == {"z": "running"}
            assert of(await pool.run_parallel_tasks(tasks("e")), "status") == ["success"]
            assert asyncio.get_running_loop().time() == 5

    played(main)


def _caused(error: Exception) -> Exception:
    wrapped = RuntimeError("the call failed")
    wrapped.__cause__ = error
    return wrapped


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("gone"),
        HttpError(429),
        HttpError(503),
        RateLimitError("slow down"),
        AgentFailed("busy", retry_after=5),
        AgentFailed("busy", rate="openai", retryable=False),
        _caused(ConnectionRefusedError("gone")),
        ExceptionGroup("both", [ValueError("x"), ConnectionError("gone")]),
    ],
)
def test_an_outage_stops_spawning_and_refuses_nothing_that_a_batch_has_accepted(
    error: Exception,
) -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("abc", raising(error)))
        rule = Breaker(failures=3, cool_down=30)
        async with pool_of(cast, max_concurrent=3, breaker=rule) as pool:
            await pool.spawn_agents(agents(*"abcdef", model="m"))
            found = await pool.run_parallel_tasks(tasks(*"abcdef"))
            assert of(found, "status") == ["error"] * 3 + ["success"] * 3
            spawning = asyncio.create_task(pool.spawn_agents(agents("y", "z", model="m")))
            other = await pool.spawn_agents(agents("o", model="other"))
            assert other == {"o": "running"}
            await asyncio.sleep(29)
            assert pool.get_pool_status()["agents"]["z"]["status"] == "pending"
            assert "3 failures in a row" in str(pool.runtime.why("spawn z"))
            assert of(await pool.run_parallel_tasks(tasks("d")), "status") == ["success"]
            assert await spawning == {"y": "running", "z": "running"}
            assert asyncio.get_running_loop().time() == pytest.approx(31, abs=1)

    played(main)


def test_why_explains_what_waits_and_the_events_tell_of_everything() -> None:
    async def main() -> None:
        cast = Cast(a=resting(10))
        async with pool_of(cast) as pool:
            await pool.spawn_agents(agents("a"))
            seen: list[tuple[Kind, str]] = []
            pool.runtime.listen(lambda event: seen.append((event.kind, event.task_id)))
            batch = asyncio.create_task(pool.run_parallel_tasks(tasks("a", "a")))
            await asyncio.sleep(1)
            assert "a#1 has held session a@" in str(pool.runtime.why("a#2"))
            await batch
            assert (Kind.STARTED, "a#2") in seen
            assert (Kind.SETTLED, "a#2") in seen

    played(main)


def test_an_agent_that_runs_out_of_memory_is_an_error_entry_like_any_other() -> None:
    async def out(ctx: TaskContext) -> None:
        raise MemoryError

    async def main() -> None:
        async with pool_of(Cast(a=out)) as pool:
            await pool.spawn_agents(agents("a", "b"))
            found = await pool.run_parallel_tasks(tasks("a", "b"))
            assert of(found, "status") == ["error", "success"]
            assert found[0]["error"] == "MemoryError"

    played(main)


def test_calls_may_be_repeated_and_overlap() -> None:
    async def main() -> None:
        cast = Cast(a=resting(1), b=resting(1))
        pool = pool_of(cast)
        async with asyncio.TaskGroup() as both:
            both.create_task(pool.spawn_agents(agents("a")))
            both.create_task(pool.spawn_agents(agents("b")))
        async with asyncio.TaskGroup() as both:
            found = [both.create_task(pool.run_parallel_tasks(tasks("a", "b"))) for _ in range(3)]
        assert all(of(each.result(), "status") == ["success"] * 2 for each in found)
        assert asyncio.get_running_loop().time() == 3
        await pool.shutdown()

    played(main)


def test_an_agent_may_ask_another_one_of_its_pool_also_when_there_is_one_slot() -> None:
    async def main() -> None:
        cast = Cast()
        async with pool_of(cast, max_concurrent=1) as pool:

            async def asks(ctx: TaskContext) -> Any:
                (found,) = await pool.run_parallel_tasks(tasks(str(ctx.prompt), prompt="help"))
                return found["output"] or found["error"]

            cast.does["a"] = asks
            await pool.spawn_agents(agents("a", "b"))
            (found,) = await pool.run_parallel_tasks(tasks("a", prompt="b"))
            assert found["output"] == "b: help"
            # Its own session is its own until it has answered: that wait would never end.
            (found,) = await pool.run_parallel_tasks(tasks("a", prompt="a"))
            assert "WouldDeadlock" in found["error"]

    played(main)
