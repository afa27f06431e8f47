"""Dependencies between tasks as a graph: cycles, order, critical path, dependents.

A graph is a mapping from each task to what it comes `after`. Ids that are named there without
being tasks of the graph themselves (finished long ago, say) are passed over. Nothing here
recurses, so chains may be as long as they like, and every result depends on the order of the
input alone.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from interlock.errors import DependencyCycle

After: TypeAlias = Mapping[str, Sequence[str]]


def find_cycle(after: After) -> tuple[str, ...] | None:
    """Tasks that wait for each other, each for the next; the first is repeated at the end."""
    for task, dependencies in after.items():
        if task in dependencies:
            return task, task
    stuck = set(after).difference(_settled(after))
    if not stuck:
        return None
    # Every stuck task waits for a stuck one, so this walk comes round to where it has been. From
    # there the shortest way round is the one that is easiest to understand.
    seen: set[str] = set()
    task = next(each for each in after if each in stuck)
    while task not in seen:
        seen.add(task)
        task = next(each for each in after[task] if each in stuck)
    return _shortest_way_round(after, task, stuck)


def topological(after: After) -> list[str]:
    """Every task after its dependencies, and otherwise in the order of the input."""
    order = _settled(after)
    if len(order) < len(after):
        raise DependencyCycle(find_cycle(after) or ())
    return order


def dependents(after: After) -> dict[str, list[str]]:
    """For each task, those that come directly after it."""
    found: dict[str, list[str]] = {task: [] for task in after}
    for task, dependencies in after.items():
        for dependency in dict.fromkeys(dependencies):
            if dependency in found:
                found[dependency].append(task)
    return found


def dependents_of(after: After, roots: Iterable[str]) -> list[str]:
    """All tasks that come after one of the roots, directly or not; nearest first, no roots."""
    following = dependents(after)
    reached = dict.fromkeys(roots)
    todo = deque(reached)
    found: list[str] = []
    while todo:
        for task in following.get(todo.popleft(), ()):
            if task not in reached:
                reached[task] = None
                found.append(task)
                todo.append(task)
    return found


def tails(after: After, weight: Mapping[str, float]) -> dict[str, float]:
    """How long it takes from the start of each task to the end of all that comes after it.

    The weight of a task is how long it takes; a task without one adds nothing.
    """
    following = dependents(after)
    found: dict[str, float] = {}
    for task in reversed(topological(after)):
        longest = max((found[each] for each in following[task]), default=0.0)
        found[task] = weight.get(task, 0.0) + longest
    return found


def critical_path(after: After, weight: Mapping[str, float]) -> list[str]:
    """The chain of tasks that takes longest: no number of slots makes the whole any shorter."""
    remaining = tails(after, weight)
    following = dependents(after)
    path: list[str] = []
    # A tail is never longer than that of what comes before, so the longest chain begins at a task
    # that waits for nothing, and from there on the longest tail among the dependents is its rest.
    choice = [task for task, before in after.items() if not any(each in after for each in before)]
    while choice:
        longest = max(choice, key=remaining.__getitem__)
        path.append(longest)
        choice = following[longest]
    return path


def _settled(after: After) -> list[str]:
    """The tasks that no cycle holds up, in topological order."""
    ids = list(after)
    position = {task: index for index, task in enumerate(ids)}
    following = dependents(after)
    missing = {
        task: sum(each in position for each in dict.fromkeys(dependencies))
        for task, dependencies in after.items()
    }
    ready = [index for index, task in enumerate(ids) if not missing[task]]
    order: list[str] = []
    while ready:
        task = ids[heapq.heappop(ready)]
        order.append(task)
        for dependent in following[task]:
            missing[dependent] -= 1
            if not missing[dependent]:
                heapq.heappush(ready, position[dependent])
    return order


def _shortest_way_round(after: After, start: str, within: set[str]) -> tuple[str, ...]:
    came_from: dict[str, str] = {}
    todo = deque([start])
    while start not in came_from:
        task = todo.popleft()
        for dependency in after[task]:
            if dependency in within and dependency not in came_from:
                came_from[dependency] = task
                todo.append(dependency)
    way = [start]
    task = came_from[start]
    while task != start:
        way.append(task)
        task = came_from[task]
    return (start, *reversed(way[1:]), start)
