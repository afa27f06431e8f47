"""Invalid submissions: each must raise its own error, and change nothing."""

from __future__ import annotations

from interlock.model.claim import uses
from interlock.model.task import Task

BAD = (
    "DuplicateId", "UnknownDependency", "DependencyCycle", "ClaimOutsideWorkspace",
    "ProtectedPath", "InvalidPattern", "ImpossibleClaim", "UnknownResource",
    "InvalidOption",
)  # fmt: skip
"""The errors that they must raise."""


def bad_tasks(kind: str, known: str) -> tuple[Task, ...]:
    """A valid task followed by one that makes the whole submission invalid."""
    good = Task("good", writes="docs/x.md")
    match kind:
        case "DuplicateId":
            return good, Task(known)
        case "UnknownDependency":
            return good, Task("bad", after="nobody")
        case "DependencyCycle":
            return good, Task("bad", after="worse"), Task("worse", after="bad")
        case "ClaimOutsideWorkspace":
            return good, Task("bad", writes="src/../../x")
        case "ProtectedPath":
            return good, Task("bad", writes="secrets/key.pem")
        case "InvalidPattern":
            return good, Task("bad", reads="src/[a")
        case "ImpossibleClaim":
            return good, Task("bad", uses=uses("gpu", 1000))
        case "UnknownResource":
            return good, Task("bad", uses=uses("no:such", 2))
        case "InvalidOption":
            return good, Task("bad", uses="slots")
        case _:
            raise ValueError(kind)
