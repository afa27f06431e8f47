"""A task that is brought again after a crash is the same, whatever the journal keeps of it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interlock import Event, Kind, Runtime, State, Task
from interlock.errors import ChangedTask
from interlock.journal.sqlite import SqliteJournal
from interlock.kernel import instructions as do
from interlock.runtime.recorded_types import RECORDED_TYPES
from tests.unit.journal.story import run

SECRET = "sk-very-secret"


def work(*args: Any) -> str:
    return "done"


@dataclass
class Agent:
    level: int

    def run(self, ctx: Any) -> str:
        return "done"


async def cut_off(path: Path, task: Task) -> None:
    """A run that was killed when the task had been submitted."""
    journal = SqliteJournal(path, known=RECORDED_TYPES, redact=[SECRET])
    await journal.begin("r1", 1000.0)
    told = [
        Event(1, 1000.0, Kind.SUBMITTED, task.id, task),
        Event(2, 1000.0, Kind.WAITING, task.id, do.Change(task.id, State.WAITING, "")),
    ]
    await journal.append(told)
    journal.close()


async def again(path: Path, task: Task) -> str:
    async with Runtime(journal=path, resume=True, secrets=[SECRET]) as runtime:
        return str(await runtime.submit(task).result())


@pytest.mark.parametrize(
    "task",
    [
        Task("a", functools.partial(work, 1)),
        Task("a", Agent(3)),
        Task("a", work, args=(object(), Agent(1))),
        Task("a", work, prompt=f"use {SECRET}", args=(SECRET,)),
    ],
    ids=["partial", "object", "arguments", "secret"],
)
def test_a_task_that_is_brought_again_is_taken_for_the_same(tmp_path: Path, task: Task) -> None:
    run(cut_off(tmp_path / "j.db", task))
    assert run(again(tmp_path / "j.db", task)) == "done"


@pytest.mark.parametrize(
    ("task", "changed"),
    [
        (Task("a", functools.partial(work, 1)), {"agent": functools.partial(work, 2)}),
        (Task("a", Agent(3)), {"agent": Agent(4)}),
        (Task("a", work, prompt=SECRET), {"prompt": "***"}),
    ],
    ids=["partial", "object", "secret"],
)
def test_a_task_that_has_changed_is_refused(
    tmp_path: Path, task: Task, changed: dict[str, Any]
) -> None:
    run(cut_off(tmp_path / "j.db", task))
    with pytest.raises(ChangedTask):
        run(again(tmp_path / "j.db", task.replace(**changed)))
