"""The limiter in virtual time: what it lets through, when, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from interlock import (
    AgentFailed,
    ImpossibleClaim,
    InvalidOption,
    Kind,
    LLMLimiter,
    Runtime,
    ShuttingDown,
    WouldBlockTheLoop,
)
from interlock.runtime.limits import allowance
from interlock.runtime.limits.quota_queue import QuotaQueue, QuotaWaiter
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate

ROUNDING = 1e-9
"""Times are sums of floating-point numbers."""


def now() -> float:
    return asyncio.get_running_loop().time()


def limiter(*args: Any, **options: Any) -> LLMLimiter:
    return LLMLimiter(*args, **options, clock=now)


class Calls:
    """Functions to be called, and when they were."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.made: list[Any] = []

    async def __call__(self, what: Any = None, **options: Any) -> Any:
        self.times.append(now())
        self.made.append(what)
        return what

    def most_in(self, window: float) -> int:
        """The most calls that any window of that length holds."""
        return max(
            sum(begin <= each < begin + window - ROUNDING for each in self.times)
            for begin in self.times
        )


def played(main: Callable[[], Coroutine[Any, Any, Any]], seed: int = 0) -> Any:
    run = simulate(main, seed=seed)
    value = run.value()
    assert not run.leaked
    assert not run.complaints
    return value


async def together(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in calls]
    return [each.result() for each in tasks]


async def asked(*calls: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any]]:
    """Have them ask one after another."""
    tasks = []
    for each in calls:
        tasks.append(asyncio.create_task(each))
        await settled()
    return tasks


