"""Who may start: all claims and a slot at once, and never a moment later than they are free."""

from __future__ import annotations

from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Start
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, started


def test_a_task_with_no_claims_starts_at_once() -> None:
    assert Judged().submit(Task("a")) == [Start("a", 1, 1)]


def test_a_task_gets_all_of_its_claims_or_none() -> None:
    run = Judged()
    run.submit(Task("x", writes="x"), Task("y", writes="y"))
    assert started(run.submit(Task("both", writes=["x", "y"]))) == []
    assert started(run.ends("x")) == []
    # It waits for y and does not sit on x meanwhile.
    assert started(run.submit(Task("again", writes="x"))) == ["again"]
    run.ends("again")
    assert started(run.ends("y")) == ["both"]


def test_tasks_that_want_the_same_two_things_in_opposite_order_do_not_deadlock() -> None:
    run = Judged()
    assert started(run.submit(Task("a", writes=["x", "y"]), Task("b", writes=["y", "x"]))) == ["a"]
    assert started(run.ends("a")) == ["b"]


def test_readers_start_together_and_a_writer_waits_for_all_of_them() -> None:
    run = Judged()
    run.submit(Task("first", writes="doc"))
    run.submit(*(Task(f"r{n}", reads="doc") for n in range(3)))
    assert started(run.ends("first")) == ["r0", "r1", "r2"]
    run.submit(Task("writer", writes="doc"))
    run.ends("r1")
    run.ends("r0")
    assert run.state("writer") is State.WAITING
    assert started(run.ends("r2")) == ["writer"]


def test_a_plain_name_is_shared_by_its_users_and_excluded_by_one_who_wants_it_alone() -> None:
    run = Judged()
    both = (Task("a", uses="db:staging"), Task("b", uses="db:staging"))
    assert started(run.submit(*both)) == ["a", "b"]
    assert started(run.submit(Task("alone", uses="db:staging!"))) == []
    run.ends("a")
    assert started(run.ends("b")) == ["alone"]


def test_a_name_and_a_path_of_the_same_spelling_never_conflict() -> None:
    run = Judged()
    assert started(run.submit(Task("path", writes="db"), Task("name", uses="db!"))) == [
        "path",
        "name",
    ]


def test_a_cancelled_candidate_passes_its_wake_up_on() -> None:
    run = Judged(slots=1)
    run.submit(Task("holder", writes="x"))
    run.submit(Task("second", writes="x"))
    run.submit(Task("third", writes="x"))
    run.handle(s.Cancel("second"))
    assert started(run.ends("holder")) == ["third"]


def test_locks_do_not_leak_when_a_task_is_cancelled_before_it_runs() -> None:  # pitfall 1
    run = Judged()
    run.submit(Task("holder", writes="y"))
    run.submit(Task("waits", writes=["x", "y"]))
    run.handle(s.Cancel("waits"))
    assert run.holders() == ["holder"]
    assert started(run.submit(Task("next", writes="x"))) == ["next"]


def test_a_slot_starved_task_does_not_freeze_those_that_wait_for_claims() -> None:
    run = Judged(slots=2)
    run.submit(Task("a", writes="x"))
    run.submit(Task("b"))
    run.submit(Task("for slot"))
    run.submit(Task("for claim", writes="x", priority=1))
    assert started(run.ends("a")) == ["for claim"]
    assert started(run.submit(Task("later", writes="x", priority=1))) == []
    assert started(run.ends("b")) == ["for slot"]
    assert started(run.ends("for claim")) == ["later"]


def test_a_task_that_a_zombie_blocks_does_not_freeze_the_rest() -> None:
    run = Judged(slots=2)
    run.submit(Task("zombie", writes="x"))
    run.submit(Task("blocked", writes=["x", "y"]))
    run.handle(s.Cancel("zombie"))
    assert started(run.submit(Task("free", writes="y"))) == ["free"]
    run.ends("free")
    assert started(run.gone("zombie")) == ["blocked"]


def test_a_task_whose_own_claims_overlap_does_not_wait_for_itself() -> None:
    run = Judged(capacities={"gpu": 2})
    task = Task("a", writes=["src/**", "src/a"], reads="src/", uses=["gpu", "db!"])
    assert started(run.submit(task)) == ["a"]
    assert started(run.submit(Task("b", reads="src/a"))) == []
    assert started(run.ends("a")) == ["b"]
