"""The judge on waits in mid-flight, what is held from outside, groups that grow, folded case."""

from __future__ import annotations

import pytest

from interlock.kernel import stimuli as event
from interlock.kernel.instructions import Change, Deny, Instruction, Resume, Settle, Start, Stop
from interlock.model.claim import uses, write
from interlock.model.outcome import ErrorRecord, State
from interlock.model.task import Task
from tests.simulation.kernel.oracle import Oracle
from tests.simulation.kernel.shadow import Violation

BOOM = ErrorRecord("Boom", "it went wrong")


def tell(oracle: Oracle, stimulus: event.Stimulus, *told: Instruction, at: float = 0.0) -> None:
    oracle.observe(stimulus, at, told)


def with_started(oracle: Oracle, *tasks: Task) -> Oracle:
    """The oracle after these tasks have started one after the other, with tokens 1, 2, ..."""
    for token, task in enumerate(tasks, 1):
        tell(oracle, event.Submit((task,)), Start(task.id, 1, token))
    return oracle


def settle(name: str, status: State, at: float = 0.0) -> Settle:
    return Settle(name, status, 1, 0.0, at, None, "")


def answered_beside_an_open_wait() -> Oracle:
    """One slot, which b works with: a was answered while it waits for what b holds."""
    oracle = with_started(Oracle(slots=1), Task("a"))
    tell(oracle, event.Ask("a", 1, 1, "May I?"), Change("a", State.NEEDS_YOU, ""))
    tell(oracle, event.Submit((Task("b", writes="y"),)), Start("b", 1, 2))
    tell(oracle, event.Extend("a", 1, 2, (write("y"),)))
    tell(oracle, event.Answer("a", 1), Resume("a", 1, 1, (), 0))
    return oracle


def test_one_of_several_waits_is_over_without_a_slot() -> None:
    answered_beside_an_open_wait()


def test_the_last_of_several_waits_brings_the_slot_back() -> None:
    oracle = answered_beside_an_open_wait()
    ended = (settle("b", State.SUCCEEDED), Resume("a", 1, 2, (write("y"),), 3))
    tell(oracle, event.Ended("b", 2), *ended)
    with pytest.raises(Violation, match="S10: 2 attempts hold one of 1 slots"):
        tell(oracle, event.Submit((Task("c"),)), Start("c", 1, 4))


def test_an_answer_that_is_held_up_by_another_wait_is_seen() -> None:
    oracle = with_started(Oracle(slots=2), Task("a"), Task("b", writes="y"))
    tell(oracle, event.Ask("a", 1, 1, "May I?"), Change("a", State.NEEDS_YOU, ""))
    tell(oracle, event.Extend("a", 1, 2, (write("y"),)))
    with pytest.raises(Violation, match=r"S9: a .* could go on after its ask"):
        tell(oracle, event.Answer("a", 1))


def test_a_grant_that_closes_a_circle_is_seen() -> None:
    oracle = with_started(Oracle(), Task("a"), Task("b", writes="y"), Task("c", writes="w"))
    tell(oracle, event.Extend("b", 2, 1, (write("z"), write("w"))))
    tell(oracle, event.Extend("a", 1, 1, (write("y"),)))
    with pytest.raises(Violation, match="deadlock"):
        tell(oracle, event.Extend("a", 1, 2, (write("z"),)), Resume("a", 1, 2, (write("z"),), 4))


def with_two_waits() -> Oracle:
    oracle = with_started(Oracle(), Task("a"), Task("b", writes="y"), Task("c", writes="w"))
    tell(oracle, event.Extend("b", 2, 1, (write("z"), write("w"))))
    tell(oracle, event.Extend("a", 1, 1, (write("y"),)))
    return oracle


def test_with_several_waits_open_a_wait_may_be_denied_that_might_have_ended() -> None:
    tell(with_two_waits(), event.Extend("a", 1, 2, (write("z"),)), Deny("a", 1, 2, "no"))


def test_a_grant_is_never_put_off() -> None:
    with pytest.raises(Violation, match="was not resumed"):
        tell(with_two_waits(), event.Extend("a", 1, 2, (write("z"),)))


def test_two_waits_of_one_attempt_that_exclude_each_other_are_seen() -> None:
    oracle = with_started(Oracle(8, {"gpu": 1}), Task("h", uses="gpu"), Task("a"))
    tell(oracle, event.Extend("a", 2, 1, (uses("gpu"),)))
    with pytest.raises(Violation, match="deadlock"):
        tell(oracle, event.Extend("a", 2, 2, (uses("gpu"),)))


def test_all_of_nothing_is_not_for_anybody() -> None:
    oracle = with_started(Oracle(8, {"gpu": 1}), Task("h", uses="gpu"))
    tell(oracle, event.Submit((Task("a", uses="gpu!"),)))
    tell(oracle, event.SetCapacity("gpu", 0))
    with pytest.raises(Violation, match="S10: "):
        tell(oracle, event.Ended("h", 1), settle("h", State.SUCCEEDED), Start("a", 1, 2))


