"""Circuit breakers, on the real Runtime in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from interlock import AgentFailed, Breaker, InvalidOption, Retry, Runtime, Task, TaskContext
from interlock.kernel import stimuli as s
from interlock.model.event import Event
from interlock.model.throttled import OpenBreaker
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate

NAME = "breaker:gpt"


class Service:
    """What the agents call: it works or it does not, and remembers who called when."""

    def __init__(self, *, up: bool = False, takes: float = 1.0) -> None:
        self.up = up
        self.takes = takes
        self.calls: list[tuple[float, str]] = []
        self.inside = 0
        self.most = 0

    async def call(self, ctx: TaskContext) -> str:
        self.calls.append((asyncio.get_running_loop().time(), ctx.task.id))
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.inside -= 1
        if not self.up:
            raise OSError("503")
        return "fine"


def play(
    main: Callable[[Runtime], Coroutine[Any, Any, None]],
    rule: Breaker | None = None,
    **options: Any,
) -> float:
    """Run it in a Runtime with one breaker; the virtual time it took."""

    async def run() -> None:
        limits = {NAME: rule or Breaker(failures=3, cool_down="30s")}
        async with Runtime(ports=simulated_ports(), limits=limits, **options) as rt:
            await main(rt)

    run_ = simulate(run, deadline=10_000)
    run_.value()
    assert not run_.leaked
    return run_.time


def submit(rt: Runtime, service: Service, count: int, **options: Any) -> list[Any]:
    tasks = [Task(f"t{n}", service.call, uses=NAME, **options) for n in range(count)]
    return [rt.submit(task) for task in tasks]


def test_it_opens_after_so_many_failures_in_a_row_and_then_lets_exactly_one_try() -> None:
    service = Service()

    async def main(rt: Runtime) -> None:
        submit(rt, service, 10)
        # Down for one probe, and up again for the next.
        asyncio.get_running_loop().call_at(50.0, setattr, service, "up", True)

    play(main, max_parallel=1)
    times = [at for at, _ in service.calls]
    assert times[:5] == [0.0, 1.0, 2.0, 33.0, 64.0]
    assert times[5:] == [65.0, 66.0, 67.0, 68.0, 69.0]


def test_only_one_probe_goes_through_however_many_wait_and_slots_are_free() -> None:
    service = Service()

    async def main(rt: Runtime) -> None:
        submit(rt, service, 3)
        await asyncio.sleep(2)
        service.most = 0
        asyncio.get_running_loop().call_at(80.0, setattr, service, "up", True)
        late = [rt.submit(service.call, uses=NAME, id=f"late{n}") for n in range(6)]
        await late[0]
        await late[1]
        assert service.most == 1
        for handle in late[2:]:
            assert (await handle).succeeded

    play(main, max_parallel=8)
    times = [at for at, _ in service.calls]
    assert times == [0.0] * 3 + [31.0, 62.0, 93.0] + [94.0] * 3


def test_nobody_slips_through_at_the_moment_of_the_last_failure() -> None:
    service = Service()

    async def main(rt: Runtime) -> None:
        handles = submit(rt, service, 4)
        await handles[2]
        assert rt.progress().running == 0
        assert rt.progress().waiting == 1
        handles[3].cancel()

    play(main, max_parallel=1)
    assert len(service.calls) == 3


def test_why_says_which_breaker_and_until_when() -> None:
    service = Service()

    async def main(rt: Runtime) -> None:
        handles = submit(rt, service, 5, timeout=None)
        await handles[2]
        await asyncio.sleep(10)
        why = rt.why("t3")
        assert isinstance(why.reasons[0], OpenBreaker)
        said = f"{NAME} has been open for 10 s: 3 failures in a row, the last one: OSError: 503;"
        assert f"{said} one attempt may try in 20 s" in str(why)
        assert why.clears_at == pytest.approx(33.0)
        await asyncio.sleep(20.5)
        assert "half-open for 0.5 s: one attempt has to succeed" in str(rt.why("t4"))
        service.up = True

    play(main, max_parallel=1)


def test_a_success_in_between_counts_from_the_beginning() -> None:
    service = Service()

    async def main(rt: Runtime) -> None:
        for up in (False, False, True, False, False, True):
            service.up = up
            await rt.submit(service.call, uses=NAME)

    assert play(main, max_parallel=1) == 6.0


def test_attempts_count_one_by_one_and_wait_for_the_breaker_too() -> None:
    service = Service()

    async def main(rt: Runtime) -> None:
        handle = rt.submit(service.call, uses=NAME, retry=Retry(4, backoff=0))
        asyncio.get_running_loop().call_at(10.0, setattr, service, "up", True)
        outcome = await handle
        assert outcome.succeeded
        assert outcome.attempts == 4

    assert play(main) == 34.0


def test_running_out_of_time_is_a_failure_and_being_cancelled_is_none() -> None:
    service = Service(takes=1000.0)

    async def main(rt: Runtime) -> None:
        first = submit(rt, service, 2, timeout=5)
        await first[0]
        await first[1]
        later = rt.submit(service.call, id="later", uses=NAME)
        await asyncio.sleep(1)
        assert rt.why("later").reasons == ()  # two are not enough
        later.cancel()
        await later
        last = rt.submit(service.call, id="last", uses=NAME, timeout=5)
        await last
        waits = rt.submit(service.call, id="waits", uses=NAME)
        await asyncio.sleep(1)
        assert isinstance(rt.why("waits").reasons[0], OpenBreaker)
        assert "it ran out of time" in str(rt.why("waits"))
        waits.cancel()

    play(main, max_parallel=1)


def test_a_probe_that_is_cancelled_says_nothing_and_another_one_follows() -> None:
    service = Service()

    async def main(rt: Runtime) -> None:
        handles = submit(rt, service, 5)
        await handles[2]
        service.up = True
        await asyncio.sleep(30.5)
        assert [name for _, name in service.calls][3:] == ["t3"]
        handles[3].cancel()
        assert (await handles[4]).succeeded
        assert service.calls[-1] == (61.5, "t4")

    play(main, max_parallel=3)


def test_what_started_before_the_outage_says_nothing_about_its_end() -> None:
    slow, service = Service(up=True, takes=31.5), Service()

    async def main(rt: Runtime) -> None:
        straggler = rt.submit(slow.call, id="straggler", uses=NAME)
        await submit(rt, service, 3)[2]
        waits = rt.submit(service.call, id="probe", uses=NAME)
        rt.submit(service.call, id="second", uses=NAME)
        assert (await straggler).succeeded
        assert service.inside == 1  # the probe is under way, and nobody else
        await waits
        assert isinstance(rt.why("second").reasons[0], OpenBreaker)
        service.up = True

    play(main)


def test_a_probe_that_waits_for_its_own_children_does_not_hang() -> None:
    service = Service()

    async def parent(ctx: TaskContext) -> int:
        service.up = True
        children = [Task(f"c{n}", service.call, uses=NAME) for n in range(3)]
        return len((await ctx.run(children)).failures)

    async def main(rt: Runtime) -> None:
        await submit(rt, service, 3)[2]
        outcome = await rt.submit(parent, uses=NAME)
        assert outcome.result == 0

    play(main)


def test_who_claims_it_in_mid_flight_counts_as_well() -> None:
    async def fails(ctx: TaskContext) -> None:
        await ctx.extend(uses=NAME)
        raise OSError("503")

    async def main(rt: Runtime) -> None:
        for _ in range(2):
            await rt.submit(fails)
        waits = rt.submit(fails)
        await waits
        assert rt.why("fails-3").state == "failed"
        blocked = rt.submit(fails, id="blocked")
        await asyncio.sleep(1)
        assert isinstance(rt.why("blocked").reasons[0], OpenBreaker)
        await blocked

    assert play(main) == pytest.approx(30.0)


def test_a_breaker_can_be_changed_and_added_while_the_run_goes_on() -> None:
    service = Service()

    async def main(rt: Runtime) -> None:
        rt.set_limit(NAME, Breaker(failures=1, cool_down=5))
        rt.set_limit("breaker:new", Breaker(failures=1, cool_down=5))
        await rt.submit(service.call, uses=[NAME, "breaker:new"])
        waits = rt.submit(service.call, id="waits", uses=["breaker:new", NAME])
        await asyncio.sleep(1)
        assert len(rt.why("waits").reasons) == 2
        await waits

    assert play(main) == 7.0


def test_every_change_is_in_the_record() -> None:
    service = Service()
    seen: list[Event] = []

    async def main(rt: Runtime) -> None:
        rt.listen(seen.append)
        handles = submit(rt, service, 4)
        await handles[2]
        service.up = True

    play(main, max_parallel=1)
    changes = [each.data for each in seen if isinstance(each.data, s.Throttle)]
    assert [each.more for each in changes] == [0, 1, None]
    assert changes[0].because == OpenBreaker(NAME, 3, "OSError: 503", 3.0, 33.0)


def test_an_open_breaker_stays_open_when_the_run_is_taken_up(tmp_path: Any) -> None:
    calls: list[str] = []

    async def call(ctx: TaskContext) -> None:
        calls.append(ctx.task.id)
        raise AgentFailed("503", retryable=False)

    async def run(resume: bool) -> None:
        limits = {NAME: Breaker(failures=1, cool_down="1h")}
        path = tmp_path / "journal.db"
        async with Runtime(1, tmp_path, path, resume, limits=limits) as rt:
            await rt.submit(call, id="first", uses=NAME)
            second = rt.submit(call, id="second", uses=NAME)
            if not resume:
                await rt.flush()
                rt._shell.suspend()  # as a signal does
                return
            assert isinstance(rt.why("second").reasons[0], OpenBreaker)
            second.cancel()

    asyncio.run(run(False))
    asyncio.run(run(True))
    assert calls == ["first"]


def test_a_name_has_one_limit() -> None:
    with pytest.raises(InvalidOption, match="a capacity and a breaker"):
        Runtime(capacity={NAME: 1}, limits={NAME: Breaker()})
    with pytest.raises(InvalidOption, match="it can be a Rate or a Breaker"):
        Runtime(limits={NAME: 3})  # type: ignore[dict-item]
    with pytest.raises(InvalidOption, match="1 or more"):
        Breaker(failures=0)


def test_a_breaker_that_counts_reports_opens_by_them_and_closes_by_an_attempt() -> None:
    service = Service()

    async def main(rt: Runtime) -> None:
        rt.set_limit(NAME, Breaker(failures=2, cool_down=30), counts="reports")
        for each in submit(rt, service, 4):
            assert not (await each).succeeded
        assert asyncio.get_running_loop().time() == 1  # their failures did not open it
        rt.report(NAME, "503")
        rt.report(NAME, None)
        rt.report(NAME, "503")
        assert (await rt.submit(Task("still", service.call, uses=NAME))).attempts == 1
        rt.report(NAME, "503 again")
        service.up = True
        late = rt.submit(Task("late", service.call, uses=NAME))
        await asyncio.sleep(29)
        assert "503 again" in str(late.why())
        assert (await late).succeeded
        assert asyncio.get_running_loop().time() == 33
        assert (await rt.submit(Task("after", service.call, uses=NAME))).succeeded
        assert asyncio.get_running_loop().time() == 34
        with pytest.raises(InvalidOption, match="no breaker 'other'"):
            rt.report("other", "503")

    play(main)
