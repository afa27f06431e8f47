"""The judge itself: for each rule a short story that breaks it, told without any kernel."""

from __future__ import annotations

import pytest

from interlock.kernel import stimuli as event
from interlock.kernel.instructions import (
    Change,
    Deny,
    Instruction,
    Refused,
    Resume,
    SetTimer,
    Settle,
    Start,
    Stop,
)
from interlock.model.claim import read, uses, write
from interlock.model.limits import Quota, Rate, Retry
from interlock.model.outcome import ErrorRecord, State
from interlock.model.task import Task
from tests.simulation.kernel.oracle import Oracle
from tests.simulation.kernel.shadow import Violation

BOOM = ErrorRecord("Boom", "it went wrong")


def submit(*tasks: Task, **options: object) -> event.Submit:
    return event.Submit(tasks, **options)  # type: ignore[arg-type]


def settle(
    name: str, status: State, attempts: int = 1, at: float = 0.0, started: float | None = 0.0
) -> Settle:
    return Settle(name, status, attempts, started if attempts else None, at, None, "")


def tell(oracle: Oracle, stimulus: event.Stimulus, *told: Instruction, at: float = 0.0) -> None:
    oracle.observe(stimulus, at, told)


def two_started(*tasks: Task, slots: int = 8) -> Oracle:
    """An oracle that has seen these tasks start one after the other, with tokens 1, 2, ..."""
    oracle = Oracle(slots)
    for token, task in enumerate(tasks, 1):
        tell(oracle, submit(task), Start(task.id, 1, token))
    return oracle


def test_a_story_that_keeps_the_rules_passes() -> None:
    oracle = Oracle(slots=2)
    tell(oracle, submit(Task("a", writes="x"), Task("b", after="a")), Start("a", 1, 1))
    tell(oracle, event.Ended("a", 1), settle("a", State.SUCCEEDED), Start("b", 1, 2))
    tell(oracle, event.Ended("b", 2), settle("b", State.SUCCEEDED))
    oracle.finish()


def test_two_writers_of_one_file_at_once_are_seen() -> None:
    oracle = two_started(Task("a", writes="src/**"))
    with pytest.raises(Violation, match="S1: "):
        tell(oracle, submit(Task("b", writes="src/a.py")), Start("b", 1, 2))


def test_a_grant_of_what_a_zombie_holds_is_seen() -> None:
    oracle = two_started(Task("a", writes="x"))
    tell(oracle, event.Cancel("a"), Stop("a", 1, "cancelled"), settle("a", State.CANCELLED))
    with pytest.raises(Violation, match=r"S1: .* zombie a"):
        tell(oracle, submit(Task("b", reads="x")), Start("b", 1, 2))


def test_a_grant_of_what_an_ended_attempt_still_holds_is_seen() -> None:
    oracle = two_started(Task("a", writes="x"))
    tell(oracle, event.Ended("a", 1, gone=False), settle("a", State.SUCCEEDED))
    with pytest.raises(Violation, match="S1: "):
        tell(oracle, submit(Task("b", writes="x")), Start("b", 1, 2))


def test_a_further_attempt_beside_the_previous_one_is_seen() -> None:
    oracle = two_started(Task("a", retry=Retry(3, 0.0)))
    failed = event.Ended("a", 1, State.FAILED, BOOM, gone=False)
    with pytest.raises(Violation, match="S4: "):
        tell(oracle, failed, Change("a", State.RETRYING, ""), Start("a", 2, 2))


def test_a_token_that_does_not_grow_is_seen() -> None:
    oracle = two_started(Task("a"), Task("b"))
    with pytest.raises(Violation, match="S3: "):
        tell(oracle, submit(Task("c")), Start("c", 1, 2))


def test_an_effect_of_a_stale_report_is_seen() -> None:
    oracle = two_started(Task("a"))
    tell(oracle, event.Ended("a", 7), Refused("a", 7, "Ended"))
    with pytest.raises(Violation, match="S3: a stale"):
        tell(oracle, event.Ended("a", 7), settle("a", State.SUCCEEDED))


def test_two_outcomes_of_one_task_are_seen() -> None:
    oracle = two_started(Task("a"))
    twice = (settle("a", State.SUCCEEDED), settle("a", State.SUCCEEDED))
    with pytest.raises(Violation, match="S5: a settled succeeded and then"):
        tell(oracle, event.Ended("a", 1), *twice)


def test_a_start_after_the_outcome_is_seen() -> None:
    oracle = Oracle()
    settled = settle("a", State.CANCELLED, attempts=0)
    with pytest.raises(Violation, match="S5: "):
        tell(oracle, submit(Task("a")), settled, Start("a", 1, 1))


def test_an_outcome_without_a_reason_is_seen() -> None:
    for status in (State.CANCELLED, State.TIMED_OUT, State.SKIPPED, State.FAILED):
        oracle = two_started(Task("a"))
        with pytest.raises(Violation, match=r"S5: a settled as .* without a reason"):
            tell(oracle, event.Tick(), Stop("a", 1, ""), settle("a", status))


