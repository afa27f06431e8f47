"""The past of a run, folded from its events."""

from __future__ import annotations

from typing import Any

from interlock import uses
from interlock.journal.schema.own_records import NotStored
from interlock.journal.state.run_state import RunState
from interlock.journal.state.task_state import TaskState
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.model.event import Event, Kind
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.task import Task
from interlock.model.usage import Usage
from interlock.runtime.recovery.known_tasks import fold_run, kernel_past
from interlock.runtime.turn import SubmissionTerms

ERROR = ErrorRecord("OSError", "busy")


class Story:
    """Events of a run that began at 1000."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def tell(self, at: float, kind: Kind, task_id: str = "", data: Any = None) -> Story:
        self._events.append(Event(len(self._events) + 1, 1000.0 + at, kind, task_id, data))
        return self

    def submitted(self, at: float, task: Task) -> Story:
        return self.tell(at, Kind.SUBMITTED, task.id, task)

    def started(self, at: float, task_id: str, attempt: int, token: int) -> Story:
        return self.tell(at, Kind.STARTED, task_id, do.Start(task_id, attempt, token))

    def asked(self, at: float, stimulus: Any) -> Story:
        return self.tell(at, Kind.COMMAND, getattr(stimulus, "task_id", "") or "", stimulus)

    def granted(self, at: float, task_id: str, token: int, request: int, *claims: Any) -> Story:
        return self.tell(
            at, Kind.GRANTED, task_id, do.Resume(task_id, token, request, claims, len(claims) * 9)
        )

    def past(self) -> RunState:
        return fold_run(1000.0, self._events)

    def known(self, task_id: str) -> TaskState:
        return self.past().tasks[task_id]


def _failed_once() -> Story:
    story = Story().submitted(1, Task("a", deadline=60.0)).started(2, "a", 1, 5)
    story.tell(3, Kind.ENDED, "a", s.Ended("a", 5, State.FAILED, ERROR))
    return story.tell(3, Kind.RETRYING, "a", do.Change("a", State.RETRYING, "", 7.5))


def test_an_attempt_that_ended_counts_and_its_backoff_goes_on() -> None:
    known = _failed_once().known("a")
    assert known.running is None
    assert kernel_past(known, 3, False) == s.Past(1, 2.0, 7.5, 61.0, ERROR, False)


def test_an_attempt_that_was_cut_off_counts_apart() -> None:
    story = _failed_once().started(8, "a", 2, 6)
    assert story.known("a").running == 6
    known = story.tell(9, Kind.INTERRUPTED, "a", {"token": 6, "by": "crash"}).known("a")
    assert (known.attempts, known.cut_off, known.running) == (1, 1, None)
    assert kernel_past(known, 3, False).started_at == 2.0


def test_a_signal_is_not_held_against_what_it_cuts_off() -> None:
    story = Story().submitted(0, Task("a")).started(0, "a", 1, 1)
    known = story.tell(1, Kind.INTERRUPTED, "a", {"token": 1, "by": "signal"}).known("a")
    assert (known.attempts, known.cut_off, known.was_cut_off) == (0, 0, True)


def test_who_allows_fewer_attempts_than_there_were_leaves_one() -> None:
    assert kernel_past(_failed_once().known("a"), 1, False).attempts == 0


def test_an_attempt_that_was_told_to_stop_had_not_to_be_cut_off() -> None:
    story = Story().submitted(0, Task("a")).started(0, "a", 1, 1)
    known = story.tell(1, Kind.STOP_REQUESTED, "a", do.Stop("a", 1, "timeout")).known("a")
    assert known.running is None


def test_tokens_are_those_of_starts_and_of_what_was_added() -> None:
    story = Story().submitted(0, Task("a")).started(0, "a", 1, 4)
    assert story.past().last_token == 4
    assert story.granted(1, "a", 4, 1, uses("x")).past().last_token == 9


def test_a_rate_gave_out_what_tasks_claimed_took_and_really_used() -> None:
    story = Story().submitted(0, Task("a", uses="api")).started(2, "a", 1, 1)
    story.asked(3, s.Take("a", 1, 7, (uses("api.tokens", 100),))).granted(4, "a", 1, 7)
    assert story.past().spent == [(2.0, "api", 1), (4.0, "api.tokens", 100)]
    story.asked(5, s.Used("a", 1, 7, "api.tokens", 30))
    assert story.past().spent == [(2.0, "api", 1), (4.0, "api.tokens", 30)]


def test_what_was_withdrawn_was_not_taken() -> None:
    story = Story().submitted(0, Task("a")).started(0, "a", 1, 1)
    story.asked(1, s.Take("a", 1, 7, (uses("api"),))).asked(2, s.Withdraw("a", 1, 7))
    assert story.granted(2, "a", 1, 7).past().spent == []


def test_capacities_priorities_and_held_rates_are_those_set_last() -> None:
    story = Story().submitted(0, Task("a")).asked(1, s.SetCapacity("gpu", 3))
    story.asked(2, s.SetCapacity("gpu", 1)).asked(3, s.Prioritize("a", 5))
    past = story.asked(4, s.HoldRate("api", 60.0)).asked(5, s.HoldRate("api", 20.0)).past()
    assert past.capacities == {"gpu": 1}
    assert past.held == {"api": 60.0}
    assert past.tasks["a"].new_priority == 5


def test_answers_are_kept_for_an_attempt_that_was_cut_off_and_only_for_that() -> None:
    story = Story().submitted(0, Task("a")).started(0, "a", 1, 1)
    story.asked(1, s.Ask("a", 1, 3, "Which?")).asked(2, s.Answer("a", 3, "blue"))
    assert story.known("a").answers == [("Which?", "blue")]
    cut = story.tell(3, Kind.INTERRUPTED, "a", {"by": "crash"}).started(4, "a", 1, 2)
    assert cut.known("a").answers == [("Which?", "blue")]
    assert cut.started(5, "a", 2, 3).known("a").answers == []


def test_usage_adds_up_over_attempts() -> None:
    story = Story().submitted(0, Task("a")).tell(1, Kind.USED, "a", Usage(5, 1, 0.5))
    assert story.tell(2, Kind.USED, "a", Usage(5, 0, 0.0)).known("a").usage == Usage(10, 1, 0.5)


def test_terms_belong_to_the_tasks_that_follow_them_and_no_others() -> None:
    terms = SubmissionTerms(2, "g", False, 10.0, "p", 7, ())
    story = Story().asked(1, terms).submitted(1, Task("a")).submitted(1, Task("b"))
    past = story.submitted(2, Task("c")).past()
    found = {name: (known.parent, known.group_until) for name, known in past.tasks.items()}
    own = (("p", 7), 11.0)
    assert found == {"a": own, "b": own, "c": (None, None)}


def test_a_task_that_is_brought_back_keeps_what_it_had() -> None:
    story = _failed_once().submitted(20, Task("a", deadline=60.0, timeout=5.0))
    known = story.known("a")
    assert (known.attempts, known.deadline_at, known.submission.timeout) == (1, 61.0, 5.0)


def test_a_result_that_could_not_be_stored_means_that_it_has_to_run_again() -> None:
    story = Story().submitted(0, Task("a")).started(0, "a", 1, 1)
    lost = Outcome("a", State.SUCCEEDED, result=NotStored("_thread:lock", "result"))
    known = story.tell(1, Kind.SETTLED, "a", lost).known("a")
    assert (known.outcome, known.attempts, known.running) == (None, 0, None)


def test_a_clock_that_went_back_does_not_take_the_run_with_it() -> None:
    story = Story().submitted(9, Task("a")).tell(4, Kind.LOGGED, "a", {"line": "x"})
    assert story.past().latest == 9.0
