"""Waits in mid-flight that are given up, as by a timeout around them."""

from __future__ import annotations

import pytest

from interlock.errors import UnknownTask
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Change, Resume
from interlock.model.claim import uses, write
from interlock.model.limits import Rate
from interlock.model.outcome import State
from interlock.model.task import Task
from interlock.model.why import NoCapacity
from tests.unit.kernel.judged import Judged, denied, refused, resumed, started

# -- one wait ---------------------------------------------------------------------------------


def test_claims_that_are_withdrawn_go_to_others() -> None:
    run = Judged()
    run.submit(Task("a", writes="x"), Task("b", writes="y"))
    run.extend("a", write("y"), request=7)
    assert run.withdraws("a", 7) == [Resume("a", run.tokens["a"], 7, (), 0)]
    assert sorted(run.running()) == ["a", "b"]
    run.submit(Task("c", writes="y"))
    told = run.ends("b")
    assert (resumed(told), started(told)) == ([], ["c"])


def test_amounts_that_are_withdrawn_are_not_held() -> None:
    run = Judged(capacities={"gpu": 2})
    run.submit(Task("a", uses="gpu"), Task("b", uses="gpu"))
    run.extend("a", uses("gpu"))
    run.withdraws("a")
    run.ends("b")
    assert started(run.submit(Task("c", uses="gpu"))) == ["c"]
    assert started(run.submit(Task("d", uses="gpu"))) == []


def test_a_withdrawn_extension_can_be_asked_for_again() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b", writes="y"))
    for request in (1, 2):
        run.extend("a", write("y"), request=request)
        run.withdraws("a", request)
    run.extend("a", write("y"), request=3)
    told = run.ends("b")
    assert told[-1] == Resume("a", run.tokens["a"], 3, (write("y"),), 3)
    assert started(run.submit(Task("c", writes="y"))) == []
    assert started(run.ends("a")) == ["c"]


def test_a_rate_that_is_withdrawn_is_not_taken() -> None:
    run = Judged(slots=1, rates={"api": Rate("1/min")})
    run.submit(Task("a", uses="api"))
    run.take("a", uses("api"))
    assert resumed(run.withdraws("a", at=1.0)) == ["a"]
    assert run.running() == ["a"]
    assert resumed(run.until(60)) == []
    assert resumed(run.take("a", uses("api"), request=2)) == ["a"]


def test_tasks_that_are_no_longer_waited_for_go_on_without_an_answer() -> None:
    run = Judged(slots=2)
    run.submit(Task("a"))
    run.child("a", Task("one"), Task("two"))
    run.awaits("a", "one", "two")
    # Both children work, so the parent lacks a slot until one of them ends.
    assert resumed(run.withdraws("a")) == []
    assert resumed(run.ends("one")) == ["a"]
    assert resumed(run.ends("two")) == []


def test_a_question_that_is_withdrawn_needs_nobody() -> None:
    run = Judged()
    run.submit(Task("a"))
    run.asks("a")
    told = run.withdraws("a")
    token = run.tokens["a"]
    assert told == [Change("a", State.RUNNING, "withdrawn"), Resume("a", token, 1, (), 0)]
    run.refuses(s.Answer("a", 1), UnknownTask, "no open question 1")


def test_whoever_withdraws_goes_on_only_with_a_slot_and_before_anything_new() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"), Task("c"))
    assert started(run.asks("a")) == ["b"]
    assert resumed(run.withdraws("a")) == []
    assert (run.state("a"), run.running()) == (State.RUNNING, ["b"])
    [reason] = run.why("a").reasons
    assert isinstance(reason, NoCapacity)
    assert reason.resource == "slots"
    run.refuses(s.Answer("a", 1), UnknownTask, "no open question 1")
    told = run.ends("b")
    assert (resumed(told), started(told), run.running()) == (["a"], [], ["a"])


def test_whoever_withdraws_what_is_there_already_keeps_its_place_in_the_line_for_a_slot() -> None:
    run = Judged(slots=2)
    run.submit(Task("a"), Task("b"))
    run.asks("a")
    run.asks("b")
    run.submit(Task("c"), Task("d"))
    run.handle(s.Answer("a", 1))
    run.handle(s.Answer("b", 1))
    assert run.withdraws("a") == [Change("a", State.RUNNING, "withdrawn")]
    assert run.withdraws("a") == []
    assert resumed(run.ends("c")) == ["a"]
    assert resumed(run.ends("d")) == ["b"]


