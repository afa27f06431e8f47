"""Every error Interlock raises, drawn once.

InterlockError
├── UsageError                 the caller asked for something that cannot be; nothing was changed
│   ├── BlankId
│   ├── DuplicateId
│   ├── UnknownTask
│   ├── UnknownDependency
│   ├── DependencyCycle        a task that waits for itself, directly or round a circle
│   ├── InvalidOption          a negative duration, zero attempts, a capacity below zero, ...
│   ├── InvalidPattern         says at which position
│   ├── ClaimOutsideWorkspace
│   ├── ProtectedPath
│   ├── UnknownResource        an amount of something that has no capacity
│   ├── ImpossibleClaim        more than there will ever be, so the task could never start
│   ├── ChildWouldDeadlock     a child that could only start after its waiting ancestor ended
│   ├── InvalidOwnership
│   └── ShuttingDown           submitted after drain or shutdown was asked for
└── KernelError                a bug in Interlock, or a caller that breaks the kernel's contract
    ├── IllegalTransition      carries the story of the task
    └── ClockWentBack
"""

from __future__ import annotations

from collections.abc import Sequence


class InterlockError(Exception):
    """The root: `except InterlockError` catches whatever Interlock itself raises."""


class UsageError(InterlockError, ValueError):
    """Something was asked for that cannot be done; nothing has been changed."""


class BlankId(UsageError):
    """A task or group id is empty or only white space."""


class DuplicateId(UsageError):
    """Two tasks of one run have the same id."""


class UnknownTask(UsageError):
    """No task of this run has that id."""


class UnknownDependency(UsageError):
    """A task comes after one that does not exist."""


class DependencyCycle(UsageError):
    """Tasks wait for each other round a circle, named in `cycle` (first id repeated at the end)."""

    def __init__(self, cycle: Sequence[str]) -> None:
        self.cycle = tuple(cycle)
        if len(self.cycle) <= 2:
            text = f"task {self.cycle[0]!r} comes after itself; remove it from its own `after`"
        else:
            text = (
                "these tasks wait for each other: "
                + " -> ".join(self.cycle)
                + " (each comes after the next); remove one of these dependencies"
            )
        super().__init__(text)


class InvalidOption(UsageError):
    """An option has a value it cannot have."""


class InvalidPattern(UsageError):
    """A path pattern that cannot be read; `position` counts characters from 0."""

    def __init__(self, pattern: str, position: int, problem: str, task_id: str = "") -> None:
        self.pattern = pattern
        self.position = position
        self.problem = problem
        whose = f"task {task_id!r}: " if task_id else ""
        super().__init__(f"{whose}pattern {pattern!r}, position {position}: {problem}")

    def in_task(self, task_id: str) -> InvalidPattern:
        """The same, with the task that claims it."""
        return InvalidPattern(self.pattern, self.position, self.problem, task_id)


class ClaimOutsideWorkspace(UsageError):
    """A claimed path leaves the workspace."""


class ProtectedPath(UsageError):
    """A task claims a protected path for writing."""


class UnknownResource(UsageError):
    """An amount is claimed of a resource that has no capacity."""


class ImpossibleClaim(UsageError):
    """A claim asks for more than the capacity: the task could never start."""


class ChildWouldDeadlock(UsageError):
    """A child that could only start after the ancestor that waits for it has ended."""


class InvalidOwnership(UsageError):
    """Ownership rules that contradict each other, or a path that nobody owns."""


class ShuttingDown(UsageError):
    """New work was submitted after drain or shutdown was asked for."""


class KernelError(InterlockError):
    """A broken promise inside Interlock, or a caller that breaks the kernel's contract."""


class IllegalTransition(KernelError):
    """A task was to change state in a way the transition table does not allow."""

    def __init__(self, task_id: str, old: str, new: str, story: Sequence[str]) -> None:
        self.task_id = task_id
        self.story = tuple(story)
        lines = "".join(f"\n  {line}" for line in self.story)
        super().__init__(f"task {task_id!r} may not go from {old} to {new}; its story:{lines}")


class ClockWentBack(KernelError):
    """`handle()` was given an earlier time than before."""