async def settled() -> None:
    """Let everything happen that can happen now."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(5))
def test_300_calls_at_3_per_second_take_299_thirds_of_a_second(seed: int) -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(max_rps=3)
        results = await together(*(limit.call(calls, number) for number in range(300)))
        assert results == list(range(300))
        assert now() == calls.times[-1] == pytest.approx(299 / 3, abs=ROUNDING)
        assert calls.most_in(1.0) == 3
        gaps = [b - a for a, b in zip(calls.times, calls.times[1:], strict=False)]
        assert min(gaps) >= 1 / 3 - ROUNDING

    played(main, seed)


@pytest.mark.parametrize("seed", range(50))
def test_whenever_calls_come_and_go_no_window_holds_more_than_the_rate(seed: int) -> None:
    async def main() -> None:
        chance, calls = Random(seed), Calls()
        rate, burst = chance.choice(((3, 1), (5, 1), (4, 2), (10, 3), (0.5, 1)))
        per_minute = chance.choice((None, 20))
        limit = limiter(rate, burst=burst, requests_per_minute=per_minute)
        pending = []
        for number in range(60):
            pending.append(asyncio.create_task(limit.call(calls, number)))
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() * 2)
            if chance.random() < 0.2:
                chance.choice(pending).cancel()
        await asyncio.wait(pending)
        done = [each.result() for each in pending if not each.cancelled()]
        assert sorted(calls.made) == done  # each once, and none of the cancelled
        assert calls.most_in(1.0) <= max(rate, 1)
        assert calls.most_in(burst / rate) <= burst
        assert calls.most_in(60.0) <= (per_minute or 60 * rate)
        assert limit.waiting() == {}

    played(main, seed)


def test_whoever_asks_first_goes_first() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(2)
        await asyncio.wait(await asked(*(limit.call(calls, number) for number in range(20))))
        assert calls.made == list(range(20))

    played(main)


def test_after_a_rest_there_is_no_burst_to_make_up_for_it() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(2)
        await limit.call(calls)
        await asyncio.sleep(100)
        await together(*(limit.call(calls) for _ in range(3)))
        assert calls.times == pytest.approx([0, 100, 100.5, 101])

    played(main)


def test_a_burst_may_come_at_once_and_the_rate_holds_all_the_same() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(4, burst=3)
        await together(*(limit.call(calls) for _ in range(40)))
        assert calls.times[:3] == [0, 0, 0]
        assert calls.most_in(1.0) == 4
        assert now() == pytest.approx((40 - 3) / 4, abs=1)

    played(main)


def test_a_burst_above_the_rate_is_paid_for() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(1, burst=5)
        await together(*(limit.call(calls) for _ in range(10)))
        assert calls.times == pytest.approx([0] * 5 + [5] * 5)

    played(main)


def test_it_limits_how_often_calls_begin_and_not_how_many_run() -> None:  # pitfall 45
    async def main() -> None:
        running = most = 0

        async def slow() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(10)
            running -= 1

        limit = limiter(5)
        await together(*(limit.call(slow) for _ in range(30)))
        assert most == 30
        assert now() == pytest.approx(29 / 5 + 10)

    played(main)


def test_requests_per_minute_are_counted_for_each_model() -> None:
    async def main() -> None:
        limit = limiter(None, requests_per_minute=2)
        small, large = Calls(), Calls()
        await together(
            *(limit.call(small, model="small") for _ in range(5)),
            *(limit.of("large").call(large) for _ in range(3)),
        )
        assert small.times == pytest.approx([0, 0, 60, 60, 120])
        assert large.times == pytest.approx([0, 0, 60])

    played(main)


def test_models_share_the_rate_of_the_limiter() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(1)
        await together(*(limit.call(calls, model=each) for each in "abcd"))
        assert calls.times == pytest.approx([0, 1, 2, 3])

    played(main)


def test_a_model_that_has_to_wait_does_not_keep_others_waiting() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(10, requests_per_minute=1)
        await limit.call(calls, 1, model="a")
        waiting = asyncio.create_task(limit.call(calls, 2, model="a"))
        await settled()
        await limit.call(calls, 3, model="b")
        assert now() == pytest.approx(0.1)
        await waiting
        assert now() == pytest.approx(60)
        assert calls.made == [1, 3, 2]

    played(main)


def test_a_call_looks_at_no_model_that_nobody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[QuotaQueue] = []

    class Watched(QuotaQueue):
        def next(self, now: float, late: set[object]) -> QuotaWaiter | None:
            looks.append(self)
            return super().next(now, late)

    monkeypatch.setattr(allowance, "QuotaQueue", Watched)

    async def main() -> None:
        one, calls = limiter(None), Calls()
        for number in range(100):
            await one.call(calls, model=f"m{number}")
        looks.clear()
        await one.call(calls, model="m7")
        assert len(set(looks)) == 1

    played(main)


def test_the_oldest_call_of_all_models_goes_first() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(1)
        pending = []
        for number in range(12):
            call = limit.call(calls, number, model="abc"[number % 3])
            pending.append(asyncio.create_task(call))
            await asyncio.sleep(0.01)
        await asyncio.wait(pending)
        assert calls.made == list(range(12))

    played(main)


def test_tokens_per_minute_are_settled_with_what_was_really_used() -> None:
    async def main() -> None:
        limit = limiter(None, tokens_per_minute=1000)
        times = []

        async def uses(tokens: int) -> Any:
            times.append(now())
            await asyncio.sleep(1)
            return SimpleNamespace(usage=SimpleNamespace(total_tokens=tokens))

        await asyncio.wait(
            await asked(limit.of(tokens=900).call(uses, 300), limit.of(tokens=600).call(uses, 700))
        )
        assert times == pytest.approx([0, 1])  # only when the first had said that it used less
        await limit.of(tokens=100).call(uses, 1)
        assert times[2] == pytest.approx(60)  # 300 and 700 are all there is

    played(main)


def test_a_large_call_is_not_starved_by_small_ones() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(None, tokens_per_minute=100)
        pending = await asked(
            limit.of(tokens=50).call(calls, "first"),
            limit.of(tokens=90).call(calls, "large"),
            *(limit.of(tokens=10).call(calls, number) for number in range(5)),
        )
        await asyncio.wait(pending)
        assert calls.made[:2] == ["first", "large"]

    played(main)


def test_what_could_never_be_let_through_is_refused() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(tokens_per_minute=1000)
        with pytest.raises(ImpossibleClaim, match=r"quota of 'calls \(tokens\)' is 1000"):
            await limit.of(tokens=1001).call(calls)
        assert limit.waiting() == {}
        await limit.call(calls)

    played(main)


def test_a_limit_can_be_changed_while_calls_wait_for_it() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(None, requests_per_minute=1)
        waiting = await asked(*(limit.call(calls, model="m") for _ in range(4)))
        await asyncio.sleep(10)
        limit.set_limit("m", requests_per_minute=3)
        await asyncio.sleep(1)
        assert len(calls.times) == 3
        limit.set_limit("m")
        await asyncio.wait(waiting)
        assert now() == pytest.approx(11)

    played(main)


class TooMany(Exception):
    """As the libraries of providers raise it."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__("429")
        self.response = SimpleNamespace(headers=headers, status_code=429)


@pytest.mark.parametrize(
    "answer",
    [
        AgentFailed("slow down", retry_after=20),
        TooMany({"Retry-After": "20"}),
        TooMany({"retry-after-ms": "20000"}),
        SimpleNamespace(status_code=429, headers={"retry-after": "20"}),
    ],
)
def test_nobody_calls_a_model_before_a_retry_after_is_over(answer: Any) -> None:
    async def main() -> None:
        async def refused() -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        calls, limit = Calls(), limiter(1)
        before, *waiting = await asked(
            limit.of("m").call(refused),
            *(limit.of("m").call(calls, number) for number in range(2)),
            limit.of("other").call(calls, "other"),
        )
        # What follows for this one call is up to its caller.
        assert (before.exception() or before.result()) is answer
        await asyncio.wait(waiting)
        assert calls.made == ["other", 0, 1]
        assert calls.times == pytest.approx([1, 20, 21])

    played(main)