def test_a_withdrawal_makes_room_for_a_wait_that_would_have_closed_a_circle() -> None:
    run = Judged()
    run.submit(Task("a", writes="x"), Task("b", writes="y"))
    run.extend("a", write("y"))
    assert denied(run.extend("b", write("x"))) == ["b"]
    run.withdraws("a")
    assert denied(run.extend("b", write("x"), request=2)) == []
    assert resumed(run.ends("a")) == ["b"]


# -- several waits ----------------------------------------------------------------------------


def test_beside_open_waits_a_withdrawal_is_answered_at_once_and_without_a_slot() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"))
    run.asks("a", request=1)
    run.submit(Task("b", writes="y"), Task("c"))
    run.extend("a", write("y"), request=2)
    assert run.withdraws("a", 2) == [Resume("a", run.tokens["a"], 2, (), 0)]
    assert (run.state("a"), run.running()) == (State.NEEDS_YOU, ["b"])
    # The question is the last wait now, and brings the slot back.
    assert resumed(run.handle(s.Answer("a", 1))) == []
    told = run.ends("b")
    assert (resumed(told), started(told)) == (["a"], [])


def test_when_the_last_of_several_waits_is_withdrawn_it_brings_the_slot_back() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"))
    run.child("a", Task("one"), Task("two"))
    run.awaits("a", "one", request=1)
    run.awaits("a", "two", request=2)
    assert resumed(run.withdraws("a", 1)) == ["a"]
    assert resumed(run.withdraws("a", 2)) == []
    told = run.ends("one")
    assert (resumed(told), started(told), run.running()) == (["a"], [], ["a"])


def test_a_new_wait_takes_over_the_slot_that_a_withdrawn_one_waits_for() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"))
    run.asks("a", request=1)
    run.submit(Task("b", writes="y"))
    assert resumed(run.withdraws("a", 1)) == []
    assert run.extend("a", write("y"), request=2) == [Resume("a", run.tokens["a"], 1, (), 0)]
    assert run.running() == ["b"]
    assert resumed(run.ends("b")) == ["a"]
    assert run.running() == ["a"]


def test_a_rate_is_given_up_beside_a_question_without_touching_it() -> None:
    run = Judged(slots=1, rates={"api": Rate("1/min")})
    run.submit(Task("a", uses="api"), Task("b"))
    run.take("a", uses("api"), request=1)
    run.asks("a", request=2)
    assert resumed(run.withdraws("a", 1)) == ["a"]
    assert (run.state("a"), run.running()) == (State.NEEDS_YOU, ["b"])
    assert resumed(run.until(60)) == []


def test_one_of_two_questions_that_is_withdrawn_leaves_the_other_to_be_answered() -> None:
    run = Judged()
    run.submit(Task("a"))
    run.asks("a", request=1)
    run.asks("a", request=2)
    assert run.withdraws("a", 1) == [Resume("a", run.tokens["a"], 1, (), 0)]
    assert run.state("a") is State.NEEDS_YOU
    run.handle(s.Answer("a", 2))
    assert run.state("a") is State.RUNNING


# -- too late ---------------------------------------------------------------------------------


def test_a_withdrawal_that_crosses_the_grant_is_answered_with_nothing_and_the_claims_stay() -> None:
    run = Judged()
    run.submit(Task("a"))
    run.extend("a", write("y"))
    assert run.withdraws("a") == [Resume("a", run.tokens["a"], 1, (), 0)]
    assert started(run.submit(Task("b", writes="y"))) == []


def test_a_withdrawal_that_crosses_a_denial_is_answered_with_nothing() -> None:
    run = Judged()
    run.submit(Task("a"))
    assert denied(run.awaits("a", "a")) == ["a"]
    assert run.withdraws("a") == [Resume("a", run.tokens["a"], 1, (), 0)]


@pytest.mark.parametrize("gone", [True, False])
def test_an_attempt_that_is_over_withdraws_nothing(gone: bool) -> None:
    run = Judged()
    run.submit(Task("a"))
    run.asks("a")
    run.ends("a", gone=gone)
    assert refused(run.withdraws("a")) == ["withdraw"]


def test_what_waits_for_its_slot_after_a_withdrawal_can_be_cancelled() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"), Task("c"))
    run.asks("a")
    run.withdraws("a")
    run.handle(s.Cancel("a"))
    run.gone("a")
    assert started(run.ends("b")) == ["c"]
