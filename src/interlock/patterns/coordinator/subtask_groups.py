"""Arrange subtasks in groups, and reject what cannot run in that order."""

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
from interlock.patterns.coordinator.subtask import SubTask, id_of, sort_key

RULE_SINGLE_AGENT_TESTING = "RULE_SINGLE_AGENT_TESTING"
"""A testing subtask never runs beside another subtask."""

_LETTER = r"[^\W\d_]"
# A word ends where its letters end: at a space, a digit or an underscore, as in `unit_test`. Inside
# a CamelCase name it begins with a capital and ends before the next one, as in `UserTest.java`.
_TEST = re.compile(
    rf"(?:(?<!{_LETTER})(?i:(?:py|unit)?tests?|testing)|(?<=[a-z0-9])(?:Tests?|Testing))"
    rf"(?:(?!{_LETTER})|(?<=[a-z])(?=[A-Z]))"
)


@dataclass(frozen=True)
class SubtaskGroup:
    """Subtasks that run together, sorted by id; `number` is None for one without a group."""

    number: int | None
    subtasks: tuple[SubTask, ...]


def is_test(subtask: SubTask) -> bool:
    """Whether a subtask is a test: by `is_test`, else by the whole words of its texts."""
    if subtask.is_test is not None:
        return subtask.is_test
    return bool(_TEST.search(subtask.title) or _TEST.search(subtask.description))


def group_subtasks(
    subtasks: Iterable[SubTask], parent: Any, strategy: Strategy
) -> list[SubtaskGroup]:
    """Return the groups in order; raises for whatever is invalid in any of them."""
    by_id = _validate(subtasks, parent)
    listed = sorted(by_id.values(), key=lambda each: sort_key(each.subtask_id))
    if not listed:
        return []
    if strategy == "file_based":
        return [SubtaskGroup(None, tuple(listed))]
    numbers = sorted({each.parallel_group for each in listed if each.parallel_group is not None})
    groups = [
        SubtaskGroup(number, tuple(each for each in listed if each.parallel_group == number))
        for number in numbers
    ]
    # Those without a group come after all groups, one at a time: by id, but each after the
    # subtasks that it depends on.
    alone = {str(each.subtask_id): each for each in listed if each.parallel_group is None}
    order = topological({name: _after(each) for name, each in alone.items()})
    groups += [SubtaskGroup(None, (alone[name],)) for name in order]
    _check_order(groups)
    _check_tests(groups)
    return groups


def _validate(subtasks: Iterable[SubTask], parent: Any) -> dict[str, SubTask]:
    if isinstance(subtasks, SubTask | str) or not isinstance(subtasks, Iterable):
        raise InvalidOption(f"subtasks is {subtasks!r}; it must be a list of SubTask")
    by_id: dict[str, SubTask] = {}
    parent_id = id_of(parent)
    for each in subtasks:
        if not isinstance(each, SubTask):
            raise InvalidOption(f"{each!r} is not a SubTask")
        # 1 and "1" are one id: they look the same in logs.
        earlier = by_id.setdefault(str(each.subtask_id), each)
        if earlier is not each:
            raise DuplicateId(f"two subtasks have the id {each.subtask_id!r}: {earlier} and {each}")
        if parent_id is not None and str(each.parent_task_id) != str(parent_id):
            raise OrchestratorException(
                f"{each} belongs to task {each.parent_task_id!r}, not to {parent_id!r}"
            )
    after = {name: _after(each) for name, each in by_id.items() if each.dependencies != ()}
    for name, before in after.items():
        for other in before:
            if other not in by_id:
                raise UnknownDependency(
                    f"{by_id[name]} depends on {other!r}, but there is no such subtask"
                )
    cycle = find_cycle(after)
    if cycle is not None:
        raise DependencyCycle(cycle)
    return by_id


def _after(subtask: SubTask) -> list[str]:
    return [str(each) for each in subtask.dependencies]


def _check_order(groups: list[SubtaskGroup]) -> None:
    """Reject a dependency on a subtask of a later group."""
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
                    f"{subtask} in {_describe(groups[place[name]])} depends on {by_id[before]}, "
                    f"which runs later, in {_describe(groups[place[before]])}; change their "
                    "parallel_group, or use the strategy 'file_based'"
                )


def _check_tests(groups: list[SubtaskGroup]) -> None:
    for group in groups:
        tests = [each for each in group.subtasks if is_test(each)]
        if tests and len(group.subtasks) > 1:
            other = next(each for each in group.subtasks if each is not tests[0])
            raise OrchestratorException(
                f"{RULE_SINGLE_AGENT_TESTING}: {tests[0]} is a test and cannot run beside {other} "
                f"in {_describe(group)}; give it a group of its own, or set is_test=False"
            )


def _describe(group: SubtaskGroup) -> str:
    return "no group" if group.number is None else f"group {group.number}"
