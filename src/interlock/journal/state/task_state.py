"""Everything that the events of a run say about one task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from interlock.model.claim import Claim
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.task import Task
from interlock.model.usage import NO_USAGE, Usage


@dataclass(slots=True)
class TaskState:
    """One task, as far as its run has come.

    Times are seconds since 1970, but for those "in the run": they count from its beginning, as the
    kernel does, so that a resumed run can go on with them without rounding.
    """

    id: str
    state: State | None = None
    """None if the events so far do not say it."""
    since: float | None = None

    # -- as submitted --
    task: Task | None = None
    """The task itself, if the fold keeps it."""
    agent: str = ""
    prompt: str = ""
    claims: tuple[Claim, ...] = ()
    after: tuple[str, ...] = ()
    priority: int = 0
    allowed_attempts: int = 1
    estimate: float | None = None
    retry_of: str = ""
    """The task that this one repeats, because a person asked for it."""
    submitted: int | None = None
    """The number of the event with the task."""
    submitted_at: float = 0.0
    parent: tuple[str, int] | None = None
    """The attempt whose child it is: task and token."""
    fingerprint: str = ""
    """What makes it the same task; the table of tasks has it."""

    # -- its attempts --
    attempt: int | None = None
    """The number of the attempt that runs, or ran last."""
    attempt_started_at: float | None = None
    attempt_error: ErrorRecord | None = None
    """How the last attempt failed; None from the start of the next one on."""
    token: int | None = None
    """The last token under which it was granted something."""
    running: int | None = None
    """The token of the attempt that has not ended."""
    attempts: int = 0
    """The attempts that came to an end. One that was cut off does not count."""
    first_start: float | None = None
    """When its first attempt began, in the run."""
    retry_at: float | None = None
    """The next attempt comes not before this time, in the run."""
    deadline_at: float | None = None
    """In the run."""
    group_until: float | None = None
    """When the time of those it was submitted with is over, in the run."""
    new_priority: int | None = None
    """The priority that it was given after it was submitted."""
    error: ErrorRecord | None = None
    """How an attempt failed last, whatever came after."""
    usage: Usage = NO_USAGE
    """What all of its attempts have used, as they reported it."""
    cut_off: int = 0
    """How often an attempt was cut off and may have been the cause of it."""
    was_cut_off: bool = False
    """Its last attempt was: the next one is given the same answers again."""
    may_run_again: bool = False
    """A person has said so since it was cut off."""
    answers: list[tuple[str, str]] = field(default_factory=list)
    """The questions of its attempt and the answers to them, in order."""

    # -- what it says of itself --
    fraction: float | None = None
    message: str = ""
    question: str = ""
    """What it waits for an answer to."""
    asked_at: float | None = None
    waited: float = 0.0
    """Seconds for which it has waited for a person."""
    log: str = ""
    """Where the output of its last attempt is."""
    logs: tuple[tuple[int, str], ...] = ()
    """The same for each attempt, by its number."""
    unstopped: frozenset[int] = frozenset()
    """The tokens of attempts that are over and have not exited."""
    is_stopping: bool = False

    # -- its end --
    outcome: Outcome[Any] | None = None
    """Without its result, unless the fold keeps results."""
    is_reused: bool = False
    """Its outcome is that of an earlier run."""
    settled: int | None = None
    """The number of the event with its outcome."""
    ended_at: float | None = None
    output: str = ""
    """Its result as text, shortened."""

    @property
    def submission(self) -> Task:
        """The task itself, where the fold keeps everything."""
        assert self.task is not None, "the fold has not kept the task"
        return self.task

    def cut(self, *, counts: bool = True) -> None:
        """Its attempt was cut off with its coordinator, and does not count as one.

        It counts as cut off unless a signal ended the run: then it cannot have been the cause.
        """
        self.running, self.state, self.was_cut_off = None, State.WAITING, True
        self.may_run_again = False
        self.attempts -= 1
        self.cut_off += counts

    def submit_again(self) -> None:
        """The program of a resumed run has submitted it once more: nothing has been said of it yet.

        What it has behind it stays: attempts, usage, answers, times in the run.
        """
        if self.outcome is not None:  # its result could not be stored: it begins anew
            self.attempts = 0
        self.outcome, self.is_reused, self.settled, self.ended_at = None, False, None, None
        self.attempt, self.attempt_started_at, self.attempt_error = None, None, None
        self.fraction, self.message, self.question, self.log, self.output = None, "", "", "", ""
        self.is_stopping = False
