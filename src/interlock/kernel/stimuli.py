"""Stimuli: what can happen to the kernel. Each is plain data, so a journal of them can be replayed.

A stimulus that names an attempt carries its fencing token. One with an old token changes nothing
and comes back as a `Refused` instruction.
"""

from __future__ import annotations

from typing import NamedTuple

from interlock.model.claim import Claim
from interlock.model.outcome import ErrorRecord, State
from interlock.model.task import Task
from interlock.model.why import Reason


class Past(NamedTuple):
    """What a task has behind it when its run is resumed."""

    attempts: int = 0
    """Attempts that ended. One that a crash interrupted is not counted."""
    started_at: float | None = None
    retry_at: float | None = None
    """The earliest time of the next attempt."""
    deadline_at: float | None = None
    error: ErrorRecord | None = None
    paused: bool = False


class Submit(NamedTuple):
    """Tasks to run, all or none of them. `parent` is the running task whose children they are.

    A group lasts as long as it has unfinished members, over several submissions. `fail_fast`, once
    asked for, holds for all of them; a `deadline` (seconds from now) replaces an earlier one.
    """

    tasks: tuple[Task, ...]
    group: str = ""
    fail_fast: bool = False
    deadline: float | None = None
    parent: str | None = None
    token: int = 0
    past: tuple[Past | None, ...] = ()
    """When a run is resumed: what each of the tasks has behind it."""


class Ended(NamedTuple):
    """An attempt has ended as `status` (succeeded, failed or conflicted).

    `gone` says that it has exited as well; otherwise `Gone` follows. `chance`, in [0, 1), is the
    random part of the backoff; `retry_after` is the shortest wait that the other side asked for.
    """

    task_id: str
    token: int
    status: State = State.SUCCEEDED
    error: ErrorRecord | None = None
    retry_after: float = 0.0
    chance: float = 0.0
    gone: bool = True


class Gone(NamedTuple):
    """An attempt has exited: all its threads and processes have ended. Its claims are released."""

    task_id: str
    token: int


class Reports(NamedTuple):
    """What attempts reported in one turn of the loop. All of it is taken in before any start."""

    reports: tuple[Ended | Gone, ...]


class Cancel(NamedTuple):
    """Cancel one task, with its children."""

    task_id: str
    reason: str = "cancelled"


class CancelGroup(NamedTuple):
    """Cancel every unfinished task of a group; the empty name means all tasks."""

    group: str
    reason: str = "cancelled"


class Extend(NamedTuple):
    """A running attempt asks for more claims. `Resume` or `Deny` with its `request` answers."""

    task_id: str
    token: int
    request: int
    claims: tuple[Claim, ...]


class Take(NamedTuple):
    """A running attempt takes from rates, and keeps its slot meanwhile. Answered like `Extend`."""

    task_id: str
    token: int
    request: int
    claims: tuple[Claim, ...]


class Used(NamedTuple):
    """What a `Take` has really used of one rate. It replaces the amount that was taken."""

    task_id: str
    token: int
    request: int
    resource: str
    amount: int


class AwaitTasks(NamedTuple):
    """A running attempt waits until these tasks of the run have ended. Answered like `Extend`.

    They may be its children or any others. Tasks that have ended already count as over.
    """

    task_id: str
    token: int
    request: int
    tasks: tuple[str, ...]


class Ask(NamedTuple):
    """A running attempt asks a person. `Resume` follows the `Answer`."""

    task_id: str
    token: int
    request: int
    question: str


class Answer(NamedTuple):
    """A person has answered the question that a task waits with."""

    task_id: str
    request: int
    answer: str = ""


class Withdraw(NamedTuple):
    """A running attempt gives up a request, and is granted nothing of it.

    `Resume` with nothing follows as soon as the attempt may go on. That is at once if it has its
    slot, or if other requests of it are open (the slot comes back with the last of them); otherwise
    when it has a slot again. If the request has just been answered, a second `Resume` with
    nothing follows.
    """

    task_id: str
    token: int
    request: int


