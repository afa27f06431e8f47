"""Why is this waiting? Every reason at once, with holder, claim and since when."""

from __future__ import annotations

import pytest

from interlock.errors import UnknownTask
from interlock.kernel import stimuli as s
from interlock.model import why
from interlock.model.claim import read, uses, write
from interlock.model.limits import Rate, Retry
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged


def test_two_holders_a_dependency_a_rate_and_a_slot_are_all_named() -> None:
    run = Judged(slots=3, rates={"api": Rate("1/min")})
    run.submit(Task("writer", writes="src/**"), at=1.0)
    run.submit(Task("reader", reads="docs/a.md"), at=2.0)
    run.submit(Task("before", uses="api"), at=3.0)
    run.submit(Task("a", writes=["src/x.py", "docs/"], uses="api", after="before"), at=4.0)
    answer = run.why("a")
    assert (answer.task_id, answer.state, answer.since) == ("a", State.BLOCKED, 4.0)
    assert set(answer.reasons) == {
        why.UnfinishedDependency("before", State.RUNNING, since=3.0),
        why.HeldClaim(write("src/x.py"), "writer", write("src/**"), 1.0, False, "src/x.py"),
        why.HeldClaim(write("docs/"), "reader", read("docs/a.md"), 2.0, False, "docs/a.md"),
        why.RateLimited("api", wanted=1, free=0, quota=1, window=60.0, since=3.0, until=63.0),
        why.NoCapacity(
            "slots", 1, 0, 3, (("writer", 1, 1.0), ("reader", 1, 2.0), ("before", 1, 3.0))
        ),
    }
    assert answer.clears_at is None


def test_the_reasons_go_one_by_one() -> None:
    run = Judged(slots=1, rates={"api": Rate("1/min")})
    run.submit(Task("before", writes="x", uses="api"), Task("a", writes="x", after="before"))
    kinds = [type(each) for each in run.why("a").reasons]
    assert kinds == [why.UnfinishedDependency, why.HeldClaim, why.NoCapacity]
    run.ends("before", gone=False)
    assert [type(each) for each in run.why("a").reasons] == [why.HeldClaim, why.NoCapacity]
    run.gone("before")
    assert run.why("a").reasons == ()
    assert run.state("a") is State.RUNNING


def test_a_zombie_is_named_as_one_that_was_told_to_stop() -> None:
    run = Judged()
    run.submit(Task("z", writes="src/"), Task("a", reads="src/x"))
    assert run.why("a").suggestions == ("cancel 'z', or claim less than read src/x",)
    run.handle(s.Cancel("z"))
    [reason] = run.why("a").reasons
    assert reason == why.HeldClaim(read("src/x"), "z", write("src/"), 0.0, True, "src/x")
    assert "end what still runs of 'z'" in run.why("a").suggestions[0]


def test_a_claim_that_was_added_in_mid_flight_is_named() -> None:
    run = Judged()
    run.submit(Task("holder"))
    run.extend("holder", write("src/"))
    run.submit(Task("a", writes="src/x"))
    [reason] = run.why("a").reasons
    assert reason == why.HeldClaim(write("src/x"), "holder", write("src/"), 0.0, False, "src/x")


def test_lacking_capacity_says_who_holds_how_much_since_when() -> None:
    run = Judged(capacities={"memory": 10})
    run.submit(Task("b", uses="memory=4"), at=1.0)
    run.submit(Task("c", uses="memory=3"), at=2.0)
    run.submit(Task("a", uses="memory=8"), Task("all", uses="memory!"), at=3.0)
    holders = (("b", 4, 1.0), ("c", 3, 2.0))
    assert run.why("a").reasons == (why.NoCapacity("memory", 8, 3, 10, holders),)
    assert run.why("all").reasons == (why.NoCapacity("memory", 10, 3, 10, holders),)
    assert run.why("a").suggestions == ("raise the capacity of 'memory' above 10",)


def test_a_reservation_is_named_with_how_often_the_older_task_was_overtaken() -> None:
    run = Judged(slots=2)
    run.submit(Task("long", reads="doc"))
    run.submit(Task("writer", writes="doc"), at=1.0)
    for number in range(4):
        run.submit(Task(f"r{number}", reads="doc"))
        run.ends(f"r{number}")
    run.submit(Task("a", reads="doc"))
    assert run.why("a").reasons == (
        why.ReservedClaim(read("doc"), "writer", write("doc"), since=1.0, overtaken=4),
    )


def test_pauses_are_named_with_what_they_cover() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"))
    run.handle(s.Pause("b"))
    run.handle(s.Pause(), at=2.0)
    run.ends("a")
    assert run.why("b").reasons == (why.Paused(False, 0.0), why.Paused(True, 2.0))
    assert run.why("b").suggestions == ("resume the task", "resume the run")


def test_a_drain_is_named() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"))
    run.handle(s.Drain(), at=5.0)
    run.ends("a")
    assert run.why("b").reasons == (why.Draining(5.0),)


def test_a_backoff_says_when_it_is_over() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(3, backoff=8)))
    run.fails("a", at=2.0)
    answer = run.why("a")
    assert answer.reasons == (why.Backoff(attempts=1, since=2.0, until=10.0),)
    assert (answer.state, answer.clears_at) == (State.RETRYING, 10.0)


