"""Child tasks: they may have what an ancestor holds, and whoever waits for them lends its slot."""

from __future__ import annotations

import pytest

from interlock.errors import ChildWouldDeadlock, UnknownTask
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Resume
from interlock.model.claim import uses, write
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, causes, denied, resumed, settled, started, stopped


def test_children_three_deep_run_with_one_slot() -> None:
    run = Judged(slots=1)
    run.submit(Task("t0", writes="src/"))
    for depth in range(3):
        parent, child = f"t{depth}", f"t{depth + 1}"
        assert started(run.child(parent, Task(child, writes="src/"))) == []
        assert started(run.awaits(parent, child)) == [child]
    for depth in (3, 2, 1):
        assert resumed(run.ends(f"t{depth}")) == [f"t{depth - 1}"]
    assert settled(run.ends("t0")) == {"t0": State.SUCCEEDED}


def test_children_work_on_what_their_parent_holds_and_siblings_exclude_each_other() -> None:
    run = Judged()
    run.submit(Task("p", writes="src/", uses="db!"))
    children = (
        Task("a", writes="src/a", uses="db!"),
        Task("b", writes="src/b"),
        Task("again", writes="src/a"),
    )
    assert sorted(started(run.child("p", *children))) == ["a", "b"]
    run.awaits("p", "a", "b", "again")
    assert started(run.ends("a")) == ["again"]
    run.ends("b")
    assert run.ends("again")[-1] == Resume("p", 1, 1, (), 0)


def test_outsiders_stay_excluded_by_the_parent_while_its_children_work() -> None:
    run = Judged()
    run.submit(Task("p", writes="src/"))
    run.submit(Task("outsider", reads="src/b"))
    run.child("p", Task("a", writes="src/a"))
    run.awaits("p", "a")
    run.ends("a")
    assert run.state("outsider") is State.WAITING
    assert started(run.ends("p")) == ["outsider"]


def test_a_child_waits_for_outsiders_that_hold_what_it_claims_beyond_its_parent() -> None:
    run = Judged()
    run.submit(Task("p", writes="src/"), Task("outsider", writes="docs/"))
    assert started(run.child("p", Task("c", writes=["src/", "docs/"]))) == []
    run.awaits("p", "c")
    assert started(run.ends("outsider")) == ["c"]


def test_a_child_borrows_its_parents_share_of_a_capacity() -> None:
    run = Judged(capacities={"gpu": 4})
    run.submit(Task("p", uses="gpu=3"), Task("outsider", uses="gpu"))
    children = (Task("a", uses="gpu=2"), Task("b", uses="gpu=2"))
    assert started(run.child("p", *children)) == ["a"]
    run.awaits("p", "a", "b")
    assert started(run.ends("a")) == ["b"]
    assert resumed(run.ends("b")) == ["p"]


def test_a_parent_goes_on_only_when_a_slot_is_free_again() -> None:
    run = Judged(slots=1)
    run.submit(Task("p"))
    run.child("p", Task("c", priority=1))
    run.submit(Task("other"))
    run.awaits("p", "c")
    assert resumed(run.ends("c", gone=False)) == []
    told = run.gone("c")
    assert (resumed(told), started(told)) == (["p"], [])


def test_waiting_for_children_that_have_ended_lends_nothing() -> None:
    run = Judged(slots=2)
    run.submit(Task("p"))
    run.child("p", Task("c"))
    run.fails("c")
    assert run.awaits("p", "c") == [Resume("p", 1, 1, (), 0)]


def test_a_failed_child_ends_its_parents_wait_and_not_its_parent() -> None:
    run = Judged()
    run.submit(Task("p"))
    run.child("p", Task("a"), Task("b", after="a"))
    run.awaits("p", "a", "b")
    told = run.fails("a")
    assert settled(told) == {"a": State.FAILED, "b": State.SKIPPED}
    assert resumed(told) == ["p"]


@pytest.mark.parametrize("status", [State.SUCCEEDED, State.FAILED])
def test_a_parent_that_ends_cancels_its_children(status: State) -> None:
    run = Judged()
    run.submit(Task("p"))
    run.child("p", Task("a"), Task("b", after="a"))
    told = run.ends("p", status)
    assert settled(told) == {"p": status, "a": State.CANCELLED, "b": State.CANCELLED}
    assert (stopped(told), causes(told)["b"]) == (["a"], "its parent ended")


def test_the_next_attempt_of_a_parent_does_not_inherit_children() -> None:
    run = Judged()
    run.submit(Task("p", writes="x", retry=Retry(2, backoff=0)))
    run.child("p", Task("c", writes="x"))
    assert settled(run.fails("p")) == {"c": State.CANCELLED}
    # The child is a zombie on x: no longer kin to the parent's next attempt.
    assert started(run.until(0)) == []
    assert started(run.gone("c")) == ["p"]
    run.refuses(s.AwaitTasks("p", run.tokens["p"], 1, ("x",)), UnknownTask, "no task .* 'x'")


@pytest.mark.parametrize(
    "children",
    [
        (Task("c", after="p"),),
        (Task("c", after="waits"),),
        (Task("good"), Task("c", after="waits")),
    ],
)
def test_a_child_that_could_only_start_after_its_parent_is_refused(
    children: tuple[Task, ...],
) -> None:
    run = Judged()
    run.submit(Task("p", writes="x"), Task("waits", writes="x"))
    run.refuses(s.Submit(children, parent="p", token=1), ChildWouldDeadlock, "claim less")
    assert started(run.child("p", Task("c", writes="x"))) == ["c"]


def test_a_child_that_waits_for_one_that_waits_for_its_parent_is_refused() -> None:
    run = Judged()
    run.submit(Task("p", writes="x"), Task("q", writes="y"))
    assert run.extend("q", write("x")) == []
    hanging = s.Submit((Task("c", writes="y"),), parent="p", token=1)
    run.refuses(hanging, ChildWouldDeadlock, "'c' of task 'p'")


def test_an_extension_that_would_wait_for_ones_own_children_for_ever_is_denied() -> None:
    run = Judged()
    run.submit(Task("p", writes="x"), Task("q", writes="y"))
    run.child("p", Task("c", writes="y"))
    run.awaits("p", "c")
    assert denied(run.extend("q", write("x"))) == ["q"]
    assert started(run.ends("q")) == ["c"]


def test_a_capacity_that_the_waiting_parent_holds_can_be_lent_but_not_exceeded() -> None:
    run = Judged(capacities={"gpu": 2})
    run.submit(Task("p", uses="gpu=2"))
    assert started(run.child("p", Task("c", uses=uses("gpu", 2)))) == ["c"]
    run.awaits("p", "c")
    assert resumed(run.ends("c")) == ["p"]
    assert started(run.submit(Task("outsider", uses="gpu"))) == []


def test_the_slot_of_a_waiting_zombie_is_not_given_out_twice() -> None:
    run = Judged(slots=1)
    run.submit(Task("p"))
    run.child("p", Task("c"))
    run.awaits("p", "c")
    assert stopped(run.handle(s.Cancel("p"))) == ["p", "c"]
    assert started(run.submit(Task("next"))) == []
    # The parent had lent its slot to the child: only when that is gone there is one again.
    assert started(run.gone("p")) == []
    assert started(run.gone("c")) == ["next"]