def test_a_task_without_an_outcome_at_the_end_is_seen() -> None:
    oracle = two_started(Task("a"))
    with pytest.raises(Violation, match="S5: nothing more happens"):
        oracle.finish()


def test_an_outcome_that_is_not_the_reported_one_is_seen() -> None:
    oracle = two_started(Task("a"))
    with pytest.raises(Violation, match="S5: "):
        tell(oracle, event.Ended("a", 1, State.FAILED, BOOM), settle("a", State.SUCCEEDED))


def test_a_start_before_its_dependency_succeeded_is_seen() -> None:
    oracle = Oracle()
    with pytest.raises(Violation, match="S9: "):
        tell(oracle, submit(Task("a"), Task("b", after="a")), Start("a", 1, 1), Start("b", 1, 2))


def test_a_dependent_of_a_failure_that_is_not_skipped_at_once_is_seen() -> None:
    oracle = Oracle()
    tell(oracle, submit(Task("a"), Task("b", after="a")), Start("a", 1, 1))
    with pytest.raises(Violation, match="S9: b was not skipped"):
        tell(oracle, event.Ended("a", 1, State.FAILED, BOOM), settle("a", State.FAILED))


def test_a_startable_task_that_is_left_waiting_is_seen() -> None:
    oracle = two_started(Task("a", reads="x"))
    with pytest.raises(Violation, match="S9: b could start"):
        tell(oracle, submit(Task("b", reads="x")))


def test_a_counted_amount_that_is_not_filled_up_is_seen() -> None:
    oracle = Oracle(8, {"gpu": 3})
    both = submit(Task("a", uses="gpu=2"), Task("b", uses="gpu"))
    with pytest.raises(Violation, match="S9: b could start"):
        tell(oracle, both, Start("a", 1, 1))


def test_a_running_task_that_is_not_resumed_is_seen() -> None:
    oracle = two_started(Task("a"))
    tell(oracle, event.Ask("a", 1, 1, "May I?"))
    with pytest.raises(Violation, match=r"S9: a .* could go on"):
        tell(oracle, event.Answer("a", 1))


def test_a_circle_of_waits_in_mid_flight_is_seen() -> None:
    oracle = two_started(Task("a", writes="x"), Task("b", writes="y"))
    tell(oracle, event.Extend("a", 1, 1, (write("y"),)))
    with pytest.raises(Violation, match="deadlock"):
        tell(oracle, event.Extend("b", 2, 1, (write("x"),)))


def test_a_denial_of_a_wait_that_would_end_is_seen() -> None:
    oracle = two_started(Task("a"), Task("b", writes="y"))
    with pytest.raises(Violation, match="would have ended"):
        tell(oracle, event.Extend("a", 1, 1, (write("y"),)), Deny("a", 1, 1, "no"))


def test_more_attempts_than_slots_are_seen() -> None:
    oracle = two_started(Task("a"), slots=1)
    with pytest.raises(Violation, match="S10: 2 attempts hold one of 1 slots"):
        tell(oracle, submit(Task("b")), Start("b", 1, 2))


def test_more_than_the_capacity_is_seen() -> None:
    oracle = Oracle(8, {"gpu": 1})
    both = submit(Task("a", uses="gpu"), Task("b", uses="gpu"))
    with pytest.raises(Violation, match="S10: "):
        tell(oracle, both, Start("a", 1, 1), Start("b", 1, 2))


def test_a_rate_window_above_its_quota_is_seen() -> None:
    oracle = Oracle(8, {}, {"openai": Rate(requests=Quota(1, 10.0))})
    tell(oracle, submit(Task("a", uses="openai")), Start("a", 1, 1))
    with pytest.raises(Violation, match=r"S10: .* rate"):
        tell(oracle, submit(Task("b", uses="openai")), Start("b", 1, 2), at=9.9)


def test_an_attempt_too_many_is_seen() -> None:
    oracle = two_started(Task("a", retry=Retry(1)))
    with pytest.raises(Violation, match="S11: "):
        tell(oracle, event.Ended("a", 1, State.FAILED, BOOM), Start("a", 2, 2))


def test_giving_up_with_attempts_left_is_seen() -> None:
    oracle = two_started(Task("a", retry=Retry(2)))
    with pytest.raises(Violation, match="S11: "):
        tell(oracle, event.Ended("a", 1, State.FAILED, BOOM), settle("a", State.FAILED))


def test_an_attempt_before_the_backoff_is_over_is_seen() -> None:
    oracle = two_started(Task("a", retry=Retry(2, backoff=4.0, jitter=0.0)))
    tell(oracle, event.Ended("a", 1, State.FAILED, BOOM), SetTimer(4.0))
    with pytest.raises(Violation, match="S12: "):
        tell(oracle, event.Tick(), Start("a", 2, 2), at=3.9)


