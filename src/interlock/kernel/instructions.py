"""Instructions: what the kernel tells the runtime to do, in this order."""

from __future__ import annotations

from typing import NamedTuple

from interlock.model.claim import Claim
from interlock.model.outcome import EndedBy, ErrorRecord, State


class Start(NamedTuple):
    """Start an attempt. All claims of its task are granted to it under `token`."""

    task_id: str
    attempt: int
    token: int


class Stop(NamedTuple):
    """Tell an attempt to stop. It keeps its claims and its slot until it has exited."""

    task_id: str
    token: int
    reason: str


class Settle(NamedTuple):
    """Record the one outcome of a task. `cause` names the dependency or reason, if there is one."""

    task_id: str
    status: State
    attempts: int
    started_at: float | None
    ended_at: float
    error: ErrorRecord | None
    cause: str
    ended_by: EndedBy = ""


class Change(NamedTuple):
    """Report that a task has entered a state.

    Final states come as `Settle`, `running` mostly as `Start`. That a submitted task waits is not
    reported, unless it was blocked before.
    """

    task_id: str
    state: State
    detail: str
    until: float | None = None
    """For `retrying`: the earliest time of the next attempt."""


class Resume(NamedTuple):
    """Answer a request: what the attempt waited for is there or was withdrawn, and it has its slot.

    With other requests open, the slot comes with the last of them. `token` is that of the attempt;
    `grant` is the token of the claims that were added, 0 for none.
    """

    task_id: str
    token: int
    request: int
    claims: tuple[Claim, ...]
    grant: int


class Deny(NamedTuple):
    """Answer a request: what the attempt asked for cannot be granted."""

    task_id: str
    token: int
    request: int
    reason: str


class Refused(NamedTuple):
    """Report a stimulus with an old token, or about an attempt that is over. It changed nothing."""

    task_id: str
    token: int
    stimulus: str


class SetTimer(NamedTuple):
    """Send `Tick` at this time, instead of at the time named before. None: no timer is needed."""

    at: float | None


Instruction = Start | Stop | Settle | Change | Resume | Deny | Refused | SetTimer
