"""What cannot be is refused at once, by its own error that says what to do, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from interlock import errors
from interlock.kernel import stimuli as s
from interlock.kernel.kernel import Kernel
from interlock.model.claim import Claim, Mode, uses, write
from interlock.model.limits import Quota, Rate, Retry
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, started


def busy_run() -> Judged:
    """A run in which tasks run, wait and are blocked."""
    run = Judged(slots=2, capacities={"gpu": 2}, rates={"api": Rate("5/min")}, protected=["keys/"])
    run.submit(Task("a", writes="src/", uses="gpu"), Task("b", writes="src/x"), group="g")
    run.submit(Task("c", after="a", uses="api"), Task("d", uses="gpu=2"))
    return run


GOOD = Task("good", writes="docs/new.md", uses=["gpu", "api"], after="a")

SUBMISSIONS: list[tuple[tuple[Task, ...], type[errors.UsageError], str]] = [
    (
        (Task("x", after="nobody"),),
        errors.UnknownDependency,
        "'x' comes after 'nobody', but there is no such task",
    ),
    ((Task("build"), Task("x", after="biuld")), errors.UnknownDependency, "did you mean 'build'"),
    ((Task("x", after="x"),), errors.DependencyCycle, "remove it from its own `after`"),
    (
        (Task("x", after="y"), Task("y", after="z"), Task("z", after=["a", "x"])),
        errors.DependencyCycle,
        "x -> y -> z -> x .*remove one",
    ),
    ((Task("a"),), errors.DuplicateId, "already a task with the id 'a'; ids are unique"),
    ((Task("x"), Task("x")), errors.DuplicateId, "'x'"),
    ((Task("x", writes="../x"),), errors.ClaimOutsideWorkspace, r"\.\./x"),
    ((Task("x", reads="src/../../x"),), errors.ClaimOutsideWorkspace, "workspace"),
    ((Task("x", reads="/etc/passwd"),), errors.ClaimOutsideWorkspace, "workspace"),
    ((Task("x", writes="keys/a"),), errors.ProtectedPath, "claim less, or only read it"),
    ((Task("x", writes="**"),), errors.ProtectedPath, "takes in 'keys"),
    ((Task("x", writes=""),), errors.InvalidPattern, "position 0"),
    ((Task("x", writes="src/[a"),), errors.InvalidPattern, "position 4"),
    ((Task("x", reads="src/{a,b"),), errors.InvalidPattern, "position 4"),
    (
        (Task("x", uses="gpu=3"),),
        errors.ImpossibleClaim,
        "capacity of 2: it could never get that much",
    ),
    ((Task("x", uses=["gpu=2", "gpu"]),), errors.ImpossibleClaim, "claims 3 of 'gpu'"),
    ((Task("x", uses=["gpu"] * 3),), errors.ImpossibleClaim, "claims 3 of 'gpu'"),
    ((Task("x", uses="api=6"),), errors.ImpossibleClaim, "quota of 5"),
    ((Task("x", uses="tpu=2"),), errors.UnknownResource, "give it one of at least 2"),
    ((Task("x", uses="api!"),), errors.InvalidOption, "a rate is taken in amounts"),
]


@pytest.mark.parametrize(("tasks", "error", "says"), SUBMISSIONS)
def test_a_submission_that_cannot_be_changes_nothing(
    tasks: tuple[Task, ...], error: type[errors.UsageError], says: str
) -> None:
    run, twin = busy_run(), busy_run()
    # With a good task before it: all or none of a submission is taken.
    run.refuses(s.Submit((GOOD, *tasks), group="g", fail_fast=True, deadline=5.0), error, says)
    with pytest.raises(errors.UnknownTask):
        run.state("good")
    for stimulus in (s.Submit((GOOD,)), s.Ended("a", 1), s.Ended("b", 2), s.Tick()):
        at = run.now + 1
        assert run.handle(stimulus, at) == twin.handle(stimulus, at)
    assert run.picture() == twin.picture()


def test_a_cycle_is_named_and_an_innocent_task_is_not() -> None:
    run = Judged()
    tasks = (Task("in", after="b"), Task("a", after="b"), Task("b", after="a"))
    error = run.refuses(s.Submit(tasks), errors.DependencyCycle, "wait for each other")
    assert isinstance(error, errors.DependencyCycle)
    assert error.cycle in (("a", "b", "a"), ("b", "a", "b"))


def test_a_malformed_pattern_is_refused_with_its_position() -> None:
    run = Judged()
    error = run.refuses(
        s.Submit((Task("x", writes="docs/[z-a]"),)), errors.InvalidPattern, "position"
    )
    assert isinstance(error, errors.InvalidPattern)
    assert error.pattern == "docs/[z-a]"
    assert error.position in range(5, 10)


MAKING: list[tuple[Callable[[Any], object], Any, type[errors.UsageError], str]] = [
    (Task, "", errors.BlankId, "not blank"),
    (Task, " \t", errors.BlankId, "not blank"),
    (Task, None, errors.BlankId, "not None"),
    (lambda value: Task("a", timeout=value), -1, errors.InvalidOption, "'a': timeout is -1"),
    (lambda value: Task("a", deadline=value), "-5s", errors.InvalidOption, "deadline"),
    (lambda value: Task("a", estimate=value), math.nan, errors.InvalidOption, "zero or more"),
    (lambda value: Task("a", timeout=value), math.inf, errors.InvalidOption, "finite"),
    (lambda value: Task("a", priority=value), "high", errors.InvalidOption, "whole number"),
    (lambda value: Task("a", claims=value), ["src/"], errors.InvalidOption, "make one with"),
    (lambda value: Task("a", retry=value), 3, errors.InvalidOption, r"Retry\(attempts=3\)"),
    (Retry, 0, errors.InvalidOption, "1 or more"),
    (lambda value: Retry(backoff=value), -1, errors.InvalidOption, "backoff is -1"),
    (lambda value: Retry(jitter=value), 2, errors.InvalidOption, "between 0 and 1"),
    (lambda value: uses("gpu", value), 0, errors.InvalidOption, "above 0"),
    (lambda value: Rate(requests=value), "fast", errors.InvalidOption, "60/min"),
    (lambda value: Quota(value, 1.0), 0, errors.InvalidOption, "1 or more"),
    (lambda value: Kernel(slots=value), 0, errors.InvalidOption, "1 or more"),
    (lambda value: Kernel(slots=value), True, errors.InvalidOption, "whole number"),
    (lambda value: Kernel(slots=1, capacities={"gpu": value}), -1, errors.InvalidOption, "gpu"),
    (lambda value: Kernel(slots=1, capacities={value: 2}), "slots", errors.InvalidOption, "slots"),
    (
        lambda value: Kernel(slots=1, capacities={"x": 1}, rates={"x": value}),
        Rate("1/s"),
        errors.InvalidOption,
        "keep one",
    ),
    (lambda value: Kernel(slots=1, protected=value), ["[a"], errors.InvalidPattern, "position 0"),
]


@pytest.mark.parametrize(("make", "value", "error", "says"), MAKING)
def test_an_option_that_cannot_be_is_refused_where_it_is_written(
    make: Callable[[Any], object], value: Any, error: type[errors.UsageError], says: str
) -> None:
    with pytest.raises(error, match=says):
        make(value)


STIMULI: list[tuple[s.Stimulus, type[errors.UsageError], str]] = [
    (s.Submit((Task("x"),), fail_fast=True), errors.InvalidOption, "need a group"),
    (s.Submit((Task("x"),), deadline=1.0), errors.InvalidOption, "need a group"),
    (s.Submit((Task("x"),), group="g", deadline=-1.0), errors.InvalidOption, "0 or more"),
    (s.Submit((Task("x"),), group="  "), errors.BlankId, "not blank"),
    (s.Cancel("nobody"), errors.UnknownTask, "'nobody'"),
    (s.Pause("nobody"), errors.UnknownTask, "'nobody'"),
    (s.Unpause("nobody"), errors.UnknownTask, "'nobody'"),
    (s.Prioritize("nobody", 1), errors.UnknownTask, "'nobody'"),
    (s.Answer("a", 1), errors.UnknownTask, "no open question 1"),
    (s.SetCapacity("gpu", -1), errors.InvalidOption, "0 or more"),
    (s.SetCapacity("api", 3), errors.UnknownResource, "slots, gpu"),
    (s.HoldRate("gpu", 3.0), errors.UnknownResource, "not a rate"),
    (s.AwaitTasks("a", 1, 1, ("b", "x")), errors.UnknownTask, "no task of this run .* 'x'"),
    (s.Occupy("c", ()), errors.DuplicateId, "'c'"),
    (s.Occupy(" ", ()), errors.BlankId, "needs a name"),
    (s.Occupy("old", (write("["),)), errors.InvalidPattern, "'old'.*position 0"),
    (s.Occupy("old", (write("../x"),)), errors.ClaimOutsideWorkspace, "'old'"),
    (s.Vacate("a"), errors.UnknownTask, "occupies claims as 'a'"),
    (s.Extend("a", 1, 1, (write("../x"),)), errors.ClaimOutsideWorkspace, "workspace"),
    (s.Extend("a", 1, 1, (write("keys/"),)), errors.ProtectedPath, "protected"),
    (s.Extend("a", 1, 1, (write("["),)), errors.InvalidPattern, "position 0"),
    (s.Extend("a", 1, 1, (uses("gpu", 3),)), errors.ImpossibleClaim, "capacity of 2"),
    (
        s.Reports((s.Ended("a", 1), s.Ended("a", 1, State.RUNNING))),
        errors.InvalidOption,
        "not as .*running",
    ),
    (s.Take("a", 1, 1, (Claim("gpu", Mode.USE),)), errors.UnknownResource, "not a rate"),
]


@pytest.mark.parametrize(("stimulus", "error", "says"), STIMULI)
def test_a_stimulus_that_cannot_be_changes_nothing(
    stimulus: s.Stimulus, error: type[errors.UsageError], says: str
) -> None:
    run, twin = busy_run(), busy_run()
    run.refuses(stimulus, error, says)
    for following in (s.Submit((GOOD,)), s.Ended("a", 1), s.Ended("b", 2), s.Tick()):
        assert run.handle(following) == twin.handle(following)
    assert run.picture() == twin.picture()


def test_every_error_of_a_bad_submission_is_of_its_own_class() -> None:
    classes = {error for _, error, _ in SUBMISSIONS} | {errors.BlankId}
    assert all(issubclass(each, errors.UsageError) for each in classes)
    assert len(classes) == 10


def test_validation_comes_before_anything_starts() -> None:  # pitfall 44
    run = Judged()
    run.refuses(
        s.Submit((Task("fine"), Task("late", writes="x["))), errors.InvalidPattern, "position 1"
    )
    assert run.progress().total == 0
    assert started(run.submit(Task("fine"))) == ["fine"]


def test_a_time_that_is_no_number_is_refused() -> None:
    with pytest.raises(errors.ClockWentBack, match="nan"):
        Kernel(slots=1).handle(s.Submit((Task("a", timeout=1),)), math.nan)


def test_a_refused_stimulus_does_not_move_the_clock() -> None:
    run = Judged()
    run.submit(Task("a"), at=5.0)
    with pytest.raises(errors.UnknownTask):
        run.kernel.handle(s.Cancel("nobody"), 100.0)
    run.handle(s.Tick(), 6.0)


def test_time_never_goes_back() -> None:
    run = Judged()
    run.submit(Task("a"), at=5.0)
    with pytest.raises(errors.ClockWentBack, match=r"4\.0 .* after 5\.0"):
        run.kernel.handle(s.Tick(), 4.0)