def test_a_hold_is_explained_and_never_made_shorter() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(1)
        assert limit.why("m") == ""
        limit.hold("30s", "m")
        limit.hold(5, "m")
        assert "m (Retry-After)" in limit.why("m")
        assert "enough again in 30 s" in limit.why("m")
        await limit.of("m").call(calls)
        assert now() == pytest.approx(30)

    played(main)


def test_why_says_what_the_next_call_waits_for() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(0.1, tokens_per_minute=10)
        await limit.of(tokens=8).call(calls)
        waiting = asyncio.create_task(limit.of(tokens=5).call(calls))
        await settled()
        assert limit.why().splitlines() == [
            "needs 1 of the rate max_rps (1 in 10 s); 0 left, enough again in 10 s",
            "needs 5 of the rate calls (tokens) (10 in 1 min); 2 left, enough again in 1 min",
        ]
        assert limit.waiting() == {"": 1}
        await waiting

    played(main)


def test_a_call_that_is_cancelled_takes_nothing_and_makes_room() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(1)
        pending = await asked(*(limit.call(calls, number) for number in range(5)))
        await asyncio.sleep(0.5)
        for each in pending[1:4]:
            each.cancel()
        await asyncio.wait(pending)
        assert calls.made == [0, 4]
        assert calls.times[-1] == pytest.approx(1)

    played(main)


def test_a_failure_is_raised_to_its_caller_and_to_nobody_else() -> None:
    async def main() -> None:
        async def fails() -> None:
            raise LookupError("gone")

        calls, limit = Calls(), limiter(2)
        failing = asyncio.create_task(limit.call(fails))
        assert await limit.call(calls, 1) == 1
        with pytest.raises(LookupError, match="gone"):
            await failing

    played(main)


class Odd(Exception):
    """An answer, or an error, that looks like nothing that is known."""

    retry_after = status = usage = property(lambda self: [self])


def test_no_answer_is_lost_and_no_error_replaced_by_what_cannot_be_read_off_it() -> None:
    async def main() -> None:
        one, odd = limiter(), Odd()

        async def returns() -> Odd:
            return odd

        async def raises() -> None:
            raise odd

        assert await one.call(returns) is odd
        with pytest.raises(Odd) as caught:
            await one.call(raises)
        assert caught.value is odd
        assert "Retry-After" not in one.why()

    played(main)


def test_when_it_is_closed_those_who_wait_are_told_and_what_runs_goes_on() -> None:
    async def main() -> None:
        async def slow() -> str:
            await asyncio.sleep(10)
            return "done"

        async with limiter(1) as limit:
            running = asyncio.create_task(limit.call(slow))
            waiting = asyncio.create_task(limit.call(slow))
            await asyncio.sleep(0.5)
        with pytest.raises(ShuttingDown):
            await waiting
        with pytest.raises(ShuttingDown):
            await limit.call(slow)
        assert await running == "done"

    played(main)


def test_a_blocking_wait_on_the_loop_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(WouldBlockTheLoop, match="await"):
            limiter().call_sync(int)

    played(main)


def test_a_task_that_had_to_wait_has_that_in_its_record() -> None:
    async def main() -> None:
        calls, limit = Calls(), limiter(0.1)

        async def agent() -> None:
            await limit.call(calls, model="m")
            await limit.call(calls, model="m")

        async with Runtime(ports=simulated_ports()) as rt:
            await rt.submit(agent, id="a")
            logged = [each async for each in _logged(rt)]
        assert logged == ["waited 10 s for its turn to call m"]

    async def _logged(rt: Runtime) -> Any:
        async for event in rt.events():
            if event.kind is Kind.LOGGED:
                yield event.fields["line"]
            if event.kind is Kind.SETTLED:
                break

    played(main)


def test_calls_of_several_tasks_share_one_allowance() -> None:  # pitfall 47
    async def main() -> None:
        calls, limit = Calls(), limiter(2)

        async def agent() -> None:
            for _ in range(5):
                await limit.call(calls)

        async with Runtime(8, ports=simulated_ports()) as rt:
            for _ in range(4):
                rt.submit(agent)
        assert calls.most_in(1.0) == 2
        assert calls.times[-1] == pytest.approx(19 / 2)

    played(main)


@pytest.mark.parametrize(
    "options",
    [
        {"max_rps": 0},
        {"max_rps": -1},
        {"max_rps": float("nan")},
        {"max_rps": float("inf")},
        {"max_rps": "3"},
        {"burst": 0},
        {"burst": 1.5},
        {"requests_per_minute": 0},
        {"tokens_per_minute": -5},
    ],
)
def test_impossible_limits_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        LLMLimiter(**options)


@pytest.mark.parametrize("options", [{"tokens": 0}, {"tokens": 1.5}, {"model": 7}])
def test_impossible_calls_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        LLMLimiter().of(**options)
