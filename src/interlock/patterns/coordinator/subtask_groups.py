"""Which subtasks run together, and in which order the groups come; refused where that cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from interlock.errors import (
    DependencyCycle,
    DuplicateId,
    InvalidOption,
    OrchestratorException,
    UnknownDependency,
)
from interlock.model.graph import find_cycle, topological
from interlock.patterns.coordinator.config import Strategy
from interlock.patterns.coordinator.subtask import SubTask, id_of, in_order

RULE_SINGLE_AGENT_TESTING = "RULE_SINGLE_AGENT_TESTING"
"""A testing subtask never runs beside another subtask."""

_TEST = re.compile(r"\b(?:tests?|testing|pytest|unittest)\b|(?<!\w)test_", re.IGNORECASE)


@dataclass(frozen=True)
class SubtaskGroup:
    """Subtasks that run together, by id; `number` is None for those that have no group."""

    number: int | None
    subtasks: tuple[SubTask, ...]


def is_test(subtask: SubTask) -> bool:
    """Whether a subtask tests: it says so, or its words do; "latest" is no test."""
    if subtask.is_test is not None:
        return subtask.is_test
    return bool(_TEST.search(subtask.title) or _TEST.search(subtask.description))


def planned(subtasks: Iterable[SubTask], parent: Any, strategy: Strategy) -> list[SubtaskGroup]:
    """The groups in their order; whatever is wrong with any of them raises here."""
    by_id = _checked(subtasks, parent)
    listed = sorted(by_id.values(), key=lambda each: in_order(each.subtask_id))
    if not listed:
        return []
    if strategy == "file_based":
        return [SubtaskGroup(None, tuple(listed))]
    numbers = sorted({each.parallel_group for each in listed if each.parallel_group is not None})
    groups = [
        SubtaskGroup(number, tuple(each for each in listed if each.parallel_group == number))
        for number in numbers
    ]
    # Those without a group come after all groups, one at a time: by id, and what depends on
    # another of them after it.
    alone = {str(each.subtask_id): each for each in listed if each.parallel_group is None}
    order = topological({name: _after(each) for name, each in alone.items()})
    groups += [SubtaskGroup(None, (alone[name],)) for name in order]
    _check_order(groups)
    _check_tests(groups)
    return groups


def _checked(subtasks: Iterable[SubTask], parent: Any) -> dict[str, SubTask]:
    if isinstance(subtasks, SubTask | str) or not isinstance(subtasks, Iterable):
        raise InvalidOption(f"subtasks is {subtasks!r}; give a list of SubTask")
    by_id: dict[str, SubTask] = {}
    whose = id_of(parent)
    for each in subtasks:
        if not isinstance(each, SubTask):
            raise InvalidOption(f"{each!r} is no SubTask")
        # 1 and "1" are one id: people and logs could not tell them apart.
        earlier = by_id.setdefault(str(each.subtask_id), each)
        if earlier is not each:
            raise DuplicateId(f"two subtasks have the id {each.subtask_id!r}: {earlier} and {each}")
        if whose is not None and str(each.parent_task_id) != str(whose):
            raise OrchestratorException(
                f"{each} belongs to task {each.parent_task_id!r}, not to {whose!r}"
            )
    after = {name: _after(each) for name, each in by_id.items() if each.dependencies != ()}
    for name, before in after.items():
        for other in before:
            if other not in by_id:
                raise UnknownDependency(
                    f"{by_id[name]} depends on {other!r}, and there is no such subtask"
                )
    cycle = find_cycle(after)
    if cycle is not None:
        raise DependencyCycle(cycle)
    return by_id


def _after(subtask: SubTask) -> list[str]:
    return [str(each) for each in subtask.dependencies]


def _check_order(groups: list[SubtaskGroup]) -> None:
    """Nobody can depend on what comes in a later group."""
    place: dict[str, int] = {}
    for index, group in enumerate(groups):
        place.update((str(each.subtask_id), index) for each in group.subtasks)
    by_id = {str(each.subtask_id): each for group in groups for each in group.subtasks}
    for name, subtask in by_id.items():
        if subtask.dependencies == ():
            continue
        for before in _after(subtask):
            if place[before] > place[name]:
                raise OrchestratorException(
                    f"{subtask} in {_said(groups[place[name]])} depends on {by_id[before]}, which "
                    f"comes later, in {_said(groups[place[before]])}; change their parallel_group, "
                    "or use the strategy 'file_based'"
                )


def _check_tests(groups: list[SubtaskGroup]) -> None:
    for group in groups:
        tests = [each for each in group.subtasks if is_test(each)]
        if tests and len(group.subtasks) > 1:
            other = next(each for each in group.subtasks if each is not tests[0])
            raise OrchestratorException(
                f"{RULE_SINGLE_AGENT_TESTING}: {tests[0]} is a test, and cannot run beside {other} "
                f"in {_said(group)}; give it a group of its own, or say is_test=False"
            )


def _said(group: SubtaskGroup) -> str:
    return "no group" if group.number is None else f"group {group.number}"
