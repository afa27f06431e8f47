"""The table of transitions, and that the kernel keeps to it."""

from __future__ import annotations

import pytest

from interlock.errors import IllegalTransition
from interlock.kernel import stimuli as s
from interlock.kernel.states import MAY_FOLLOW
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged

ENDS = {state for state in State if state.is_end}


def test_every_state_is_in_the_table() -> None:
    assert set(MAY_FOLLOW) == {None, *State}


def test_exactly_six_states_are_ends_and_nothing_follows_them() -> None:
    assert {str(end) for end in ENDS} == {
        "succeeded",
        "failed",
        "timed_out",
        "cancelled",
        "skipped",
        "conflicted",
    }
    assert {state for state in State if not MAY_FOLLOW[state]} == ENDS


def test_every_state_can_be_reached_and_from_every_one_there_is_an_end() -> None:
    def reached_from(state: State | None) -> set[State]:
        found: set[State] = set()
        todo = list(MAY_FOLLOW[state])
        while todo:
            each = todo.pop()
            if each not in found:
                found.add(each)
                todo += MAY_FOLLOW[each]
        return found

    assert reached_from(None) == set(State)
    for state in set(State) - ENDS:
        assert reached_from(state) & ENDS


def test_whatever_is_unfinished_can_be_cancelled_and_can_time_out() -> None:
    for state in set(State) - ENDS:
        assert {State.CANCELLED, State.TIMED_OUT} <= MAY_FOLLOW[state]


def test_only_what_runs_can_succeed_and_only_what_is_blocked_is_skipped() -> None:
    before = {end: {state for state in MAY_FOLLOW if end in MAY_FOLLOW[state]} for end in ENDS}
    assert before[State.SUCCEEDED] == {State.RUNNING, State.NEEDS_YOU}
    assert before[State.FAILED] == before[State.CONFLICTED] == before[State.SUCCEEDED]
    assert before[State.SKIPPED] == {None, State.BLOCKED}


def test_a_transition_that_is_not_in_the_table_raises_with_the_story_of_the_task() -> None:
    run = Judged()
    run.submit(Task("first"), Task("a", after="first", retry=Retry(2, backoff=3)))
    run.ends("first", at=1.0)
    run.fails("a", at=2.0)
    # No stimulus leads to this; it takes a bug of the kernel, so it is made by hand.
    inside = run.kernel._run
    with pytest.raises(IllegalTransition, match="from retrying to succeeded") as caught:
        inside.enter(inside.unfinished("a"), State.SUCCEEDED, None)
    assert caught.value.task_id == "a"
    assert caught.value.story == ("0: blocked", "1: waiting", "1: running")
    assert run.state("a") is State.RETRYING


def test_an_outcome_stands_whatever_is_reported_afterwards() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"))
    run.handle(s.Cancel("a"))
    run.ends("a", gone=False)
    run.fails("a")
    assert run.state("a") is State.CANCELLED
    assert run.progress().cancelled == 1
