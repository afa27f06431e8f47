"""What the kernel tells the runtime to do, in this order."""

from __future__ import annotations

from typing import NamedTuple

from interlock.model.claim import Claim
from interlock.model.outcome import ErrorRecord, State


class Start(NamedTuple):
    """Start an attempt; all claims of its task are granted to it under `token`."""

    task_id: str
    attempt: int
    token: int


class Stop(NamedTuple):
    """Tell an attempt to stop. It keeps its claims and slot until it is gone."""

    task_id: str
    token: int
    reason: str


class Settle(NamedTuple):
    """The one outcome of a task. `cause` names the dependency or reason where there is one."""

    task_id: str
    status: State
    attempts: int
    started_at: float | None
    ended_at: float
    error: ErrorRecord | None
    cause: str


class Change(NamedTuple):
    """A task entered this state.

    Ends come as `Settle`, `running` mostly as `Start`; that a submitted task waits goes without
    saying, unless it was blocked before.
    """

    task_id: str
    state: State
    detail: str
    until: float | None = None
    """For `retrying`: when the next attempt may come."""


class Resume(NamedTuple):
    """What an attempt waited for in mid-flight is there or was withdrawn, and its slot is there.

    With other waits open, the slot comes with the last of them.
    `token` is the attempt's; `grant` is the token of claims that were added, 0 for none.
    """

    task_id: str
    token: int
    request: int
    claims: tuple[Claim, ...]
    grant: int


class Deny(NamedTuple):
    """What an attempt asked for in mid-flight cannot be given."""

    task_id: str
    token: int
    request: int
    reason: str


class Refused(NamedTuple):
    """A stimulus with an old token, or about an attempt that is over; nothing was changed."""

    task_id: str
    token: int
    stimulus: str


class SetTimer(NamedTuple):
    """Send `Tick` at this time, instead of at any earlier named one; None: no timer is needed."""

    at: float | None


Instruction = Start | Stop | Settle | Change | Resume | Deny | Refused | SetTimer
