"""The port through which an attempt gets a place to work in.

    grant journaled ──▶ prepare ──▶ the agent runs ──▶ audit ──▶ release ──▶ exited

Each step may answer at once, with a value, or later, with an awaitable. A step that answers at once
costs no asyncio task, so that a workspace that needs no work (`shared`) costs next to nothing.

What the runtime promises:

- `prepare` is called once per attempt, after its start is in the journal (not if `caps.fixed`).
- For every `PreparedWorkspace` there is exactly one `release`, whatever happens in between: also
  if the attempt is stopped before its agent starts, and also if the run is broken off.
- `audit` is called once, between the agent's exit and `release`, if `caps.audits` and the agent
  was started. Nothing of the agent runs then, so the workspace does not change any more.
- The attempt keeps its claims until `release` is done.
- An attempt that is stopped cancels its `prepare` or `audit` (`CancelledError`). It never cancels
  `release`. A step that goes on regardless keeps the claims of its attempt until it is done.

What an implementation promises:

- A `prepare` that raises, also by being cancelled, leaves nothing behind: no `release` follows.
- No step blocks the event loop. Work that takes time is awaited.

The one exception: an attempt that outlives the event loop of its run, as a blocked thread can, has
no loop left that could await `release`. An implementation that must clean up sweeps at its start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from interlock.model.claim import Claim

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class WorkspaceCaps(NamedTuple):
    """What a workspace can do. What it cannot do it says, instead of pretending."""

    audits: bool
    """It can tell what an attempt has changed. An attempt then ends when its audit has ended."""
    fixed: PreparedWorkspace | None = None
    """The one workspace that all attempts have, if nothing is ever prepared, audited or released.
    The runtime then asks for none of it: on the way of every task that costs more than it seems."""


class WorkspaceRequest(NamedTuple):
    """The attempt that a workspace is for."""

    run_id: str
    task_id: str
    attempt: int
    """Which attempt at the task, from 1."""
    token: int
    """The fencing token: names the attempt, and is never used again."""
    claims: tuple[Claim, ...]
    """What the attempt holds; path claims are relative to the workspace."""


@dataclass(frozen=True)
class PreparedWorkspace:
    """A place to work in. `audit` and `release` are given the same object again.

    An implementation may return a subclass with what else it has to know then.
    """

    folder: Path
    """Where the agent works. It exists."""
    environment: Mapping[str, str] = field(default_factory=lambda: NO_VARIABLES)
    """Variables for the processes of the attempt."""


class WorkspaceAudit(NamedTuple):
    """What was found in a workspace after an attempt."""

    changed: tuple[str, ...] | None = None
    """Paths that differ from what was prepared, relative to the workspace; None: not known."""


class ReleaseReason(Enum):
    """How the attempt ended that a workspace is released after."""

    NOT_STARTED = "not_started"
    """It was stopped, or failed, before its agent started."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    """It was cancelled, timed out or cut off."""


class WorkspaceRelease(NamedTuple):
    """How a workspace is released: what a later attempt, a merge or a rescue goes by."""

    reason: ReleaseReason
    audit: WorkspaceAudit = WorkspaceAudit()


class Workspaces(Protocol):
    """Prepares, audits and releases the workspaces of a run's attempts.

    Called on the thread of the event loop only. What a step raises is the failure of the attempt
    (`prepare`, `audit`) or is logged (`release`).
    """

    @property
    def caps(self) -> WorkspaceCaps: ...

    def prepare(
        self, request: WorkspaceRequest
    ) -> PreparedWorkspace | Awaitable[PreparedWorkspace]:
        """Make the place that an attempt works in."""

    def audit(self, workspace: PreparedWorkspace) -> WorkspaceAudit | Awaitable[WorkspaceAudit]:
        """Find out what an attempt has changed."""

    def release(
        self, workspace: PreparedWorkspace, how: WorkspaceRelease
    ) -> Awaitable[None] | None:
        """Give it up: keep, save or remove what is in it."""
