"""A run that is taken up again goes on where it was."""

from __future__ import annotations

import pytest

from interlock.errors import DuplicateId, InvalidOption, UnknownResource
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.kernel.kernel import Kernel
from interlock.model.claim import uses
from interlock.model.limits import Rate, Retry
from interlock.model.outcome import State
from interlock.model.task import Task

THREE = Retry(attempts=3, backoff=10, jitter=0)


def starts(out: list[do.Instruction]) -> list[tuple[str, int]]:
    return [(each.task_id, each.attempt) for each in out if isinstance(each, do.Start)]


def settled(out: list[do.Instruction]) -> list[tuple[str, State]]:
    return [(each.task_id, each.status) for each in out if isinstance(each, do.Settle)]


def test_what_had_ended_can_be_come_after_and_is_counted() -> None:
    kernel = Kernel(slots=1)
    kernel.handle(s.Recall((("a", State.SUCCEEDED), ("b", State.FAILED))), 5.0)
    out = kernel.handle(s.Submit((Task("c", after="a"), Task("d", after="b"))), 5.0)
    assert starts(out) == [("c", 1)]
    assert settled(out) == [("d", State.SKIPPED)]
    assert kernel.state("a") is State.SUCCEEDED
    assert (kernel.progress().succeeded, kernel.progress().failed) == (1, 1)


def test_a_task_that_had_ended_is_not_taken_in_again() -> None:
    kernel = Kernel(slots=1)
    kernel.handle(s.Recall((("a", State.SUCCEEDED),)), 0.0)
    with pytest.raises(DuplicateId):
        kernel.handle(s.Submit((Task("a"),)), 0.0)
    with pytest.raises(DuplicateId):
        kernel.handle(s.Recall((("a", State.SUCCEEDED),)), 0.0)


def test_only_ends_can_be_recalled_and_a_refusal_changes_nothing() -> None:
    kernel = Kernel(slots=1)
    with pytest.raises(InvalidOption):
        kernel.handle(s.Recall((("a", State.SUCCEEDED), ("b", State.RUNNING))), 0.0)
    assert kernel.progress().total == 0


def test_attempts_go_on_counting() -> None:
    kernel = Kernel(slots=1)
    task = Task("a", retry=THREE)
    out = kernel.handle(s.Submit((task,), past=(s.Past(attempts=2, started_at=1.0),)), 5.0)
    assert starts(out) == [("a", 3)]
    out = kernel.handle(s.Ended("a", 1, State.FAILED), 6.0)
    (end,) = [each for each in out if isinstance(each, do.Settle)]
    assert (end.status, end.attempts, end.started_at) == (State.FAILED, 3, 1.0)


def test_a_backoff_goes_on_where_it_was() -> None:
    kernel = Kernel(slots=1)
    task = Task("a", retry=THREE)
    out = kernel.handle(s.Submit((task,), past=(s.Past(attempts=1, retry_at=9.0),)), 5.0)
    assert starts(out) == []
    assert kernel.state("a") is State.RETRYING
    assert starts(kernel.handle(s.Tick(), 9.0)) == [("a", 2)]


def test_a_backoff_that_is_over_meanwhile_holds_nobody_up() -> None:
    kernel = Kernel(slots=1)
    out = kernel.handle(
        s.Submit((Task("a", retry=THREE),), past=(s.Past(attempts=1, retry_at=4.0),)), 5.0
    )
    assert starts(out) == [("a", 2)]


def test_a_deadline_counts_from_the_first_submission() -> None:
    kernel = Kernel(slots=1)
    task = Task("a", deadline=100)
    kernel.handle(s.Submit((task,), past=(s.Past(deadline_at=7.0),)), 5.0)
    assert settled(kernel.handle(s.Tick(), 7.0)) == [("a", State.TIMED_OUT)]


def test_a_deadline_that_passed_meanwhile_ends_the_task() -> None:
    kernel = Kernel(slots=1)
    kernel.handle(s.Submit((Task("a"),), past=(s.Past(deadline_at=3.0),)), 5.0)
    assert settled(kernel.handle(s.Tick(), 5.0)) == [("a", State.TIMED_OUT)]


def test_what_a_rate_gave_out_before_still_counts() -> None:
    kernel = Kernel(slots=9, rates={"api": Rate(requests="2/min")})
    kernel.handle(s.Spend("api", 1, 10.0), 30.0)
    kernel.handle(s.Spend("api", 1, 20.0), 30.0)
    out = kernel.handle(s.Submit((Task("a", uses=uses("api")),)), 30.0)
    assert starts(out) == []
    assert starts(kernel.handle(s.Tick(), 70.0)) == [("a", 1)]


@pytest.mark.parametrize(
    ("stimulus", "error"),
    [
        (s.Spend("nothing", 1, 0.0), UnknownResource),
        (s.Spend("api", -1, 0.0), InvalidOption),
        (s.Spend("api", 1, 9.0), InvalidOption),
        (s.Submit((Task("a"),), past=(None, None)), InvalidOption),
        (s.Submit((Task("a"),), past=(s.Past(attempts=1),)), InvalidOption),
        (s.Submit((Task("a"),), past=(s.Past(retry_at=float("nan")),)), InvalidOption),
    ],
)
def test_an_impossible_past_is_refused(stimulus: s.Stimulus, error: type[Exception]) -> None:
    kernel = Kernel(slots=1, rates={"api": Rate(requests="2/min")})
    with pytest.raises(error):
        kernel.handle(stimulus, 1.0)
    assert kernel.progress().total == 0
