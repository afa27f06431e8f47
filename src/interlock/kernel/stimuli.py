"""What can happen to the kernel. Each stimulus is plain data, so a journal of them replays.

A stimulus that names an attempt carries its fencing token. One with an old token is refused: it
changes nothing and comes back as a `Refused` instruction.
"""

from __future__ import annotations

from typing import NamedTuple

from interlock.model.claim import Claim
from interlock.model.outcome import ErrorRecord, State
from interlock.model.task import Task
from interlock.model.why import Reason


class Past(NamedTuple):
    """What a task has behind it when a run is taken up again."""

    attempts: int = 0
    """Those that ended; what a crash cut off is not counted."""
    started_at: float | None = None
    retry_at: float | None = None
    """The next attempt comes not before this time."""
    deadline_at: float | None = None
    error: ErrorRecord | None = None
    paused: bool = False


class Submit(NamedTuple):
    """Tasks to run, all or none of them. `parent` is the running task whose children they are.

    A group lasts as long as it has unfinished members, over several submissions: `fail_fast` once
    asked for counts for all of them, and a `deadline` (seconds from now) replaces an earlier one.
    """

    tasks: tuple[Task, ...]
    group: str = ""
    fail_fast: bool = False
    deadline: float | None = None
    parent: str | None = None
    token: int = 0
    past: tuple[Past | None, ...] = ()
    """When a run is taken up again: what each of the tasks has behind it."""


class Ended(NamedTuple):
    """An attempt came to its end as `status` (succeeded, failed or conflicted).

    `gone` says that nothing of it is left running; otherwise `Gone` follows. `chance` in [0, 1)
    is the randomness of the backoff; `retry_after` is the least wait the other side asked for.
    """

    task_id: str
    token: int
    status: State = State.SUCCEEDED
    error: ErrorRecord | None = None
    retry_after: float = 0.0
    chance: float = 0.0
    gone: bool = True


class Gone(NamedTuple):
    """Nothing of an attempt is left running: its claims and slot can be given to others."""

    task_id: str
    token: int


class Reports(NamedTuple):
    """What attempts reported in one turn of the loop: all of it is taken in before any start."""

    reports: tuple[Ended | Gone, ...]


class Cancel(NamedTuple):
    """Cancel one task, with its children."""

    task_id: str
    reason: str = "cancelled"


class CancelGroup(NamedTuple):
    """Cancel whatever is unfinished in a group; the empty group is everything."""

    group: str
    reason: str = "cancelled"


class Extend(NamedTuple):
    """A running attempt asks for more claims; answered by `Resume` or `Deny` with its `request`."""

    task_id: str
    token: int
    request: int
    claims: tuple[Claim, ...]


class Take(NamedTuple):
    """A running attempt takes from rates in mid-flight; answered like `Extend`. Keeps its slot."""

    task_id: str
    token: int
    request: int
    claims: tuple[Claim, ...]


class Used(NamedTuple):
    """What a `Take` really used of one rate, which replaces the amount it took."""

    task_id: str
    token: int
    request: int
    resource: str
    amount: int


class AwaitTasks(NamedTuple):
    """A running attempt waits until these tasks of the run have ended; answered like `Extend`.

    They may be its children or any others; those that have ended count as over.
    """

    task_id: str
    token: int
    request: int
    tasks: tuple[str, ...]


class Ask(NamedTuple):
    """A running attempt asks a person; `Resume` follows the `Answer`."""

    task_id: str
    token: int
    request: int
    question: str


class Answer(NamedTuple):
    """A person answers the question that a task waits with."""

    task_id: str
    request: int
    answer: str = ""


class Withdraw(NamedTuple):
    """A running attempt no longer waits for what it asked for, and gets nothing of it.

    `Resume` with nothing follows as soon as the attempt may go on: at once if it has its slot, or
    if other waits of it are open, with the last of which the slot comes back; otherwise with the
    slot. A request that is not open was answered a moment ago, and is answered so once more.
    """

    task_id: str
    token: int
    request: int


class SetCapacity(NamedTuple):
    """A counted resource (`slots` is one) now has this capacity; what runs keeps what it has."""

    resource: str
    capacity: int


class Throttle(NamedTuple):
    """For now a counted resource is given out more sparingly; without `level` and `more` no longer.

    At most `level` of it may be in use; or only so much `more` of it is given out, whatever comes
    back. It changes nothing about what can be claimed. `because` is what `why` answers meanwhile.
    """

    resource: str
    level: int | None = None
    more: int | None = None
    because: Reason | None = None


class Define(NamedTuple):
    """There is a counted resource that has not been known before."""

    resource: str
    capacity: int


class SetRate(NamedTuple):
    """A rate, known before or not, now gives out this amount in a window."""

    resource: str
    amount: int
    window: float


class HoldRate(NamedTuple):
    """A rate lets nothing through before this time (Retry-After)."""

    resource: str
    until: float


class Occupy(NamedTuple):
    """Something outside this run holds these claims: what is left of an attempt of an earlier run.

    It is a fact, so it is not asked whether they are free. To others it is a zombie without a
    slot; its name is one among the ids of tasks. Rates, and amounts of what has no capacity in
    this run, are not held.
    """

    name: str
    claims: tuple[Claim, ...]


class Vacate(NamedTuple):
    """What came with `Occupy` is gone: others can have its claims."""

    name: str


class Recall(NamedTuple):
    """Tasks that had ended, and how, before this coordinator took the run up."""

    ends: tuple[tuple[str, State], ...]


class Spend(NamedTuple):
    """What a rate had given out, and when, before this coordinator took the run up."""

    resource: str
    amount: int
    at: float


class Pause(NamedTuple):
    """Start nothing, or not this task, until `Unpause`."""

    task_id: str | None = None


class Unpause(NamedTuple):
    """The end of a `Pause`."""

    task_id: str | None = None


class Prioritize(NamedTuple):
    """Give an unfinished task another priority."""

    task_id: str
    priority: int


class Tick(NamedTuple):
    """The time that the last `SetTimer` named has come."""


class Drain(NamedTuple):
    """Take no new tasks and start no further attempts; what runs may finish.

    With it may its children, and what it waits for.
    """


class Shutdown(NamedTuple):
    """Take no new tasks, cancel all unfinished ones."""


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
