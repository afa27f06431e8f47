"""A running task may wait for any other of the run, unless that could only end after itself."""

from __future__ import annotations

import pytest

from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Resume
from interlock.model.claim import uses as named
from interlock.model.claim import write
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, denied, resumed, settled, started, stopped


def test_whoever_waits_for_a_stranger_lends_its_slot_to_it() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"), Task("b"))
    assert started(run.awaits("a", "b")) == ["b"]
    assert resumed(run.ends("b")) == ["a"]


def test_tasks_that_have_ended_count_as_over() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"), Task("c"))
    run.fails("b")
    run.ends("c", gone=False)
    assert run.awaits("a", "b", "c") == [Resume("a", 1, 1, (), 0)]


def test_a_wait_is_over_with_the_last_of_its_tasks_whatever_became_of_them() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"), Task("c", after="b"), Task("d"))
    run.awaits("a", "b", "c", "d")
    assert resumed(run.fails("b")) == []
    assert resumed(run.handle(s.Cancel("d"))) == ["a"]


def test_one_task_may_be_waited_for_by_several() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"), Task("c"), Task("d"))
    for task_id in ("a", "b", "d"):
        run.awaits(task_id, "c")
    run.handle(s.Cancel("d"))
    assert resumed(run.ends("c")) == ["a", "b"]


def test_a_wait_for_itself_is_denied() -> None:
    run = Judged()
    run.submit(Task("a"))
    assert denied(run.awaits("a", "a")) == ["a"]


def test_a_wait_for_an_ancestor_is_denied_and_so_is_one_for_what_comes_after_it() -> None:
    run = Judged()
    run.submit(Task("a"), Task("after", after="a"))
    run.child("a", Task("child"))
    run.child("child", Task("grandchild"))
    for awaited in ("a", "child", "after"):
        assert denied(run.awaits("grandchild", awaited)) == ["grandchild"]


def test_a_wait_for_one_who_needs_what_the_waiting_one_holds_is_denied() -> None:
    run = Judged(capacities={"gpu": 2})
    run.submit(Task("a", writes="x", uses="gpu=2"))
    run.submit(Task("b", reads="x"), Task("c", uses="gpu"), Task("d", after="b"))
    for awaited in "bcd":
        assert denied(run.awaits("a", awaited)) == ["a"]


def test_a_circle_of_waits_is_denied_where_it_would_close() -> None:
    run = Judged()
    run.submit(Task("a", writes="x"), Task("b", writes="y"), Task("c"))
    assert run.awaits("a", "b") == []
    assert run.awaits("b", "c") == []
    assert denied(run.awaits("c", "a")) == ["c"]
    assert denied(run.extend("c", write("x"))) == ["c"]
    assert resumed(run.ends("c")) == ["b"]


@pytest.mark.parametrize("uses", [(), "gpu"])
def test_what_a_task_may_need_for_another_attempt_is_not_waited_for_beside_it(uses: str) -> None:
    """Otherwise its next attempt would wait for what the first one left to whoever waits for it."""
    claim = named("gpu") if uses else write("x")
    for first in ("extend", "await"):
        run = Judged(capacities={"gpu": 1})
        writes = () if uses else "x"
        run.submit(Task("b", writes=writes, uses=uses, retry=Retry(2, backoff=0)))
        run.submit(Task("a"))
        steps = [run.extend("a", claim, request=1)] if first == "extend" else []
        steps += [run.awaits("a", "b", request=2)]
        steps += [run.extend("a", claim, request=3)] if first == "await" else []
        assert [denied(told) for told in steps] == [[], ["a"]]


def test_the_last_attempt_of_a_task_may_be_waited_for_beside_what_it_holds() -> None:
    run = Judged()
    run.submit(Task("b", writes="x"), Task("a"))
    assert denied(run.extend("a", write("x"), request=1)) == []
    assert denied(run.awaits("a", "b", request=2)) == []
    assert resumed(run.ends("b")) == ["a", "a"]


def test_what_is_waited_for_passes_reservations() -> None:
    """Otherwise: the due one waits for `a`, which waits for `b`, which the due one holds back."""
    run = Judged(slots=1)
    run.submit(Task("a", writes="x"))
    run.submit(Task("due", writes=["x", "y"]))
    run.asks("a")
    for number in range(2):
        run.submit(Task(f"past{number}", writes="y"))
        run.ends(f"past{number}")
    assert [each.task_id for each in run.kernel.reservations()] == ["due"]
    run.submit(Task("before"), Task("b", writes="y", after="before"))
    run.ends("before")
    assert run.state("b") is State.WAITING
    run.handle(s.Answer("a", 1))
    assert started(run.awaits("a", "b")) == ["b"]
    assert resumed(run.ends("b")) == ["a"]
    assert started(run.ends("a")) == ["due"]


def test_what_is_waited_for_starts_in_a_drain_with_all_that_comes_before_it() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"))
    run.submit(Task("first"), Task("then", after="first"), Task("other"))
    run.handle(s.Drain())
    assert started(run.awaits("a", "then")) == ["first"]
    assert started(run.ends("first")) == ["then"]
    told = run.ends("then")
    assert (resumed(told), started(told)) == (["a"], [])
    assert started(run.ends("a")) == []


def test_whoever_ends_while_it_waits_hears_nothing_more() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"))
    run.awaits("a", "b")
    assert stopped(run.handle(s.Cancel("a"))) == ["a"]
    assert resumed(run.ends("b")) == []


def test_a_cancelled_task_ends_the_wait_for_it_though_it_is_not_gone() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"))
    run.awaits("a", "b")
    told = run.handle(s.Cancel("b"))
    assert (settled(told), resumed(told)) == ({"b": State.CANCELLED}, ["a"])


@pytest.mark.parametrize("over", [False, True])
def test_a_child_of_an_attempt_that_is_over_is_refused(over: bool) -> None:
    run = Judged()
    run.submit(Task("a"))
    run.handle(s.Cancel("a"))
    if over:
        run.gone("a")
    [refusal] = run.child("a", Task("child"))
    assert (type(refusal).__name__, refusal[:2]) == ("Refused", ("a", 1))
    assert run.progress().total == 1
