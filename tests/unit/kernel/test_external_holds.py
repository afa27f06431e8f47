"""What is left of an earlier run holds its claims against this one, as a zombie does."""

from __future__ import annotations

import pytest

from interlock.errors import DuplicateId, UnknownDependency, UnknownTask
from interlock.kernel import stimuli as s
from interlock.model import why
from interlock.model.claim import read, uses, write
from interlock.model.limits import Rate
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, started


def test_nobody_gets_what_is_held_from_outside_until_it_is_vacated() -> None:
    run = Judged()
    run.handle(s.Occupy("old", (write("src/"), uses("db", exclusive=True))))
    told = run.submit(Task("a", reads="src/x"), Task("b", uses="db"), Task("c", writes="docs/"))
    assert started(told) == ["c"]
    assert sorted(started(run.handle(s.Vacate("old")))) == ["a", "b"]


def test_it_holds_no_slot_and_counts_only_among_the_zombies() -> None:
    run = Judged(slots=1)
    run.handle(s.Occupy("old", (write("x"),)))
    assert started(run.submit(Task("a"))) == ["a"]
    assert (run.progress().zombies, run.progress().total, run.holders()) == (1, 1, ["a"])
    run.handle(s.Vacate("old"))
    assert run.progress().zombies == 0


def test_it_is_a_fact_also_where_others_hold_the_same() -> None:
    run = Judged(capacities={"gpu": 2})
    run.submit(Task("a", writes="x", uses="gpu=2"))
    run.handle(s.Occupy("old", (write("x"), uses("gpu", exclusive=True))))
    run.submit(Task("b", writes="x"), Task("c", uses="gpu"))
    assert started(run.ends("a")) == []
    assert started(run.handle(s.Vacate("old"))) == ["b", "c"]


def test_an_extension_waits_for_it_and_is_not_denied() -> None:
    run = Judged()
    run.submit(Task("a"))
    run.handle(s.Occupy("old", (read("x"),)))
    assert run.extend("a", write("x")) == []
    assert [each.task_id for each in run.handle(s.Vacate("old"))] == ["a"]  # type: ignore[union-attr]


def test_amounts_of_what_has_no_capacity_here_are_not_held_nor_are_rates() -> None:
    run = Judged(capacities={"gpu": 3}, rates={"api": Rate("1/min")})
    run.handle(s.Occupy("old", (uses("tpu", 4), uses("gpu", 2), uses("api"))))
    told = run.submit(Task("a", uses=["tpu!", "api"]), Task("b", uses="gpu"))
    assert sorted(started(told)) == ["a", "b"]
    assert started(run.submit(Task("c", uses="gpu"))) == []


def test_more_than_the_capacity_may_be_held_from_outside() -> None:
    run = Judged(capacities={"gpu": 1})
    run.handle(s.Occupy("old", (uses("gpu", 4),)))
    assert started(run.submit(Task("a", uses="gpu"))) == []
    assert started(run.handle(s.Vacate("old"))) == ["a"]


def test_why_names_it_as_a_holder_that_does_not_stop() -> None:
    run = Judged(capacities={"gpu": 1})
    run.handle(s.Occupy("old", (write("x"), uses("gpu"))), at=3.0)
    run.submit(Task("a", reads="x", uses="gpu"))
    held, lacks = run.why("a").reasons
    assert held == why.HeldClaim(read("x"), "old", write("x"), 3.0, True, "x")
    assert isinstance(lacks, why.NoCapacity)
    assert lacks.holders == (("old", 1, 3.0),)
    assert "end what still runs of 'old'" in run.why("a").suggestions[0]


def test_one_who_is_blocked_from_outside_neither_counts_as_overtaken_nor_holds_others_back() -> (
    None
):
    run = Judged(slots=1)
    run.handle(s.Occupy("old", (write("x"),)))
    run.submit(Task("blocked", writes=["x", "y"]))
    for number in range(5):
        assert started(run.submit(Task(f"past{number}", writes="y"))) == [f"past{number}"]
        run.ends(f"past{number}")
    assert list(run.kernel.reservations()) == []
    assert started(run.handle(s.Vacate("old"))) == ["blocked"]


def test_its_name_is_one_among_the_ids_of_tasks() -> None:
    run = Judged()
    run.submit(Task("a"))
    run.ends("a")
    run.handle(s.Occupy("old", ()))
    run.refuses(s.Occupy("a", ()), DuplicateId, "'a'")
    run.refuses(s.Occupy("old", ()), DuplicateId, "'old'")
    run.refuses(s.Submit((Task("old"),)), DuplicateId, "'old'")
    run.refuses(s.Submit((Task("b", after="old"),)), UnknownDependency, "'old'")
    run.refuses(s.Cancel("old"), UnknownTask, "'old'")
    run.handle(s.Vacate("old"))
    run.refuses(s.Vacate("old"), UnknownTask, "'old'")
    assert started(run.submit(Task("old"))) == ["old"]


@pytest.mark.parametrize("stimulus", [s.Drain(), s.Shutdown(), s.CancelGroup("")])
def test_nothing_that_ends_the_run_ends_it(stimulus: s.Stimulus) -> None:
    run = Judged()
    run.handle(s.Occupy("old", (write("x"),)))
    run.submit(Task("a", writes="x"))
    run.handle(stimulus)
    assert run.progress().zombies == 1
    assert run.state("a") in (State.WAITING, State.CANCELLED)
