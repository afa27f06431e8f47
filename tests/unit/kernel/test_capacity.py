"""Counted resources: filled up, raised and lowered while the run goes on."""

from __future__ import annotations

import pytest

from interlock.errors import InvalidOption, UnknownResource
from interlock.kernel import stimuli as s
from interlock.model.claim import uses
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, started


def test_counted_amounts_are_filled_up() -> None:
    run = Judged(capacities={"memory": 10})
    sizes = {"a": 6, "b": 6, "c": 3, "d": 2, "e": 1}
    run.submit(*(Task(name, uses=uses("memory", size)) for name, size in sizes.items()))
    assert sorted(run.running()) == ["a", "c", "e"]
    assert started(run.ends("a")) == ["b"]
    assert started(run.ends("c")) == ["d"]


def test_whoever_uses_a_counted_resource_alone_gets_all_of_it() -> None:
    run = Judged(capacities={"gpu": 2})
    run.submit(Task("one", uses="gpu"))
    run.submit(Task("all", uses="gpu!"))
    assert run.state("all") is State.WAITING
    assert started(run.ends("one")) == ["all"]
    assert started(run.submit(Task("late", uses="gpu"))) == []
    assert started(run.ends("all")) == ["late"]


def test_a_raised_capacity_starts_what_now_fits() -> None:
    run = Judged(slots=1, capacities={"gpu": 1})
    run.submit(*(Task(name, uses="gpu") for name in "abc"))
    assert started(run.handle(s.SetCapacity("gpu", 2))) == []
    assert started(run.handle(s.SetCapacity("slots", 3))) == ["b"]
    assert started(run.handle(s.SetCapacity("gpu", 3))) == ["c"]


def test_a_lowered_capacity_takes_nothing_away_and_starts_nothing_until_it_fits() -> None:
    run = Judged(capacities={"gpu": 3})
    run.submit(*(Task(name, uses="gpu") for name in "abcd"))
    assert run.handle(s.SetCapacity("gpu", 1)) == []
    assert started(run.ends("a")) + started(run.ends("b")) == []
    assert started(run.ends("c")) == ["d"]


@pytest.mark.parametrize("resource", ["slots", "gpu"])
def test_a_capacity_of_nothing_starts_nothing_until_it_is_raised_again(resource: str) -> None:
    run = Judged(slots=2, capacities={"gpu": 2})
    run.handle(s.SetCapacity("slots", 0))
    run.submit(Task("a", uses="gpu"), Task("b", uses="gpu"))
    assert run.progress().waiting == 2
    run.handle(s.SetCapacity("gpu", 0))
    other = "gpu" if resource == "slots" else "slots"
    assert started(run.handle(s.SetCapacity(other, 2))) == []
    assert started(run.handle(s.SetCapacity(resource, 1))) == ["a"]
    assert started(run.handle(s.SetCapacity(resource, 2))) == ["b"]


def test_nobody_gets_all_of_nothing() -> None:
    run = Judged(capacities={"gpu": 1})
    run.submit(Task("h", uses="gpu"), Task("a", uses="gpu!"))
    run.handle(s.SetCapacity("gpu", 0))
    assert started(run.ends("h")) == []
    assert started(run.handle(s.SetCapacity("gpu", 1))) == ["a"]


def test_slots_are_not_claimed_for_every_attempt_has_one() -> None:
    run = Judged(slots=2)
    run.refuses(s.Submit((Task("x", uses="slots=2"),)), InvalidOption, "takes one slot anyway")
    run.submit(Task("a"))
    more = s.Extend("a", run.tokens["a"], 1, (uses("slots"),))
    run.refuses(more, InvalidOption, "takes one slot anyway")


def test_only_what_has_a_capacity_can_be_given_another() -> None:
    run = Judged(capacities={"gpu": 1})
    run.refuses(s.SetCapacity("tpu", 1), UnknownResource, "slots, gpu")
    run.refuses(s.SetCapacity("gpu", -1), InvalidOption, "0 or more")
