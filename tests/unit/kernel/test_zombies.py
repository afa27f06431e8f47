"""Ended is not gone: zombies keep what they hold, and old tokens have no say."""

from __future__ import annotations

import pytest

from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Refused
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, refused, settled, started


def test_an_attempt_that_has_ended_keeps_its_claims_and_slot_until_it_is_gone() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"))
    told = run.ends("a", gone=False)
    assert (settled(told), started(told)) == ({"a": State.SUCCEEDED}, [])
    assert run.progress().zombies == 1
    assert started(run.gone("a")) == ["b"]
    assert run.progress().zombies == 0


def test_a_further_attempt_waits_until_the_last_one_is_gone() -> None:
    run = Judged()
    run.submit(Task("a", timeout=10, retry=Retry(2, backoff=1)))
    run.until(50)
    assert run.state("a") is State.RETRYING
    assert started(run.gone("a", at=50)) == ["a"]
    run.fails("a", gone=False)
    assert run.state("a") is State.FAILED


def test_a_zombie_keeps_claims_and_slot_though_its_task_has_its_outcome() -> None:
    run = Judged(slots=2)
    run.submit(Task("a", writes="x", timeout=10), Task("b", writes="x"), Task("c"), Task("d"))
    told = run.until(10)
    assert (settled(told), started(told)) == ({"a": State.TIMED_OUT}, [])
    assert run.progress().zombies == 1
    assert started(run.ends("c")) == ["d"]
    assert started(run.gone("a")) == ["b"]


def test_a_zombie_that_holds_no_slot_keeps_its_claims_all_the_same() -> None:
    run = Judged(slots=1, zombies_hold_slots=False)
    run.submit(Task("a", writes="x", timeout=10), Task("b", writes="x"), Task("c"), Task("d"))
    assert started(run.until(10)) == ["c"]
    assert started(run.gone("a")) == []  # its slot has long been somebody else's
    assert started(run.ends("c")) == ["b"]
    assert started(run.ends("b")) == ["d"]


def test_a_zombie_that_had_lent_its_slot_out_does_not_give_it_back_twice() -> None:
    run = Judged(slots=1, zombies_hold_slots=False)
    run.submit(Task("a", timeout=10))
    run.asks("a")
    run.submit(Task("b"), Task("c"))
    assert run.running() == ["b"]
    assert started(run.until(10)) == []
    assert started(run.gone("a")) == []
    assert started(run.ends("b")) == ["c"]


@pytest.mark.parametrize("gone", [True, False])
def test_a_late_success_of_a_zombie_is_ignored(gone: bool) -> None:
    run = Judged()
    run.submit(Task("a", writes="x", timeout=10), Task("b", writes="x"))
    run.until(10)
    told = run.ends("a", gone=gone)
    assert (settled(told), refused(told)) == ({}, [])
    assert run.state("a") is State.TIMED_OUT
    assert started(told if gone else run.gone("a")) == ["b"]


def test_stale_claims_of_a_dead_holder_do_not_block_for_ever() -> None:  # pitfall 8
    run = Judged()
    run.submit(Task("a", writes="x"), Task("b", writes="x"))
    assert started(run.gone("a")) == ["b"]


def test_reports_with_an_old_token_are_refused_and_change_nothing() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(3, backoff=0)))
    run.fails("a")
    run.until(0)
    before = run.picture()
    for stale in (
        s.Ended("a", 1),
        s.Gone("a", 1),
        s.Extend("a", 1, 1, ()),
        s.Take("a", 1, 1, ()),
        s.Used("a", 1, 1, "api", 1),
        s.AwaitTasks("a", 1, 1, ()),
        s.Ask("a", 1, 1, "?"),
        s.Submit((Task("child"),), parent="a", token=1),
    ):
        assert run.handle(stale) == [Refused("a", 1, s.STIMULUS_NAMES[type(stale)])]
        assert run.picture() == before
    assert run.state("a") is State.RUNNING


def test_a_zombie_may_report_its_end_but_ask_for_nothing() -> None:
    run = Judged()
    run.submit(Task("a"))
    run.handle(s.Cancel("a"))
    assert refused(run.extend("a")) == ["extend"]
    assert refused(run.asks("a")) == ["ask"]
    assert refused(run.gone("a")) == []
    assert refused(run.gone("a")) == ["attempt_exited"]


def test_tokens_only_grow_and_no_two_holders_share_one() -> None:  # pitfall 2
    run = Judged(first_token=41)
    run.submit(Task("a", retry=Retry(2, backoff=0)), Task("b"))
    assert run.tokens == {"a": 41, "b": 42}
    run.fails("a")
    run.until(0)
    assert run.tokens == {"a": 43, "b": 42}
    # Another's token releases nothing.
    assert run.handle(s.Gone("a", 42)) == [Refused("a", 42, "attempt_exited")]


def test_what_one_turn_of_the_loop_reports_is_taken_in_before_anything_starts() -> None:
    run = Judged(slots=2)
    run.submit(Task("a", writes="x"), Task("b", writes="y"))
    run.submit(Task("both", writes=["x", "y"]))
    run.submit(Task("one", writes="x"))
    told = run.handle(s.Reports((s.Ended("a", 1), s.Ended("b", 2))))
    assert started(told) == ["both"]