def test_fail_fast_that_spares_members_of_an_earlier_submission_is_seen() -> None:
    oracle = Oracle()
    tell(oracle, event.Submit((Task("a"),), group="g"), Start("a", 1, 1))
    tell(oracle, event.Submit((Task("b"),), group="g", fail_fast=True), Start("b", 1, 2))
    with pytest.raises(Violation, match="S14: a was not cancelled although its group"):
        tell(oracle, event.Ended("b", 2, State.FAILED, BOOM), settle("b", State.FAILED))


def test_a_group_that_failed_and_emptied_has_no_say_over_a_new_one_of_its_name() -> None:
    oracle = Oracle()
    tell(oracle, event.Submit((Task("a"),), group="g", fail_fast=True), Start("a", 1, 1))
    tell(oracle, event.Ended("a", 1, State.FAILED, BOOM), settle("a", State.FAILED))
    tell(oracle, event.Submit((Task("b"),), group="g"), Start("b", 1, 2))
    with pytest.raises(Violation, match="S5: b settled as cancelled without a reason"):
        tell(oracle, event.Tick(), Stop("b", 2, ""), settle("b", State.CANCELLED))


def test_the_oldest_who_lacks_nothing_is_not_passed_for_ever() -> None:
    """With one slot, each of the two that wait at once may be passed twice before it goes first."""
    oracle = with_started(Oracle(slots=1), Task("p0"))
    tell(oracle, event.Submit((Task("old"),)))

    def pass_it(n: int) -> None:
        tell(oracle, event.Submit((Task(f"p{n + 1}"),)))
        ended = settle(f"p{n}", State.SUCCEEDED)
        tell(oracle, event.Ended(f"p{n}", n + 1), ended, Start(f"p{n + 1}", 1, n + 2))

    for n in range(4):
        pass_it(n)
    with pytest.raises(Violation, match="S19: p5 starts past old, which is the oldest"):
        pass_it(4)


def test_two_spellings_of_a_file_are_one_where_case_is_folded() -> None:
    with_started(Oracle(), Task("a", writes="src/x"), Task("b", writes="SRC/X"))
    folded = with_started(Oracle(fold_case=True), Task("a", writes="src/x"))
    with pytest.raises(Violation, match="S1: "):
        tell(folded, event.Submit((Task("b", writes="SRC/X"),)), Start("b", 1, 2))


def test_a_wait_for_an_ancestor_that_is_let_begin_is_seen() -> None:
    oracle = with_started(Oracle(), Task("a"))
    child = event.Submit((Task("c"),), parent="a", token=1)
    tell(oracle, child, Start("c", 1, 2))
    with pytest.raises(Violation, match="can never end"):
        tell(oracle, event.AwaitTasks("c", 2, 1, ("a",)))


def test_a_wait_for_a_stranger_may_not_be_denied() -> None:
    oracle = with_started(Oracle(), Task("a"), Task("b"))
    with pytest.raises(Violation, match="would have ended"):
        tell(oracle, event.AwaitTasks("a", 1, 1, ("b",)), Deny("a", 1, 1, "no"))


def test_a_wait_that_ends_before_the_task_it_is_for_is_seen() -> None:
    oracle = with_started(Oracle(), Task("a"), Task("b"))
    with pytest.raises(Violation, match="although b has not ended"):
        tell(oracle, event.AwaitTasks("a", 1, 1, ("b",)), Resume("a", 1, 1, (), 0))


def test_a_wait_that_does_not_end_with_its_task_is_seen() -> None:
    oracle = with_started(Oracle(), Task("a"), Task("b"))
    tell(oracle, event.AwaitTasks("a", 1, 1, ("b",)))
    with pytest.raises(Violation, match=r"S9: a .* could go on after its tasks"):
        tell(oracle, event.Ended("b", 2), settle("b", State.SUCCEEDED))


def test_claims_that_are_granted_although_they_were_withdrawn_are_seen() -> None:
    oracle = with_started(Oracle(slots=2), Task("a"), Task("b", writes="y"))
    tell(oracle, event.Extend("a", 1, 1, (write("y"),)))
    tell(oracle, event.Submit((Task("c"),)), Start("c", 1, 3))
    tell(oracle, event.Withdraw("a", 1, 1))
    ended = (settle("b", State.SUCCEEDED), Resume("a", 1, 1, (write("y"),), 4))
    with pytest.raises(Violation, match="grants other claims"):
        tell(oracle, event.Ended("b", 2), *ended)


def test_a_withdrawal_that_goes_unanswered_is_seen() -> None:
    oracle = with_started(Oracle(), Task("a"))
    with pytest.raises(Violation, match=r"S9: a .* could go on after its slot"):
        tell(oracle, event.Withdraw("a", 1, 1))


def test_a_start_on_what_is_held_from_outside_is_seen() -> None:
    oracle = with_started(Oracle(), Task("a", writes="x"))
    tell(oracle, event.Occupy("old", (write("y"),)))
    with pytest.raises(Violation, match=r"S1: .* zombie old"):
        tell(oracle, event.Submit((Task("b", reads="y"),)), Start("b", 1, 2))


def test_a_start_held_up_by_what_was_vacated_is_seen() -> None:
    oracle = Oracle()
    tell(oracle, event.Occupy("old", (write("y"),)))
    tell(oracle, event.Submit((Task("b", reads="y"),)))
    with pytest.raises(Violation, match="S9: b could start"):
        tell(oracle, event.Vacate("old"))
