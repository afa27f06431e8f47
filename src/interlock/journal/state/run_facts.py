"""A run as views describe it: one record for the terminal, the JSON and the report."""

from __future__ import annotations

from dataclasses import dataclass, field

from interlock.model.outcome import EndedBy, State
from interlock.model.progress import Progress


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """One task at one moment. Times are seconds since 1970."""

    id: str
    state: State
    since: float
    agent: str = ""
    prompt: str = ""
    claims: tuple[str, ...] = ()
    """As written: `writes src/**`, `reads docs/`, `uses gpu`."""
    after: tuple[str, ...] = ()
    priority: int = 0
    attempt: int = 0
    """Which attempt runs, or ran last; 0 before the first one."""
    attempts: int = 1
    """How many are allowed."""
    submitted_at: float = 0.0
    started_at: float | None = None
    """When its last attempt began."""
    ended_at: float | None = None
    duration: float = 0.0
    """Seconds from its first start to its end, if it has ended, without waiting for people."""
    estimate: float | None = None
    fraction: float | None = None
    message: str = ""
    """Its last report or log line."""
    tokens: int = 0
    cost: float = 0.0
    error: str = ""
    error_type: str = ""
    cause: str = ""
    """The task because of which it was skipped, or why it was cancelled."""
    ended_by: EndedBy = ""
    """Which deadline ended it, if one did."""
    retry_of: str = ""
    """The task that this one repeats, because a person asked for it."""
    question: str = ""
    """The question that it waits for an answer to."""
    stopping: bool = False
    """It has an outcome, or was told to stop, and part of it still runs."""
    output: str = ""
    """Its result as text, shortened, if it has one."""
    log: str = ""
    """The file with the output of its last attempt, if there is one."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run at one moment."""

    run_id: str
    at: float
    """The moment."""
    started_at: float
    ended_at: float | None = None
    plan: str = ""
    slots: int = 0
    active: bool = True
    """Whether a coordinator carries it out at this moment."""
    paused: bool = False
    draining: bool = False
    tasks: tuple[TaskFacts, ...] = ()
    """In the order of submission."""
    progress: Progress = field(default_factory=Progress)
    last: int = 0
    """The number of the last event this includes."""

    @property
    def duration(self) -> float:
        """Seconds since the run began."""
        return (self.ended_at or self.at) - self.started_at

    @property
    def unfinished(self) -> int:
        """How many tasks have no outcome yet."""
        return self.progress.total - self.progress.ended

    @property
    def one_by_one(self) -> float:
        """Seconds that the attempts so far would have taken one after another."""
        running = (
            self.at - task.started_at
            for task in self.tasks
            if task.state is State.RUNNING and task.started_at is not None
        )
        return sum(task.duration for task in self.tasks) + sum(running)

    @property
    def saved(self) -> float:
        """Seconds saved against running one task after another."""
        return max(0.0, self.one_by_one - self.duration)

    @property
    def cost(self) -> float:
        """The reported cost of all attempts."""
        return sum(task.cost for task in self.tasks)
