"""Waits of what already runs: for more claims, for children, for a person."""

from __future__ import annotations

import pytest

from interlock.errors import InvalidOption, UnknownTask
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Change, Deny, Resume, Start
from interlock.kernel.kernel import Kernel
from interlock.model.claim import read, uses, write
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, denied, resumed, settled, started, stopped

# -- extensions -----------------------------------------------------------------------------


def test_an_extension_that_is_free_is_granted_at_once_with_a_token_of_its_own() -> None:
    run = Judged()
    run.submit(Task("a", writes="x"))
    assert run.extend("a", write("y"), request=7) == [Resume("a", 1, 7, (write("y"),), 2)]
    assert started(run.submit(Task("b", writes="y"))) == []
    assert started(run.ends("a")) == ["b"]


def test_an_extension_waits_with_its_claims_kept_and_its_slot_lent_out() -> None:
    run = Judged(slots=2)
    run.submit(Task("a", writes="x"), Task("b", writes="y"), Task("c"))
    assert started(run.extend("a", read("y"))) == ["c"]
    assert (run.state("a"), sorted(run.running())) == (State.RUNNING, ["b", "c"])
    assert started(run.submit(Task("d", writes="x"))) == []
    assert resumed(run.ends("b")) == ["a"]
    assert sorted(run.running()) == ["a", "c"]


def test_an_extension_gets_its_slot_back_before_anything_new_starts() -> None:
    run = Judged(slots=1)
    run.submit(Task("a", writes="x"))
    run.submit(Task("b", writes="y"), Task("c", priority=9))
    run.asks("a")
    run.ends("c")
    run.handle(s.Answer("a", 1))
    assert run.running() == ["b"]
    run.submit(Task("urgent", priority=99))
    told = run.ends("b")
    assert (resumed(told), started(told)) == (["a"], [])


def test_an_extension_ignores_reservations() -> None:
    run = Judged(slots=2)
    run.submit(Task("a", reads="doc"))
    run.submit(Task("writer", writes="doc"))
    for number in range(4):
        run.submit(Task(f"r{number}", reads="doc"))
        run.ends(f"r{number}")
    assert started(run.submit(Task("late", reads="doc"))) == []
    assert resumed(run.extend("a", read("doc"))) == ["a"]


@pytest.mark.parametrize("size", [2, 3])
def test_claims_that_wait_for_each_other_are_denied_not_deadlocked(size: int) -> None:  # pitfall 8
    run = Judged()
    run.submit(*(Task(f"t{n}", writes=f"f{n}") for n in range(size)))
    for number in range(size - 1):
        assert run.extend(f"t{number}", write(f"f{number + 1}")) == []
    told = run.extend(f"t{size - 1}", write("f0"))
    last = f"t{size - 1}"
    assert told == [Deny(last, size, 1, "it would wait for tasks that wait for it")]
    # The denied one still runs, and its end lets all the others go on, one after another.
    assert run.state(last) is State.RUNNING
    for number in reversed(range(1, size)):
        assert resumed(run.ends(f"t{number}")) == [f"t{number - 1}"]


def test_two_that_ask_for_more_than_is_left_of_a_capacity_are_not_deadlocked() -> None:
    run = Judged(capacities={"gpu": 4})
    run.submit(Task("a", uses="gpu=2"), Task("b", uses="gpu=2"))
    assert run.extend("a", uses("gpu")) == []
    assert denied(run.extend("b", uses("gpu"))) == ["b"]
    assert resumed(run.ends("b")) == ["a"]


def test_an_extension_beyond_the_capacity_is_refused() -> None:
    run = Judged(capacities={"gpu": 2})
    run.submit(Task("a", uses="gpu"))
    run.refuses(s.Extend("a", 1, 1, (uses("gpu", 2),)), InvalidOption, "only 2")


def test_an_extension_is_given_up_when_its_attempt_is_cancelled() -> None:
    run = Judged()
    run.submit(Task("a", writes="x"), Task("b", writes="y"))
    run.extend("a", write("y"))
    run.submit(Task("c", writes="y"))
    run.handle(s.Cancel("a"))
    told = run.ends("b")
    assert (resumed(told), started(told)) == ([], ["c"])


# -- people ---------------------------------------------------------------------------------


def test_a_question_lends_the_slot_out_and_keeps_the_claims() -> None:
    run = Judged(slots=1)
    run.submit(Task("a", writes="x"), Task("b", writes="y"))
    told = run.asks("a", request=3)
    assert Change("a", State.NEEDS_YOU, "Really?") in told
    assert started(told) == ["b"]
    assert started(run.submit(Task("c", writes="x"))) == []
    assert run.handle(s.Answer("a", 3)) == []
    told = run.ends("b")
    assert told[-2:] == [Change("a", State.RUNNING, "answered"), Resume("a", 1, 3, (), 0)]


def test_only_an_open_question_can_be_answered_and_only_once() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"))
    run.refuses(s.Answer("a", 1), UnknownTask, "no open question")
    run.asks("a")
    run.refuses(s.Answer("a", 2), UnknownTask, "no open question 2")
    run.handle(s.Answer("a", 1))
    run.refuses(s.Answer("a", 1), UnknownTask, "no open question")


def test_the_timeout_of_an_attempt_goes_on_while_a_person_is_asked() -> None:
    run = Judged()
    run.submit(Task("a", timeout=10))
    run.asks("a", at=2)
    told = run.until(10)
    assert (settled(told), stopped(told)) == ({"a": State.TIMED_OUT}, ["a"])


def test_a_request_number_is_free_again_once_it_is_answered() -> None:
    run = Judged()
    run.submit(Task("a", writes="x"), Task("b", writes="y"))
    run.extend("a", write("y"))
    run.refuses(s.Extend("a", 1, 1, (write("z"),)), InvalidOption, "open request 1")
    assert resumed(run.ends("b")) == ["a"]
    assert resumed(run.extend("a", write("z"))) == ["a"]


def test_a_start_instruction_comes_for_nobody_who_only_goes_on() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"))
    run.asks("a")
    assert not any(isinstance(each, Start) for each in run.handle(s.Answer("a", 1)))


def test_nothing_of_an_extension_that_was_granted_at_once_is_kept() -> None:
    kernel = Kernel(slots=2)
    for n in range(20):
        kernel.handle(s.Submit((Task(f"t{n}"),)), n)
        [token] = [each.token for each in kernel.alive()]
        kernel.handle(s.Extend(f"t{n}", token, 1, (write("x"),)), n)
        kernel.handle(s.Ended(f"t{n}", token), n)
    assert len(kernel._run.admission.profiles) <= 1
