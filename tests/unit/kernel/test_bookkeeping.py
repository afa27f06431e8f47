"""What the kernel keeps only to be quick, or to suggest something, is bounded."""

from __future__ import annotations

import pytest

from interlock.errors import UnknownDependency
from interlock.kernel.kernel import Kernel
from interlock.kernel.lines import WaitingLine
from interlock.kernel.places import File, Folder, PatternPlace
from interlock.kernel.stimuli import Submit
from interlock.kernel.timers import Timers
from interlock.kernel.waiters import Profile, ProxyWaiter, Traits
from interlock.model.patterns.pattern import Alternative, parse
from interlock.model.task import Task


def waiter(number: int) -> ProxyWaiter:
    made = ProxyWaiter(None, (), Profile(Traits()), number)
    made.item = ((0.0, 0.0, 0.0), number, made)
    return made


def leave(line: WaitingLine[ProxyWaiter], waiter: ProxyWaiter) -> None:
    waiter.item = None
    line.leave(waiter)


def test_a_line_forgets_those_that_left_from_its_middle() -> None:
    line: WaitingLine[ProxyWaiter] = WaitingLine()
    line.join(waiter(0))
    for number in range(1, 1_000):
        each = waiter(number)
        line.join(each)
        leave(line, each)
    assert line.live == 1
    assert len(line.items) <= 12


def test_a_line_forgets_those_that_left_from_its_front() -> None:
    line: WaitingLine[ProxyWaiter] = WaitingLine()
    waiters = [waiter(number) for number in range(1_000)]
    for each in waiters:
        line.join(each)
    for each in waiters[:900]:
        leave(line, each)
    assert line.oldest() is waiters[900]
    assert len(line.items) <= 2 * 100 + 64


def test_timers_that_were_dropped_are_swept() -> None:
    timers = Timers()
    timers.set(1.0, print)
    for _ in range(1_000):
        timers.drop(timers.set(2.0, print))
    assert len(timers._heap) <= 2 * 65
    assert timers.next() == 1.0


def test_the_ranks_that_tasks_share_are_bounded() -> None:
    kernel = Kernel(slots=1)
    for start in range(0, 10_500, 500):
        tasks = [Task(f"t{start + n}", estimate=1 + start + n) for n in range(500)]
        kernel.handle(Submit(tuple(tasks)), 0.0)
    assert len(kernel._run._ranks) <= 10_001


def test_the_verdicts_that_a_pattern_remembers_are_bounded() -> None:
    root = Folder("", None)
    root.claim()
    [alternative] = parse("*/x*").alternatives
    pattern = PatternPlace(alternative, root)
    for number in range(10_500):
        folder = Folder(f"f{number}", root)
        assert pattern.meets(File(folder, Alternative((folder.name, f"x{number}"), ())))
    assert len(pattern.verdicts) <= 10_000


def test_a_suggestion_is_looked_for_among_ten_thousand_ids() -> None:
    kernel = Kernel(slots=1)
    kernel.handle(Submit(tuple(Task(f"{n:05}-task") for n in range(9_998))), 0.0)
    kernel.handle(Submit((Task("release"),)), 0.0)
    with pytest.raises(UnknownDependency, match="did you mean 'release'"):
        kernel.handle(Submit((Task("last", after="relaese"),)), 0.0)
    kernel.handle(Submit((Task("deploy-it"),)), 0.0)
    with pytest.raises(UnknownDependency, match=r"no such task$"):
        kernel.handle(Submit((Task("last", after="deploi-it"),)), 0.0)