def test_a_deadline_that_passes_unnoticed_is_seen() -> None:
    oracle = Oracle()
    tell(oracle, submit(Task("a", deadline=5)), Start("a", 1, 1), SetTimer(5.0))
    with pytest.raises(Violation, match="S13: a is past its deadline"):
        tell(oracle, event.Tick(), at=5.0)


def test_an_attempt_that_outlives_its_timeout_is_seen() -> None:
    oracle = Oracle()
    tell(oracle, submit(Task("a", timeout=5)), Start("a", 1, 1), SetTimer(5.0))
    with pytest.raises(Violation, match="S13: a is past its timeout"):
        tell(oracle, event.Tick(), at=5.0)


def test_a_timer_that_comes_too_late_is_seen() -> None:
    oracle = Oracle()
    with pytest.raises(Violation, match=r"S13: something is due at 5\.0"):
        tell(oracle, submit(Task("a", deadline=5)), Start("a", 1, 1), SetTimer(6.0))


def test_a_cancel_that_does_not_settle_at_once_is_seen() -> None:
    oracle = two_started(Task("a"))
    with pytest.raises(Violation, match="S14: a was to be cancelled"):
        tell(oracle, event.Cancel("a"), Stop("a", 1, "cancelled"))


def test_a_cancelled_attempt_that_is_not_told_is_seen() -> None:
    oracle = two_started(Task("a"))
    with pytest.raises(Violation, match=r"S14: .* got no Stop"):
        tell(oracle, event.Cancel("a"), settle("a", State.CANCELLED))


def test_a_child_that_outlives_its_parent_is_seen() -> None:
    oracle = two_started(Task("a", writes="x"))
    child = submit(Task("c", writes="x"), parent="a", token=1)
    tell(oracle, child, Start("c", 1, 2))
    with pytest.raises(Violation, match="S14: child c was not cancelled"):
        tell(oracle, event.Ended("a", 1), settle("a", State.SUCCEEDED))


def test_a_group_that_does_not_fail_fast_is_seen() -> None:
    oracle = Oracle()
    group = submit(Task("a"), Task("b"), group="g", fail_fast=True)
    tell(oracle, group, Start("a", 1, 1), Start("b", 1, 2))
    with pytest.raises(Violation, match="S14: b was not cancelled although its group"):
        tell(oracle, event.Ended("a", 1, State.FAILED, BOOM), settle("a", State.FAILED))


def test_siblings_that_share_a_file_are_seen() -> None:
    oracle = two_started(Task("a", writes="x"))
    children = submit(Task("c", writes="x"), Task("d", writes="x"), parent="a", token=1)
    with pytest.raises(Violation, match="S1: "):
        tell(oracle, children, Start("c", 1, 2), Start("d", 1, 3))


def test_a_start_while_paused_or_drained_is_seen() -> None:
    for stop in (event.Pause(), event.Drain()):
        oracle = Oracle(slots=1)
        tell(oracle, submit(Task("a"), Task("b")), Start("a", 1, 1))
        tell(oracle, stop)
        with pytest.raises(Violation, match="Start"):
            tell(oracle, event.Ended("a", 1), settle("a", State.SUCCEEDED), Start("b", 1, 2))


def test_one_who_is_overtaken_too_often_is_seen() -> None:
    """With one slot, two overtakings are allowed and the third is not."""
    oracle = two_started(Task("first", writes="x"), slots=1)
    tell(oracle, submit(Task("old", reads="x")))
    name, token = "first", 1
    for number in range(2):
        tell(oracle, submit(Task(f"young{number}", writes="x")))
        ended = settle(name, State.SUCCEEDED)
        tell(oracle, event.Ended(name, token), ended, Start(f"young{number}", 1, token + 1))
        name, token = f"young{number}", token + 1
    tell(oracle, submit(Task("last", writes="x")))
    ended = settle(name, State.SUCCEEDED)
    with pytest.raises(Violation, match="S19: last starts past old"):
        tell(oracle, event.Ended(name, token), ended, Start("last", 1, token + 1))


def test_a_resume_that_grants_what_somebody_holds_is_seen() -> None:
    oracle = two_started(Task("a"), Task("b", writes="y"))
    told = Resume("a", 1, 1, (read("y"),), 3)
    with pytest.raises(Violation, match="S1: "):
        tell(oracle, event.Extend("a", 1, 1, (read("y"),)), told)


def test_all_of_a_counted_resource_leaves_nothing_to_others() -> None:
    oracle = Oracle(8, {"gpu": 2})
    both = submit(Task("a", uses=uses("gpu", exclusive=True)), Task("b", uses="gpu"))
    with pytest.raises(Violation, match="S10: "):
        tell(oracle, both, Start("a", 1, 1), Start("b", 1, 2))
