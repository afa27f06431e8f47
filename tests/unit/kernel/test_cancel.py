"""Ending work from outside: one task, a group, a family, everything; and holding it back."""

from __future__ import annotations

import pytest

from interlock.errors import UnknownTask
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Settle
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import BOOM, Judged, causes, refused, settled, started, stopped


def in_state(state: State) -> Judged:
    """A run with one slot in which task `a` is in that state."""
    run = Judged(slots=1)
    if state in (State.WAITING, State.BLOCKED):
        run.submit(Task("first"))
    after = ["first"] if state is State.BLOCKED else []
    run.submit(Task("a", after=after, retry=Retry(2, backoff=60)))
    match state:
        case State.RETRYING:
            run.fails("a")
        case State.NEEDS_YOU:
            run.asks("a")
        case State.SUCCEEDED:
            run.ends("a")
    assert run.state("a") is state
    return run


@pytest.mark.parametrize(
    "state",
    [State.BLOCKED, State.WAITING, State.RUNNING, State.RETRYING, State.NEEDS_YOU],
)
def test_a_task_can_be_cancelled_in_every_state(state: State) -> None:
    run = in_state(state)
    told = run.handle(s.Cancel("a", "no longer wanted"))
    assert causes(told) == {"a": "no longer wanted"}
    assert settled(told) == {"a": State.CANCELLED}
    alive = state in (State.RUNNING, State.NEEDS_YOU)
    assert stopped(told) == (["a"] if alive else [])
    if alive:
        assert settled(run.gone("a")) == {}
    assert run.progress().cancelled == 1
    assert "a" not in run.holders()


def test_cancelling_what_has_ended_changes_nothing() -> None:
    run = in_state(State.SUCCEEDED)
    assert run.handle(s.Cancel("a")) == []
    assert run.state("a") is State.SUCCEEDED


def test_cancelling_twice_stops_once() -> None:  # pitfall 4
    run = in_state(State.RUNNING)
    run.handle(s.Cancel("a"))
    assert run.handle(s.Cancel("a")) == []
    assert run.holders() == ["a"]
    run.gone("a")
    assert run.holders() == []


def test_a_task_that_nobody_knows_cannot_be_cancelled() -> None:
    Judged().refuses(s.Cancel("nobody"), UnknownTask, "nobody")


def test_the_error_of_the_last_attempt_is_kept_when_a_retrying_task_is_cancelled() -> None:
    run = in_state(State.RETRYING)
    [settle, *_] = [i for i in run.handle(s.Cancel("a")) if isinstance(i, Settle)]
    assert (settle.attempts, settle.error) == (1, BOOM)


def test_a_group_is_cancelled_without_touching_others() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b", after="a"), Task("done"), group="g")
    run.submit(Task("other"))
    run.ends("done")
    assert settled(run.handle(s.CancelGroup("g"))) == {
        "a": State.CANCELLED,
        "b": State.CANCELLED,
    }
    assert run.state("other") is State.RUNNING
    assert settled(run.handle(s.CancelGroup(""))) == {"other": State.CANCELLED}


@pytest.mark.parametrize("end", [State.FAILED, State.CONFLICTED, State.TIMED_OUT])
def test_fail_fast_reacts_to_every_way_of_not_succeeding(end: State) -> None:  # pitfall 17
    run = Judged(slots=2)
    tasks = [Task("a", timeout=9), Task("b"), Task("waits"), Task("blocked", after="waits")]
    run.submit(*tasks, group="g", fail_fast=True)
    # A returned failure has no error, and counts all the same.
    told = run.until(9) if end is State.TIMED_OUT else run.ends("a", end)
    assert settled(told) == {
        "a": end,
        "b": State.CANCELLED,
        "waits": State.CANCELLED,
        "blocked": State.CANCELLED,
    }
    assert causes(told)["waits"] == "'a' did not succeed"
    assert started(told) == []


@pytest.mark.parametrize("end", [State.SUCCEEDED, State.CANCELLED])
def test_fail_fast_does_not_react_to_success_or_cancellation(end: State) -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"), group="g", fail_fast=True)
    told = run.handle(s.Cancel("a")) if end is State.CANCELLED else run.ends("a")
    assert settled(told) == {"a": end}
    assert run.state("b") is State.RUNNING


def test_fail_fast_waits_for_the_last_attempt() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(2, backoff=1)), Task("b"), group="g", fail_fast=True)
    assert settled(run.fails("a")) == {}
    run.until(1)
    assert settled(run.fails("a")) == {"a": State.FAILED, "b": State.CANCELLED}


def test_without_fail_fast_one_failure_takes_nobody_down() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"), group="g")
    assert settled(run.fails("a")) == {"a": State.FAILED}


def test_the_deadline_of_a_group_ends_whatever_is_unfinished() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"), Task("c"), group="g", deadline=10)
    run.ends("a", at=4)
    told = run.until(10)
    assert settled(told) == {"b": State.TIMED_OUT, "c": State.TIMED_OUT}
    assert stopped(told) == ["b"]
    assert "deadline of its group" in causes(told)["c"]


def test_a_group_that_ended_in_time_needs_no_timer_any_more() -> None:
    run = Judged()
    run.submit(Task("a", deadline=5), group="g", deadline=10)
    assert run.timer == 5
    run.ends("a")
    assert run.timer is None


def test_cancelling_a_parent_cancels_its_children_and_theirs() -> None:
    run = Judged()
    run.submit(Task("p"))
    run.child("p", Task("c"))
    run.child("c", Task("g1"), Task("g2", after="g1"))
    told = run.handle(s.Cancel("p"))
    assert settled(told) == dict.fromkeys(["p", "c", "g1", "g2"], State.CANCELLED)
    assert sorted(stopped(told)) == ["c", "g1", "p"]


def test_a_child_of_a_stopped_parent_is_refused() -> None:
    run = Judged()
    run.submit(Task("p"))
    run.handle(s.Cancel("p"))
    assert refused(run.child("p", Task("c"))) == ["submit"]
