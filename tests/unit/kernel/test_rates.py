"""Rates: in no window more than the quota, and given back by the clock alone."""

from __future__ import annotations

import pytest

from interlock.errors import ImpossibleClaim, InvalidOption, UnknownResource
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Resume
from interlock.model.claim import uses
from interlock.model.limits import Quota, Rate
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, resumed, started

PER_MINUTE = {"api": Rate(requests="3/min")}


def test_a_concurrency_limit_is_not_a_rate_limit() -> None:  # pitfall 45
    run = Judged(slots=100, rates=PER_MINUTE)
    run.submit(*(Task(f"t{n}", uses="api") for n in range(10)))
    while run.progress().waiting:
        # Every attempt ends in the very moment it started; the rate is the only limit.
        for name in run.running():
            run.ends(name)
        assert run.timer is not None
        run.until(run.timer)
    assert [at for at, _ in run.starts] == [0.0] * 3 + [60.0] * 3 + [120.0] * 3 + [180.0]


def test_no_sliding_window_holds_more_than_the_quota() -> None:
    quota = Quota(4, 10.0)
    run = Judged(slots=100, rates={"api": Rate(quota)})
    for number, at in enumerate([0, 1, 1, 7, 8, 9, 9, 10, 11, 11, 12, 19, 25]):
        run.until(at)
        run.submit(Task(f"t{number}", uses="api"))
    run.until(100)
    starts = [at for at, _ in run.starts]
    assert len(starts) == 13
    for begin in starts:
        assert sum(begin <= at < begin + quota.window for at in starts) <= quota.amount


def test_what_was_taken_at_the_start_does_not_come_back_with_the_end() -> None:
    run = Judged(rates={"api": Rate("1/min")})
    run.submit(Task("a", uses="api"), Task("b", uses="api"))
    assert started(run.ends("a", at=5)) == []
    assert started(run.until(59.9)) == []
    assert started(run.until(60)) == ["b"]


def test_amounts_are_counted_apart_from_requests() -> None:
    run = Judged(rates={"model": Rate(requests="10/min", tokens="1k/min")})
    tasks = [Task(f"t{n}", uses=["model", "model.tokens=400"]) for n in range(3)]
    assert len(started(run.submit(*tasks))) == 2
    assert started(run.submit(Task("small", uses=["model", "model.tokens=200"]))) == ["small"]
    assert len(started(run.until(60))) == 1


def test_a_task_that_only_lacks_a_rate_holds_nothing_while_it_waits() -> None:
    run = Judged(slots=1, rates={"api": Rate("1/min")})
    run.submit(Task("a", uses="api", writes="x"), Task("b", uses="api", writes="x"))
    assert started(run.ends("a")) == []
    assert started(run.submit(Task("c", writes="x"))) == ["c"]


def test_a_hold_lets_nothing_through_before_its_time() -> None:
    run = Judged(rates=PER_MINUTE)
    run.submit(Task("a", uses="api"))
    run.handle(s.HoldRate("api", 90.0))
    assert started(run.submit(Task("b", uses="api"))) == []
    assert started(run.until(89.9)) == []
    assert started(run.until(90)) == ["b"]


def test_a_hold_is_never_made_shorter() -> None:
    run = Judged(rates=PER_MINUTE)
    run.handle(s.HoldRate("api", 30.0))
    run.handle(s.HoldRate("api", 10.0))
    run.submit(Task("a", uses="api"))
    assert started(run.until(29.9)) == []
    assert started(run.until(30)) == ["a"]


def test_taking_in_mid_flight_waits_with_the_slot_in_hand() -> None:
    run = Judged(slots=1, rates={"api": Rate("1/min")})
    run.submit(Task("a"))
    assert resumed(run.take("a", uses("api"), request=1)) == ["a"]
    assert resumed(run.take("a", uses("api"), request=2)) == []
    assert started(run.submit(Task("b"))) == []
    assert run.running() == ["a"]
    assert Resume("a", 1, 2, (), 0) in run.until(60)


def test_whoever_takes_in_mid_flight_goes_before_whoever_starts() -> None:
    run = Judged(rates={"api": Rate("1/min")})
    run.submit(Task("a", uses="api"))
    run.submit(Task("b", uses="api", priority=9))
    run.take("a", uses("api"))
    told = run.until(60)
    assert (resumed(told), started(told)) == (["a"], [])
    assert started(run.until(120)) == ["b"]


def test_what_was_really_used_replaces_what_was_taken() -> None:
    run = Judged(rates={"model": Rate(tokens="1000/min")})
    run.submit(Task("a"), Task("b"))
    run.take("a", uses("model.tokens", 900))
    assert resumed(run.take("b", uses("model.tokens", 500))) == []
    told = run.handle(s.Used("a", run.tokens["a"], 1, "model.tokens", 300))
    assert resumed(told) == ["b"]


def test_using_more_than_was_taken_holds_the_next_back() -> None:
    run = Judged(rates={"model": Rate(tokens="1000/min")})
    run.submit(Task("a"), Task("b"))
    run.take("a", uses("model.tokens", 100))
    run.handle(s.Used("a", run.tokens["a"], 1, "model.tokens", 1500))
    assert resumed(run.take("b", uses("model.tokens", 1))) == []
    assert resumed(run.until(60)) == ["b"]


def test_a_rate_is_the_same_for_all_who_share_it() -> None:  # pitfall 47
    run = Judged(rates={"api": Rate("2/min")})
    run.submit(Task("a", uses="api"), group="one")
    run.submit(Task("b", uses="api"), group="two")
    assert started(run.submit(Task("c", uses="api"), group="three")) == []


@pytest.mark.parametrize("stimulus", [s.HoldRate("gpu", 9.0), s.HoldRate("none", 9.0)])
def test_only_a_rate_can_be_held(stimulus: s.HoldRate) -> None:
    run = Judged(capacities={"gpu": 1}, rates=PER_MINUTE)
    run.refuses(stimulus, UnknownResource, "not a rate")


def test_more_than_the_quota_could_never_start() -> None:
    run = Judged(rates=PER_MINUTE)
    run.refuses(s.Submit((Task("a", uses="api=4"),)), ImpossibleClaim, "quota of 3")
    run.refuses(s.Submit((Task("a", uses="api!"),)), InvalidOption, "in amounts")
    run.submit(Task("a"))
    run.refuses(s.Take("a", 1, 1, (uses("api", 4),)), ImpossibleClaim, "quota of 3")
    run.refuses(s.Take("a", 1, 1, (uses("gpu"),)), UnknownResource, "not a rate")
    run.refuses(s.Used("a", 1, 1, "api", -1), InvalidOption, "-1")
