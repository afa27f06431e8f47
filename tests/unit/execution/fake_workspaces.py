"""A workspace that is slow, fails, hangs or will not be cancelled, and that knows its contract."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from interlock.execution.workspaces.port import (
    PreparedWorkspace,
    ReleaseReason,
    WorkspaceAudit,
    WorkspaceCaps,
    WorkspaceRelease,
    WorkspaceRequest,
)

Answer = TypeVar("Answer")
Manner = Callable[[], Coroutine[Any, Any, None]]
"""What a step does before it answers."""


def slow(seconds: float) -> Manner:
    """It takes some time, and ends when it is cancelled."""

    async def step() -> None:
        await asyncio.sleep(seconds)

    return step


def failing(message: str, after: float = 1.0) -> Manner:
    """It fails after some time."""

    async def step() -> None:
        await asyncio.sleep(after)
        raise OSError(message)

    return step


def stubborn(seconds: float) -> Manner:
    """It takes its time and answers, although it was cancelled."""

    async def step() -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                continue

    return step


def hanging() -> Manner:
    """It answers long after everybody has stopped waiting, whatever is done to it."""
    return stubborn(1e6)


@dataclass(frozen=True)
class Fake(PreparedWorkspace):
    """A workspace with a name: that of its task, and the number of its attempt."""

    name: str = ""


class FakeWorkspaces:
    """Does each step in the manner that it is told to, or at once. `log` tells of all of them.

    What breaks the promises of the runtime (see `port`) is in `broken`.
    """

    def __init__(
        self,
        folder: Path = Path("/fake"),
        prepare: Manner | None = None,
        audit: Manner | None = None,
        release: Manner | None = None,
        *,
        audits: bool = True,
    ) -> None:
        self.folder = folder
        self.manners = {"prepare": prepare, "audit": audit, "release": release}
        self.caps = WorkspaceCaps(audits)
        self.log: list[str] = []
        self.releases: dict[str, WorkspaceRelease] = {}
        self.broken: list[str] = []
        self.open: dict[str, Fake] = {}
        """Prepared and not yet released."""
        self._audited: set[str] = set()
        self._asked: set[str] = set()

    def prepare(
        self, request: WorkspaceRequest
    ) -> PreparedWorkspace | Awaitable[PreparedWorkspace]:
        name = f"{request.task_id}/{request.attempt}"
        self._expect(name not in self._asked, f"{name} was prepared twice")
        self._asked.add(name)
        workspace = Fake(self.folder, {"FAKE": name}, name)

        def made() -> PreparedWorkspace:
            self.open[name] = workspace
            return workspace

        return self._step("prepare", name, made)

    def audit(self, workspace: PreparedWorkspace) -> WorkspaceAudit | Awaitable[WorkspaceAudit]:
        name = self._name(workspace, "audited")
        self._expect(name not in self._audited, f"{name} was audited twice")
        self._audited.add(name)
        return self._step("audit", name, lambda: WorkspaceAudit((f"{name}.txt",)))

    def release(
        self, workspace: PreparedWorkspace, how: WorkspaceRelease
    ) -> Awaitable[None] | None:
        name = self._name(workspace, "released")
        self._expect(name not in self.releases, f"{name} was released twice")
        started = how.reason is not ReleaseReason.NOT_STARTED
        if self.caps.audits:
            was_audited = name in self._audited
            self._expect(was_audited == started, f"{name}: audited {was_audited}, {how.reason}")
        self.releases[name] = how

        def gone() -> None:
            del self.open[name]

        return self._step("release", name, gone)

    def _name(self, workspace: PreparedWorkspace, done: str) -> str:
        assert isinstance(workspace, Fake), workspace
        is_open = self.open.get(workspace.name) is workspace
        self._expect(is_open, f"{workspace.name} is not prepared, and was {done}")
        return workspace.name

    def _expect(self, held: bool, otherwise: str) -> None:
        if not held:
            self.broken.append(otherwise)

    def _step(
        self, step: str, name: str, answer: Callable[[], Answer]
    ) -> Answer | Awaitable[Answer]:
        manner = self.manners[step]
        self.log.append(f"{step} {name}")
        if manner is None:
            return answer()
        return self._later(step, name, manner, answer)

    async def _later(
        self, step: str, name: str, manner: Manner, answer: Callable[[], Answer]
    ) -> Answer:
        try:
            await manner()
        except BaseException as error:
            self.log.append(f"{step} {name}: {type(error).__name__}")
            if step == "release":  # it has failed, and is over all the same
                answer()
            raise
        self.log.append(f"{step} {name}: done")
        return answer()
