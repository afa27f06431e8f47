"""Attempts: how often, how long between them, and what is left of one that was told to stop."""

from __future__ import annotations

import pytest

from interlock.errors import InvalidOption
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Change, SetTimer, Settle, Start, Stop
from interlock.model.limits import Retry
from interlock.model.outcome import ErrorRecord, State
from interlock.model.task import Task
from tests.unit.kernel.judged import BOOM, FATAL, Judged, settled, started, stopped


def test_the_backoff_doubles_up_to_its_maximum_and_chance_makes_it_shorter() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(6, backoff=2, max_backoff=10, jitter=0.5)))
    now = 0.0
    for chance, wait in ((0.0, 2.0), (0.0, 4.0), (0.5, 6.0), (0.0, 10.0), (0.9, 5.5)):
        told = run.fails("a", at=now, chance=chance)
        assert [each.at for each in told if isinstance(each, SetTimer)] == [now + wait]
        assert run.state("a") is State.RETRYING
        now += wait
        assert started(run.until(now - 0.001)) == []
        assert started(run.until(now)) == ["a"]


def test_a_retry_after_makes_the_wait_longer_but_never_shorter() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(3, backoff=2)))
    run.fails("a", retry_after=30)
    assert started(run.until(29.9)) == []
    assert started(run.until(30)) == ["a"]
    run.fails("a", retry_after=1)
    assert started(run.until(33.9)) == []
    assert started(run.until(34)) == ["a"]


def test_there_are_never_more_attempts_than_allowed() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(3, backoff=0)))
    for attempt in (1, 2):
        run.fails("a")
        told = run.until(0)
        assert told == [
            Change("a", State.WAITING, ""),
            Start("a", attempt + 1, token=attempt + 1),
            SetTimer(None),
        ]
    told = run.fails("a", at=4.0)
    assert told == [Settle("a", State.FAILED, 3, 0.0, 4.0, BOOM, "")]


def test_an_error_that_is_not_retryable_fails_for_good() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(3)))
    assert settled(run.fails("a", error=FATAL)) == {"a": State.FAILED}


def test_a_conflict_is_not_tried_again() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(3)))
    assert settled(run.ends("a", State.CONFLICTED)) == {"a": State.CONFLICTED}


def test_the_backoff_holds_neither_slot_nor_claims() -> None:  # pitfall 24
    run = Judged(slots=1)
    run.submit(Task("a", writes="x", retry=Retry(2, backoff=5)), Task("b", writes="x"))
    assert started(run.fails("a")) == ["b"]
    assert (run.state("a"), run.holders()) == (State.RETRYING, ["b"])
    run.until(5)
    assert run.state("a") is State.WAITING
    assert started(run.ends("b")) == ["a"]


def test_a_timeout_does_not_count_the_time_spent_waiting() -> None:  # pitfall 20
    run = Judged(slots=1)
    run.submit(Task("first"), Task("a", timeout=10))
    run.ends("first", at=100)
    assert settled(run.until(109.9)) == {}
    told = run.until(110)
    assert told[:1] == [Stop("a", 2, "timed out")]
    assert settled(told) == {"a": State.TIMED_OUT}


def test_the_timer_is_always_set_for_what_comes_first() -> None:
    run = Judged()
    assert SetTimer(50.0) in run.submit(Task("a", timeout=50))
    assert SetTimer(20.0) in run.submit(Task("b", deadline=20))
    assert not any(isinstance(each, SetTimer) for each in run.submit(Task("c", timeout=30)))
    assert SetTimer(30.0) in run.ends("b")
    assert SetTimer(50.0) in run.ends("c")
    assert SetTimer(None) in run.ends("a")


def test_every_attempt_has_the_whole_timeout() -> None:
    run = Judged()
    run.submit(Task("a", timeout=10, retry=Retry(2, backoff=1)))
    assert stopped(run.until(10)) == ["a"]
    assert run.state("a") is State.RETRYING
    run.gone("a", at=10)
    assert started(run.until(11)) == ["a"]
    assert settled(run.until(20.9)) == {}
    assert settled(run.until(21)) == {"a": State.TIMED_OUT}


@pytest.mark.parametrize("state", ["waiting", "blocked", "retrying", "running", "zombie"])
def test_a_deadline_covers_all_attempts_and_every_wait(state: str) -> None:
    run = Judged(slots=1)
    if state in ("waiting", "blocked"):
        run.submit(Task("first"))
    after = ["first"] if state == "blocked" else []
    timeout = 5 if state == "zombie" else None
    run.submit(Task("a", after=after, timeout=timeout, deadline=20, retry=Retry(9, backoff=60)))
    if state == "retrying":
        run.fails("a")
    assert settled(run.until(19.9)) == {}
    told = run.until(20)
    assert settled(told) == {"a": State.TIMED_OUT}
    assert stopped(told) == (["a"] if state == "running" else [])
    assert started(run.until(500)) == []


def test_a_lost_worker_is_a_failure_and_is_tried_again() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(2, backoff=1)))
    assert Change("a", State.RETRYING, "attempt 1 failed", until=1.0) in run.gone("a")
    assert started(run.until(1)) == ["a"]
    [settle] = [each for each in run.gone("a") if isinstance(each, Settle)]
    assert settle.status is State.FAILED
    assert isinstance(settle.error, ErrorRecord)
    assert settle.error.type == "WorkerLost"


def test_an_attempt_cannot_end_as_what_is_not_an_end_of_an_attempt() -> None:
    run = Judged()
    run.submit(Task("a"))
    for status in set(State) - {State.SUCCEEDED, State.FAILED, State.CONFLICTED}:
        run.refuses(s.Ended("a", 1, status), InvalidOption, status)


def test_a_returned_failure_is_not_counted_as_a_success() -> None:  # pitfall 9
    run = Judged()
    run.submit(Task("a"), Task("b"))
    run.handle(s.Ended("a", 1, State.FAILED))
    run.ends("b")
    assert (run.progress().succeeded, run.progress().failed) == (1, 1)
