"""A group over several submissions: it lasts as long as it has unfinished members."""

from __future__ import annotations

from interlock.kernel import stimuli as s
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, settled


def test_the_deadline_of_a_group_counts_for_those_who_join_later() -> None:
    run = Judged()
    run.submit(Task("a"), group="g", deadline=5)
    run.submit(Task("b"), group="g", at=3)
    assert settled(run.until(5)) == dict.fromkeys("ab", State.TIMED_OUT)


def test_a_deadline_that_is_given_again_replaces_the_first_for_all_members() -> None:
    run = Judged()
    run.submit(Task("a"), group="g", deadline=5)
    run.submit(Task("b"), group="g", deadline=10, at=2)
    assert settled(run.until(11)) == {}
    assert settled(run.until(12)) == dict.fromkeys("ab", State.TIMED_OUT)


def test_a_deadline_can_be_brought_forward() -> None:
    run = Judged()
    run.submit(Task("a"), group="g", deadline=50)
    run.submit(Task("b"), group="g", deadline=1, at=2)
    assert settled(run.until(3)) == dict.fromkeys("ab", State.TIMED_OUT)


def test_fail_fast_asked_for_later_counts_for_all_members() -> None:
    run = Judged()
    run.submit(Task("a"), Task("a2"), group="g")
    run.submit(Task("b"), group="g", fail_fast=True)
    told = settled(run.fails("a"))
    assert told == {"a": State.FAILED, "a2": State.CANCELLED, "b": State.CANCELLED}


def test_fail_fast_is_not_taken_back_by_a_submission_that_does_not_ask_for_it() -> None:
    run = Judged()
    run.submit(Task("a"), group="g", fail_fast=True)
    run.submit(Task("b"), group="g")
    assert settled(run.fails("b")) == {"b": State.FAILED, "a": State.CANCELLED}


def test_what_failed_before_fail_fast_was_asked_for_takes_nobody_down() -> None:
    run = Judged()
    run.submit(Task("a"), Task("a2"), group="g")
    run.fails("a")
    run.submit(Task("b"), group="g", fail_fast=True)
    assert (run.state("a2"), run.state("b")) == (State.RUNNING, State.RUNNING)


def test_an_emptied_group_is_gone_and_its_name_may_be_used_anew() -> None:
    run = Judged()
    run.submit(Task("a"), group="g", fail_fast=True, deadline=5)
    run.fails("a")
    run.submit(Task("b"), Task("c"), group="g")
    assert settled(run.fails("b")) == {"b": State.FAILED}
    assert settled(run.until(100)) == {}
    assert settled(run.handle(s.CancelGroup("g"))) == {"c": State.CANCELLED}


def test_cancelling_a_group_that_is_gone_changes_nothing() -> None:
    run = Judged()
    run.submit(Task("a"), group="g")
    run.ends("a")
    assert run.handle(s.CancelGroup("g")) == []
