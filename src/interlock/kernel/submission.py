"""Checking a submission before anything of it is taken in; and the chains that it makes longer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain, islice
from typing import Protocol

from interlock.errors import DependencyCycle, DuplicateId, InvalidOption, UnknownDependency
from interlock.kernel.records import Entry
from interlock.kernel.table import Table
from interlock.model.graph import find_cycle
from interlock.model.outcome import State
from interlock.model.task import Task

_REACH = 32
"""How many steps a new task lengthens chains back into earlier submissions."""


class Taken(Protocol):
    """What a submission is checked against: ids that are taken, and what can be claimed."""

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Unfinished tasks."""

    @property
    def ends(self) -> Mapping[str, State]:
        """Tasks that have ended."""

    @property
    def external_holds(self) -> Collection[str]:
        """Names of what is held from outside the run."""

    @property
    def max_ended(self) -> int | None:
        """How many ended tasks are remembered; None: all."""

    @property
    def table(self) -> Table:
        """The claim table."""


def check_submission(tasks: Sequence[Task], run: Taken, restored: Collection[str] = ()) -> None:
    """Raise for tasks that cannot be taken in beside those of the run; change nothing.

    Restored tasks may claim more than there is: the capacity may have been lowered since.
    """
    if not isinstance(tasks, (tuple, list)):
        raise InvalidOption(f"tasks come as a tuple of tasks, not as {tasks!r}")
    batch: set[str] = set()
    entries, ends, external_holds, table = run.entries, run.ends, run.external_holds, run.table
    for task in tasks:
        if not isinstance(task, Task):
            raise InvalidOption(f"{task!r} is not a task")
        task_id = task.id
        if task_id in batch or task_id in entries or task_id in ends or task_id in external_holds:
            raise DuplicateId(f"there is already a task with the id {task_id!r}; ids are unique")
        if task.deadline is not None and not isinstance(task.deadline, float):
            raise InvalidOption(
                f"task {task_id!r}: the kernel takes a deadline in seconds from now"
            )
        batch.add(task_id)
    inside: dict[str, list[str]] = {}
    for task in tasks:
        table.check(task.id, task.claims, as_it_is=task.id not in restored)
        for dependency in task.after:
            if dependency in batch:
                inside.setdefault(task.id, []).append(dependency)
            elif dependency not in entries and dependency not in ends:
                raise UnknownDependency(
                    f"task {task.id!r} comes after {dependency!r}, but there is no such task"
                    + ("" if run.max_ended is None else ", or it ended long ago and was forgotten")
                    + _suggestion(dependency, chain(batch, entries, ends))
                )
    if inside:
        cycle = find_cycle({task.id: inside.get(task.id, ()) for task in tasks})
        if cycle is not None:
            raise DependencyCycle(cycle)


def _suggestion(name: str, ids: Iterable[str]) -> str:
    close = get_close_matches(name, sorted(islice(ids, 10_000)), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def raise_tails(batch: Mapping[str, Entry], entries: Mapping[str, Entry]) -> None:
    """Lengthen the critical-path tails of the tasks that new ones come after.

    Exact inside the batch. Into earlier submissions it follows a bounded number of steps;
    otherwise a chain that is submitted task by task would cost the square of its length.
    """
    followers = dict.fromkeys(batch, 0)
    for entry in batch.values():
        for dependency in entry.task.after:
            if dependency in followers:
                followers[dependency] += 1
    # From the ends of the graph backwards: a tail is final when no follower is left.
    final = [batch[task_id] for task_id, count in followers.items() if not count]
    while final:
        entry = final.pop()
        for dependency in entry.task.after:
            if dependency in batch:
                before = batch[dependency]
                before.own.tail = max(before.tail, before.guess + entry.tail)
                followers[dependency] -= 1
                if not followers[dependency]:
                    final.append(before)
            else:
                _raise_earlier(entry, dependency, entries)


def _raise_earlier(entry: Entry, dependency: str, entries: Mapping[str, Entry]) -> None:
    level = [(entry, dependency)]
    for _ in range(_REACH):
        above: list[tuple[Entry, str]] = []
        for after, task_id in level:
            before = entries.get(task_id)
            # Once a task is ready its rank is fixed, and so are those of the tasks before it.
            if before is None or before.state is not State.BLOCKED:
                continue
            tail = before.guess + after.tail
            if tail > before.tail:
                before.own.tail = tail
                above.extend((before, each) for each in before.task.after)
        if not above:
            return
        level = above
