"""Children of an attempt: what they need of their parent, and how they are named."""

from __future__ import annotations

from typing import Protocol

from interlock.model.task import Task


class Parent(Protocol):
    """An attempt that submits tasks: they become children of its task."""

    @property
    def task(self) -> Task: ...
    @property
    def token(self) -> int: ...
    @property
    def plain_id(self) -> str:
        """The id of its task before it was renamed because an earlier attempt had used it."""

    @property
    def renamed(self) -> dict[str, str]:
        """Children whose ids an earlier attempt has used, and their ids in this one."""

    def fresh_id(self, name: str) -> str:
        """An id that no other child of this attempt has."""

    def check_open(self) -> None:
        """Raise AttemptOver if this attempt may have no more effects."""


def plain(task_id: str) -> str:
    """The id of a child without the suffix that made it unique: `a` for `a~2`."""
    name, _, count = task_id.rpartition("~")
    return name if name and count.isdecimal() else task_id