class SetCapacity(NamedTuple):
    """A counted resource (`slots` is one) has another capacity. What is held stays held."""

    resource: str
    capacity: int


class Throttle(NamedTuple):
    """A counted resource is given out more sparingly; without `level` and `more`, no longer.

    At most `level` of it may be in use, or only so much `more` of it is given out, whatever comes
    back. What can be claimed does not change. `because` is the reason that `why` gives meanwhile.
    """

    resource: str
    level: int | None = None
    more: int | None = None
    because: Reason | None = None


class Define(NamedTuple):
    """There is a new counted resource."""

    resource: str
    capacity: int


class SetRate(NamedTuple):
    """A rate, new or known, gives out this amount per window from now on."""

    resource: str
    amount: int
    window: float


class HoldRate(NamedTuple):
    """A rate gives out nothing before this time (Retry-After)."""

    resource: str
    until: float


class Occupy(NamedTuple):
    """Something outside this run holds these claims: an attempt of an earlier run that still runs.

    This is a fact, so it does not matter whether the claims are free. To others it is a zombie
    without a slot; its name is taken from the ids of tasks. Rates are not held, and neither are
    amounts of resources that have no capacity in this run.
    """

    name: str
    claims: tuple[Claim, ...]


class Vacate(NamedTuple):
    """What came with `Occupy` has exited: its claims are released."""

    name: str


class Recall(NamedTuple):
    """Tasks that had ended, and how, before this run was resumed."""

    ends: tuple[tuple[str, State], ...]


class Spend(NamedTuple):
    """What a rate had given out, and when, before this run was resumed."""

    resource: str
    amount: int
    at: float


class Pause(NamedTuple):
    """Start nothing, or not this task, until `Unpause`."""

    task_id: str | None = None


class Unpause(NamedTuple):
    """End a `Pause`."""

    task_id: str | None = None


class Prioritize(NamedTuple):
    """Give an unfinished task another priority."""

    task_id: str
    priority: int


class Tick(NamedTuple):
    """The time named by the last `SetTimer` has come."""


class Drain(NamedTuple):
    """Take no new tasks and start no further attempts. What runs may finish.

    Its children, and the tasks that it waits for, may still start.
    """


class Shutdown(NamedTuple):
    """Take no new tasks, and cancel all unfinished ones."""


Stimulus = (
    Submit
    | Ended
    | Gone
    | Reports
    | Cancel
    | CancelGroup
    | Extend
    | Take
    | Used
    | AwaitTasks
    | Ask
    | Answer
    | Withdraw
    | SetCapacity
    | Throttle
    | Define
    | SetRate
    | HoldRate
    | Occupy
    | Vacate
    | Recall
    | Spend
    | Pause
    | Unpause
    | Prioritize
    | Tick
    | Drain
    | Shutdown
)

STIMULUS_NAMES: dict[type, str] = {
    Submit: "submit",
    Ended: "attempt_ended",
    Gone: "attempt_exited",
    Reports: "reports",
    Cancel: "cancel",
    CancelGroup: "cancel_group",
    Extend: "extend",
    Take: "take",
    Used: "used",
    AwaitTasks: "await_tasks",
    Ask: "ask",
    Answer: "answer",
    Withdraw: "withdraw",
    SetCapacity: "set_capacity",
    Throttle: "throttle",
    Define: "define",
    SetRate: "set_rate",
    HoldRate: "hold_rate",
    Occupy: "occupy",
    Vacate: "vacate",
    Recall: "recall",
    Spend: "spend",
    Pause: "pause",
    Unpause: "resume",
    Prioritize: "prioritize",
    Tick: "tick",
    Drain: "drain",
    Shutdown: "shutdown",
}
"""The name of each stimulus in records and messages. Journals hold these names, so they never
change, whatever the classes are called."""
