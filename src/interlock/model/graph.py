"""Dependencies between tasks as a graph: cycles, order, critical path, dependents.

A graph maps each task to the tasks it comes `after`. Ids that are named there without being tasks
of the graph (finished long ago, say) are ignored. Nothing here recurses, so chains may have any
length, and every result depends only on the order of the input.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from interlock.errors import DependencyCycle

After: TypeAlias = Mapping[str, Sequence[str]]


def find_cycle(after: After) -> tuple[str, ...] | None:
    """Return tasks that wait for each other, each for the next, the first one repeated at the end.

    None if there is no cycle.
    """
    for task, dependencies in after.items():
        if task in dependencies:
            return task, task
    stuck = set(after).difference(_settled(after))
    if not stuck:
        return None
    # Every stuck task waits for a stuck one, so this walk returns to a task it has visited, which
    # is on a cycle. The shortest cycle through it is the easiest one to understand.
    seen: set[str] = set()
    task = next(each for each in after if each in stuck)
    while task not in seen:
        seen.add(task)
        task = next(each for each in after[task] if each in stuck)
    return _shortest_way_round(after, task, stuck)


def topological(after: After) -> list[str]:
    """Return the tasks with each after its dependencies, otherwise in the order of the input."""
    order = _settled(after)
    if len(order) < len(after):
        raise DependencyCycle(find_cycle(after) or ())
    return order


def dependents(after: After) -> dict[str, list[str]]:
    """Return, for each task, the tasks that come directly after it."""
    found: dict[str, list[str]] = {task: [] for task in after}
    for task, dependencies in after.items():
        for dependency in dict.fromkeys(dependencies):
            if dependency in found:
                found[dependency].append(task)
    return found


def dependents_of(after: After, roots: Iterable[str]) -> list[str]:
    """Return all tasks that come after the roots, directly or not; nearest first, without roots."""
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
    """Return, for each task, how long it takes from its start to the end of all that comes after.

    The weight of a task is its duration; a task without one adds nothing.
    """
    following = dependents(after)
    found: dict[str, float] = {}
    for task in reversed(topological(after)):
        longest = max((found[each] for each in following[task]), default=0.0)
        found[task] = weight.get(task, 0.0) + longest
    return found


def critical_path(after: After, weight: Mapping[str, float]) -> list[str]:
    """Return the chain of tasks that takes longest: no number of slots makes the run shorter."""
    remaining = tails(after, weight)
    following = dependents(after)
    path: list[str] = []
    # A tail is never longer than that of a task before it, so the longest chain begins at a task
    # without dependencies; from there on it follows the dependent with the longest tail.
    choice = [task for task, before in after.items() if not any(each in after for each in before)]
    while choice:
        longest = max(choice, key=remaining.__getitem__)
        path.append(longest)
        choice = following[longest]
    return path


def _settled(after: After) -> list[str]:
    """Return the tasks that are not held up by a cycle, in topological order."""
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
