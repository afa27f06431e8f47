"""The shortest story that still shows a violation.

Delta debugging on the script: drop operations in ever smaller runs, then single tasks out of
submissions, then single steps out of what agents do, as long as some rule is still broken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from interlock.kernel.kernel import Kernel
from tests.simulation.kernel.story import Behaviour, Operation, Plan, Script
from tests.simulation.kernel.world import Result, World

Item = TypeVar("Item")
MOST_RUNS = 600
"""Worlds tried in one search; a story that is nearly the shortest is good enough."""


def shrink(script: Script, make_kernel: Callable[..., Kernel] = Kernel) -> Result:
    """The result of the shortest script found that breaks the same rule as this one."""
    return _Search(script, make_kernel).run()


class _Search:
    def __init__(self, script: Script, make_kernel: Callable[..., Kernel]) -> None:
        self.make_kernel = make_kernel
        self.best = World(script, make_kernel).run()
        self.runs = 0

    def run(self) -> Result:
        progress = self.best.violation is not None
        while progress and self.runs < MOST_RUNS:
            progress = False
            for candidate in self._smaller(self.best.script):
                if self._try(candidate):
                    progress = True
                    break
        return self.best

    def _try(self, script: Script) -> bool:
        self.runs += 1
        if self.runs > MOST_RUNS:
            return False
        result = World(script, self.make_kernel).run()
        same = _moral(result) == _moral(self.best)
        better = same and _size(result) < _size(self.best)
        if better:
            self.best = result
        return better

    def _smaller(self, script: Script) -> Iterator[Script]:
        for operations in _without_runs(script.operations):
            yield script._replace(operations=operations)
        for number, operation in enumerate(script.operations):
            for less in _simpler_operation(operation):
                kept = (*script.operations[:number], less, *script.operations[number + 1 :])
                yield script._replace(operations=kept)
        if script.lateness or script.batched or script.fold_case:
            yield script._replace(lateness=0.0, batched=False)
            yield script._replace(fold_case=False)


def _moral(result: Result) -> str:
    """What a violation is about, without the names and numbers of this very story."""
    plain = re.sub(r"\bt\d[^ ,:)]*|[\d.]+", "", str(result.violation or ""))
    return " ".join(plain.split()[:6])


def _size(result: Result) -> tuple[int, int]:
    """Shorter traces first; among equals, those with less in their script."""
    return len(result.trace), len(repr(result.script))


def _without_runs(items: tuple[Item, ...]) -> Iterator[tuple[Item, ...]]:
    """The items without a run of them, long runs first, the late ones first."""
    length = len(items)
    while length >= 1:
        for start in range(len(items) - length, -1, -length):
            yield items[:start] + items[start + length :]
        length //= 2


def _simpler_operation(operation: Operation) -> Iterator[Operation]:
    if len(operation.plans) > 1:
        for plans in _without_runs(operation.plans):
            if plans:
                yield operation._replace(plans=plans)
    for number, plan in enumerate(operation.plans):
        for less in _simpler_plan(plan):
            kept = (*operation.plans[:number], less, *operation.plans[number + 1 :])
            yield operation._replace(plans=kept)


def _simpler_plan(plan: Plan) -> Iterator[Plan]:
    for claims in _without_runs(plan.task.claims):
        yield plan._replace(task=plan.task.replace(claims=claims))
    for after in _without_runs(plan.task.after):
        yield plan._replace(task=plan.task.replace(after=after))
    for number, behaviour in enumerate(plan.attempts):
        for less in _simpler_behaviour(behaviour):
            kept = (*plan.attempts[:number], less, *plan.attempts[number + 1 :])
            yield plan._replace(attempts=kept)


def _simpler_behaviour(behaviour: Behaviour) -> Iterator[Behaviour]:
    for steps in _without_runs(behaviour.steps):
        yield behaviour._replace(steps=steps)
    for number, step in enumerate(behaviour.steps):
        for plain_step in (step._replace(beside=False), step._replace(gives_up=None)):
            if plain_step != step:
                waits = list(behaviour.steps)
                waits[number] = plain_step
                yield behaviour._replace(steps=tuple(waits))
        if len(step.children) > 1:
            for children in _without_runs(step.children):
                fewer = list(behaviour.steps)
                fewer[number] = step._replace(children=children)
                yield behaviour._replace(steps=tuple(fewer))
    for plain in (behaviour._replace(lag=0.0), behaviour._replace(echo=False)):
        if plain != behaviour:
            yield plain
