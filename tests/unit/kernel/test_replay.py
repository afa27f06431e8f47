"""The kernel is a function: the same stimuli at the same times give the same instructions."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Instruction
from interlock.model.claim import uses, write
from interlock.model.limits import Rate, Retry
from interlock.model.task import Task
from tests.unit.kernel.judged import FATAL, Judged

STORY: tuple[tuple[float, s.Stimulus], ...] = (
    (0, s.Submit((Task("p", writes="src/", retry=Retry(2, 4)), Task("q", uses="gpu", timeout=30)))),
    (0, s.Submit((Task("r", reads="src/x", after="q"), Task("t", uses="api")), group="g")),
    (1, s.Submit((Task("c1", writes="src/a"), Task("c2", after="c1")), parent="p", token=1)),
    (1, s.AwaitTasks("p", 1, 1, ("c1", "c2"))),
    (2, s.Take("t", 3, 1, (uses("api"),))),
    (3, s.Ended("c1", 4)),
    (3, s.Extend("q", 2, 1, (write("docs/**"),))),
    (4, s.Submit((Task("u", writes="{src,docs}/*.md", uses="gpu!", priority=3),))),
    (5, s.Ask("q", 2, 2, "Go on?")),
    (6, s.Prioritize("r", 5)),
    (7, s.Reports((s.Ended("c2", 5), s.Gone("t", 3)))),
    (8, s.Answer("q", 2)),
    (30, s.Tick()),
    (31, s.SetCapacity("gpu", 3)),
    (32, s.Gone("q", 2)),
    (60, s.Tick()),
    (61, s.Pause()),
    (62, s.Cancel("p", "enough")),
    (63, s.Unpause()),
    (64, s.Gone("p", 1)),
    (65, s.Shutdown()),
)


def fold() -> list[list[Instruction]]:
    run = Judged(slots=3, capacities={"gpu": 2}, rates={"api": Rate("1/min")})
    return [run.handle(stimulus, float(at)) for at, stimulus in STORY]


def test_the_same_stimuli_give_the_same_instructions() -> None:
    assert fold() == fold()


def test_the_order_of_instructions_does_not_hang_on_the_hash_seed() -> None:
    code = "from tests.unit.kernel.test_replay import fold; print(fold())"
    outputs = set()
    for seed in ("0", "1", "42"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert "Start(" in outputs.pop()


def test_what_was_returned_is_not_touched_by_later_steps() -> None:
    run = Judged(slots=1)
    first = run.submit(Task("a"), Task("b"))
    copied = list(first)
    run.ends("a")
    assert first == copied


def test_asking_changes_nothing() -> None:
    asked, quiet = (Judged(slots=1, rates={"api": Rate("1/min")}) for _ in range(2))
    tasks = [Task("a", uses="api"), Task("b", uses="api", retry=Retry(3)), Task("c", after="b")]
    stimuli: list[tuple[float, s.Stimulus]] = [
        (0.0, s.Submit(tuple(tasks))),
        (1.0, s.Ended("a", 1)),
        (60.0, s.Tick()),
        (61.0, s.Ended("b", 2, error=FATAL)),
    ]
    for at, stimulus in stimuli:
        for _ in range(2):
            asked.picture()
        assert asked.handle(stimulus, at) == quiet.handle(stimulus, at)


def test_two_kernels_share_nothing() -> None:  # pitfall 3
    one, other = Judged(), Judged()
    one.submit(Task("a", writes="x"))
    with pytest.raises(Exception, match="no task of this run"):
        other.state("a")
    assert other.submit(Task("a", writes="x")) == Judged().submit(Task("a", writes="x"))