def test_an_attempt_that_is_not_gone_yet_keeps_the_next_one_waiting() -> None:
    run = Judged()
    run.submit(Task("a", timeout=10, retry=Retry(2, backoff=1)))
    run.until(20)
    assert why.PreviousAttemptAlive(1, since=10.0) in run.why("a").reasons
    assert run.why("a").clears_at is None


def test_a_question_is_named_until_it_is_answered_and_then_the_slot() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"))
    run.asks("a", at=1.0)
    assert run.why("a").reasons == (why.UnansweredQuestion("Really?", since=1.0),)
    assert run.why("a").suggestions == ("answer the question",)
    run.handle(s.Answer("a", 1))
    assert run.why("a").reasons == (why.NoCapacity("slots", 1, 0, 1, (("b", 1, 1.0),)),)


def test_a_parent_waits_for_each_child_that_has_not_ended() -> None:
    run = Judged(slots=2)
    run.submit(Task("p"))
    run.child("p", Task("c1"), Task("c2"), Task("c3", after="c2"), at=1.0)
    run.awaits("p", "c1", "c2", "c3")
    run.ends("c1", at=2.0)
    assert run.why("p").reasons == (
        why.UnfinishedTask("c2", State.RUNNING, since=1.0),
        why.UnfinishedTask("c3", State.BLOCKED, since=1.0),
    )


def test_an_extension_names_whom_it_waits_for() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b", writes="x"))
    run.extend("a", write("x"))
    assert run.why("a").reasons == (why.HeldClaim(write("x"), "b", write("x"), 0.0, False, "x"),)


def test_a_wait_clears_when_the_last_of_its_reasons_is_expected_to() -> None:
    run = Judged(slots=3, capacities={"gpu": 2})
    run.submit(
        Task("x", writes="x", estimate=30),
        Task("g1", uses="gpu", estimate=20),
        Task("g2", uses="gpu", estimate=50),
    )
    run.submit(Task("one", uses="gpu"), Task("all", uses="gpu=2"), Task("both", writes="x"))
    run.handle(s.SetCapacity("slots", 9))
    assert run.why("one").clears_at == 20.0
    assert run.why("all").clears_at == 50.0
    assert run.why("both").clears_at == 30.0


def test_what_nobody_can_foresee_has_no_time() -> None:
    run = Judged()
    run.submit(Task("x", writes="x"), Task("a", writes="x"))
    assert run.why("a").clears_at is None


def test_a_holder_past_its_estimate_is_not_promised_for_the_past() -> None:
    run = Judged()
    run.submit(Task("x", writes="x", estimate=5), Task("a", writes="x"))
    run.handle(s.Tick(), at=9.0)
    assert run.why("a").clears_at is None


def test_a_claim_on_what_an_ancestor_holds_is_no_reason() -> None:
    run = Judged(slots=1)
    run.submit(Task("p", writes="x"))
    run.child("p", Task("c", writes="x", uses=uses("db")))
    assert [type(each) for each in run.why("c").reasons] == [why.NoCapacity]


def test_a_running_and_an_ended_task_have_no_reasons() -> None:
    run = Judged()
    run.submit(Task("a"))
    assert (run.why("a").state, run.why("a").reasons) == (State.RUNNING, ())
    run.ends("a", at=7.0)
    run.handle(s.Tick(), 9.0)
    assert (run.why("a").state, run.why("a").reasons) == (State.SUCCEEDED, ())
    assert run.why("a").since == 7.0
    with pytest.raises(UnknownTask, match="nobody"):
        run.why("nobody")


def test_a_held_rate_is_held_since_the_hold_and_lets_nothing_through() -> None:
    run = Judged(rates={"api": Rate("1/min")})
    run.handle(s.HoldRate("api", 50.0), at=5.0)
    run.submit(Task("a", uses="api"), at=6.0)
    [reason] = run.why("a").reasons
    assert isinstance(reason, why.RateLimited)
    assert (reason.since, reason.free, reason.until) == (5.0, 0, 50.0)


def test_a_pause_of_a_task_is_since_the_pause() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"))
    run.handle(s.Pause("b"), at=7.0)
    assert why.Paused(False, 7.0) in run.why("b").reasons


def test_a_claim_added_in_mid_flight_is_held_since_it_was_granted() -> None:
    run = Judged()
    run.submit(Task("h"))
    run.extend("h", write("x"), at=2.0)
    run.submit(Task("a", writes="x"))
    [reason] = run.why("a").reasons
    assert isinstance(reason, why.HeldClaim)
    assert reason.since == 2.0


def test_each_of_several_waits_is_named() -> None:
    run = Judged(slots=2)
    run.submit(Task("a"), Task("h", writes="x"))
    run.child("a", Task("c", writes="x"))
    run.awaits("a", "c", request=1)
    run.asks("a", request=2)
    run.extend("a", write("x"), request=3)
    kinds = {type(reason) for reason in run.why("a").reasons}
    assert kinds == {why.UnfinishedTask, why.UnansweredQuestion, why.HeldClaim}


def test_a_holder_that_spells_the_path_in_another_case_is_named() -> None:
    run = Judged(fold_case=True)
    run.submit(Task("h", writes="SRC/Api/"))
    run.submit(Task("a", reads="src/**/*.py"))
    [reason] = run.why("a").reasons
    assert isinstance(reason, why.HeldClaim)
    assert (reason.holder, reason.holder_claim) == ("h", write("SRC/Api/"))
