"""Several waits of one attempt at once, as an agent has that does two things side by side."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from interlock.errors import InvalidOption
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Instruction, Resume
from interlock.model.claim import uses, write
from interlock.model.limits import Rate
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, denied, resumed, started


def requests(told: Iterable[Instruction]) -> list[int]:
    return sorted(each.request for each in told if isinstance(each, Resume))


def test_the_slot_is_lent_once_and_comes_back_with_the_last_of_several_waits() -> None:
    run = Judged(slots=2, rates={"api": Rate("1/min")})
    run.submit(Task("a", writes="x", uses="api"), Task("holder", writes="y"))
    run.take("a", uses("api"), request=1)
    assert sorted(run.running()) == ["a", "holder"]
    run.submit(Task("b", writes="z"), Task("c"))
    assert started(run.asks("a", request=2)) == ["b"]
    assert started(run.extend("a", write("y"), request=3)) == []
    # It still waits for y, so the answer comes without a slot.
    assert requests(run.handle(s.Answer("a", 2))) == [2]
    assert (run.state("a"), run.running()) == (State.RUNNING, ["holder", "b"])
    assert started(run.ends("b")) == ["c"]
    told = run.ends("holder")
    assert (requests(told), run.running()) == ([3], ["a", "c"])
    assert requests(run.until(60)) == [1]


def test_the_last_of_several_waits_needs_a_slot() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"))
    run.asks("a", request=1)
    run.submit(Task("b", writes="y"))
    run.extend("a", write("y"), request=2)
    run.submit(Task("c"))
    run.handle(s.Answer("a", 1))
    told = run.ends("b")
    assert (requests(told), started(told), run.running()) == ([2], [], ["a"])


def test_a_parent_that_waits_for_each_child_apart_keeps_no_slot_from_them() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"))
    run.child("a", Task("one"), Task("two"))
    run.awaits("a", "one", request=1)
    run.awaits("a", "two", request=2)
    told = run.ends("one")
    assert (requests(told), started(told)) == ([1], ["two"])
    assert requests(run.ends("two")) == [2]
    assert run.running() == ["a"]


def test_a_rate_that_comes_back_while_the_slot_is_lent_is_taken_without_it() -> None:
    run = Judged(slots=1, rates={"api": Rate("1/min")})
    run.submit(Task("a", uses="api"), Task("b"))
    run.take("a", uses("api"), request=1)
    assert started(run.asks("a", request=2)) == ["b"]
    assert requests(run.until(60)) == [1]
    assert (run.state("a"), run.running()) == (State.NEEDS_YOU, ["b"])
    assert resumed(run.handle(s.Answer("a", 2))) == []
    assert requests(run.ends("b")) == [2]
    assert run.state("a") is State.RUNNING


def test_what_is_free_is_granted_beside_an_open_wait_without_a_slot() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"))
    assert started(run.asks("a", request=1)) == ["b"]
    assert requests(run.extend("a", write("x"), request=2)) == [2]
    assert run.running() == ["b"]


def test_two_requests_granted_in_one_step_take_one_slot() -> None:
    run = Judged(slots=2)
    run.submit(Task("a", writes="x"), Task("b", writes="y"), Task("c", writes="z"))
    run.asks("a", request=1)
    run.extend("a", write("y"), request=2)
    run.extend("a", write("z"), request=3)
    run.handle(s.Answer("a", 1))
    ends = (s.Ended("b", run.tokens["b"]), s.Ended("c", run.tokens["c"]))
    assert requests(run.handle(s.Reports(ends))) == [2, 3]
    run.ends("a")
    assert run.holders() == []
    assert started(run.submit(Task("d"), Task("e"))) == ["d", "e"]


def test_an_attempt_that_ends_leaves_none_of_its_waits_behind() -> None:
    run = Judged(slots=3)
    run.submit(Task("a"), Task("b", writes="y"), Task("c", writes="z"))
    run.extend("a", write("y"), request=1)
    run.extend("a", write("z"), request=2)
    run.asks("a", request=3)
    run.ends("a")
    run.submit(Task("d", writes="y"), Task("e", writes="z"))
    assert (started(run.ends("b")), started(run.ends("c"))) == (["d"], ["e"])


@pytest.mark.parametrize("second", [uses("gpu"), uses("gpu", exclusive=True)])
def test_an_attempt_never_waits_for_what_another_wait_of_its_own_will_get(second: object) -> None:
    run = Judged(capacities={"gpu": 1})
    run.submit(Task("h", uses="gpu"))
    run.submit(Task("a"))
    run.extend("a", uses("gpu"), request=1)
    more = s.Extend("a", run.tokens["a"], 2, (second,))  # type: ignore[arg-type]
    run.refuses(more, InvalidOption, "there are only 1")
    assert requests(run.ends("h")) == [1]


def test_a_wait_that_could_close_a_circle_in_some_order_of_grants_is_denied() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b", writes="y"), Task("c", writes="w"))
    run.extend("b", write("z"), write("w"), request=1)
    run.extend("a", write("y"), request=1)
    # z is free, but with it a would wait for b, and b for a.
    assert denied(run.extend("a", write("z"), request=2)) == ["a"]
    assert resumed(run.ends("c")) == ["b"]
    assert requests(run.ends("b")) == [1]
