"""What may be asked of a run that goes on."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Event, InterlockError, Runtime, State, Task, TaskContext
from interlock.errors import InvalidOption, UnknownTask, UsageError
from interlock.journal.state.run_fold import RunFold
from interlock.model.template import Template
from interlock.runtime.control.handler import RequestHandler


class World:
    """A run of a few tasks, one of which is held up until the end."""

    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.may_end = asyncio.Event()
        self.mended = False
        self.fold = RunFold(rt.run_id, 0.0)
        rt.listen(self.heard)
        self.tasks = [
            Task("held", self.held),
            Task("flaky", self.flaky),
            Task("after", self.says, prompt=Template("is {{flaky.output}}")),
            Task("last", self.says, prompt=Template("{{after.output}} now")),
            Task("fine", self.says, prompt="fine"),
        ]
        self.steering = RequestHandler(rt, self.fold, self.tasks)

    def heard(self, event: Event) -> None:
        self.fold.take((event,))

    async def held(self) -> None:
        await self.may_end.wait()

    async def flaky(self) -> str:
        if not self.mended:
            raise ValueError("no")
        return "mended"

    async def says(self, ctx: TaskContext) -> str:
        return ctx.prompt or ""

    async def ask(self, do: str, **details: Any) -> Any:
        return await self.steering.handle({"do": do, **details})

    def state(self, task_id: str) -> State:
        found = self.fold.task(task_id)
        assert found is not None
        return found.state


@asynccontextmanager
async def going(**options: Any) -> AsyncIterator[World]:
    """All but one of its tasks have ended."""
    async with Runtime(**options) as rt:
        world = World(rt)
        handles = rt.submit_all(world.tasks)
        for handle in handles[1:]:
            await handle
        yield world
        world.may_end.set()
        await world.steering.wait_for_follow_ups()


async def test_a_retry_brings_what_was_skipped_under_new_names_and_in_new_prompts() -> None:
    async with going() as world:
        world.mended = True
        names = await world.ask("retry", task="flaky")
        assert names == {"flaky": "flaky~2", "after": "after~2", "last": "last~2"}
        await world.steering.wait_for_follow_ups()
        assert (await world.rt.handle("last~2")).result == "is mended now"
        assert world.state("flaky") is State.FAILED


async def test_a_retry_that_failed_can_be_retried_again() -> None:
    async with going() as world:
        await world.ask("retry", task="flaky")
        await world.steering.wait_for_follow_ups()
        assert world.state("last~2") is State.SKIPPED
        world.mended = True
        names = await world.ask("retry", task="flaky~2")
        assert names == {"flaky~2": "flaky~3", "after~2": "after~3", "last~2": "last~3"}
        await world.steering.wait_for_follow_ups()
        assert world.state("last~3") is State.SUCCEEDED


MESSAGES = {
    "there is no None here": "does not know the request None",
    "is the other one newer": "sent by a newer version",
    "which task": "`task` is missing or is not a string",
    "which tasks": "`tasks` is not a list of task ids",
    "which priority": "`priority` is missing or is not a whole number",
    "asked nothing": "has not asked a question",
}
"""What the run says, by the short name of the case."""


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({}, UsageError, "there is no None here"),
        ({"do": "explode"}, UsageError, "is the other one newer"),
        ({"do": "why"}, InvalidOption, "which task"),
        ({"do": "why", "task": "nobody"}, UnknownTask, "nobody"),
        ({"do": "retry", "task": "nobody"}, UnknownTask, "nobody"),
        ({"do": "retry", "task": "held"}, InvalidOption, "has not ended; it is running"),
        ({"do": "retry", "task": "fine"}, InvalidOption, "succeeded"),
        ({"do": "cancel", "tasks": "held"}, InvalidOption, "which tasks"),
        ({"do": "cancel", "tasks": ["held", 5]}, InvalidOption, "which tasks"),
        ({"do": "cancel", "tasks": ["held", "nobody"]}, UnknownTask, "nobody"),
        ({"do": "cancel", "task": "fine"}, InvalidOption, "list of task ids in `tasks`"),
        ({"do": "pause", "task": 5}, InvalidOption, "which task"),
        ({"do": "resume", "task": "nobody"}, UsageError, "nobody"),
        ({"do": "prioritize", "task": "held"}, InvalidOption, "which priority"),
        ({"do": "prioritize", "task": "held", "priority": True}, InvalidOption, "which priority"),
        ({"do": "answer", "task": "held", "answer": "x"}, InvalidOption, "asked nothing"),
        ({"do": "answer", "task": "held", "answer": "yes"}, UsageError, "held"),
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_refused_and_changes_nothing(
    asked: dict[str, Any], error: type[InterlockError], said: str
) -> None:
    async with going() as world:
        before = world.fold.facts(0.0)
        with pytest.raises(error, match=MESSAGES.get(said, said)):
            await world.steering.handle(asked)
        await world.rt.flush()
        assert world.fold.facts(0.0) == before


async def test_everything_that_has_not_ended_is_cancelled() -> None:
    async with going() as world:
        assert await world.ask("cancel") == ["held"]
        assert await world.ask("cancel", tasks=["held", "fine"]) == []
        assert world.state("held") is State.CANCELLED


async def test_looking_answers_with_an_explanation() -> None:
    async with going() as world:
        assert await world.ask("ping") == {"run": world.rt.run_id}
        explanation = await world.ask("why", task="held")
        assert (explanation.task_id, explanation.state) == ("held", State.RUNNING)


async def test_a_pause_holds_back_what_is_submitted_later(workspace: Path) -> None:
    async with going(journal=workspace / "j.db") as world:
        await world.ask("pause")
        assert world.fold.facts(0.0).paused
        world.mended = True
        await world.ask("retry", task="flaky")
        assert world.state("flaky~2") is State.WAITING
        await world.ask("resume")
        assert not world.fold.facts(0.0).paused


async def test_a_retry_of_an_earlier_coordinator_that_failed_is_retried_after_it(
    workspace: Path,
) -> None:
    copy = workspace / "copy.db"
    async with going(journal=workspace / "j.db") as world:
        names = await world.ask("retry", task="flaky")
        for each in names.values():
            await world.rt.handle(each)
        await world.rt.flush()
        for suffix in ("", "-wal"):  # as a kill at this moment would leave them
            shutil.copy(f"{workspace}/j.db{suffix}", f"{copy}{suffix}")
    async with going(journal=copy, resume=True) as world:
        world.mended = True
        names = await world.ask("retry", task="flaky")
        assert names == {"flaky~2": "flaky~3", "after~2": "after~3", "last~2": "last~3"}
        assert (await world.rt.handle("last~3")).result == "is mended now"
