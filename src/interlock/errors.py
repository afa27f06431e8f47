"""Every error Interlock raises, drawn once.

InterlockError
├── UsageError                 the caller asked for something that cannot be; nothing was changed
│   ├── BlankId
│   ├── DuplicateId
│   ├── UnknownTask
│   ├── UnknownDependency
│   ├── DependencyCycle        a task that waits for itself, directly or round a circle
│   ├── InvalidOption          a negative duration, zero attempts, a capacity below zero, ...
│   ├── InvalidPattern         says at which position
│   ├── ClaimOutsideWorkspace
│   ├── ProtectedPath
│   ├── UnknownResource        an amount of something that has no capacity
│   ├── ImpossibleClaim        more than there will ever be, so the task could never start
│   ├── ChildWouldDeadlock     a child that could only start after its waiting ancestor ended
│   ├── InvalidOwnership
│   ├── ShuttingDown           submitted after drain or shutdown was asked for
│   ├── NotRunning             a Runtime was used before it was entered, or after it was left
│   ├── ChangedTask            a run was taken up, and a task of it is not what it was
│   ├── NotAnAgent             cannot be called, or not with the arguments given
│   ├── PlanError              a plan or project file; `problems` has all that is wrong with it
│   └── WouldBlockTheLoop      a blocking wait where only `await` may wait
├── TaskFailed                 `await handle.result()` of a task that did not succeed
├── RunFailed                  `raise_for_failures()`; carries the outcomes that are no successes
├── FatalError                 an agent ran out of memory or stack; raised when all have ended
├── AttemptsStillAlive         attempts that would not stop; their claims stay held
├── AgentFailed                for agents to raise: says whether and when to try again
├── AttemptOver                an agent that used its context after its attempt was over
├── WouldDeadlock              a wait in mid-flight that could never have ended
├── NotStorable                a value that JSON cannot hold; says which part of it
├── AlreadyRunning             another coordinator has this journal; says which
├── EarlierAgentsAlive         agents of a coordinator that is gone have not ended; says which
├── UnreadableJournal          a journal that is damaged, foreign, too new or out of reach
├── AgentError                 an agent could not be made, or failed; says which
│   └── AgentException         the name that callers of the coordinator know it by
├── EngineError                whatever runs the agents of a pool or an executor cannot
├── OrchestratorException      subtasks that may not be run like that
├── ParallelExecutionError     a group ended with a fatal error; carries all outcomes
├── ResourceConflictError      a resource that somebody else holds, where nobody is to wait
├── AgentAlreadyRunningError   a singleton that runs already; says where and since when
└── KernelError                a bug in Interlock, or a caller that breaks the kernel's contract
    ├── IllegalTransition      carries the story of the task
    └── ClockWentBack
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

_SHOWN = 10
_SHOWN_OF_A_FILE = 100


class EndedTask(Protocol):
    """What the errors need of an outcome; the record itself is in `model`."""

    @property
    def task_id(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def reason(self) -> str: ...


def _ended_as(outcome: EndedTask) -> str:
    return f"{outcome.status}: {outcome.reason}" if outcome.reason else str(outcome.status)


class InterlockError(Exception):
    """The root: `except InterlockError` catches whatever Interlock itself raises."""


class UsageError(InterlockError, ValueError):
    """Something was asked for that cannot be done; nothing has been changed."""


class BlankId(UsageError):
    """A task or group id is empty or only white space."""


class DuplicateId(UsageError):
    """Two tasks of one run have the same id."""


class UnknownTask(UsageError):
    """No task of this run has that id."""


class UnknownDependency(UsageError):
    """A task comes after one that does not exist."""


class DependencyCycle(UsageError):
    """Tasks wait for each other round a circle, named in `cycle` (first id repeated at the end)."""

    def __init__(self, cycle: Sequence[str]) -> None:
        self.cycle = tuple(cycle)
        if len(self.cycle) <= 2:
            text = f"task {self.cycle[0]!r} comes after itself; remove it from its own `after`"
        else:
            text = (
                "these tasks wait for each other: "
                + " -> ".join(self.cycle)
                + " (each comes after the next); remove one of these dependencies"
            )
        super().__init__(text)


class InvalidOption(UsageError):
    """An option has a value it cannot have."""


class InvalidPattern(UsageError):
    """A path pattern that cannot be read; `position` counts characters from 0."""

    def __init__(self, pattern: str, position: int, problem: str, task_id: str = "") -> None:
        self.pattern = pattern
        self.position = position
        self.problem = problem
        whose = f"task {task_id!r}: " if task_id else ""
        super().__init__(f"{whose}pattern {pattern!r}, position {position}: {problem}")

    def in_task(self, task_id: str) -> InvalidPattern:
        """The same, with the task that claims it."""
        return InvalidPattern(self.pattern, self.position, self.problem, task_id)


class ClaimOutsideWorkspace(UsageError):
    """A claimed path leaves the workspace."""


class ProtectedPath(UsageError):
    """A task claims a protected path for writing."""


class UnknownResource(UsageError):
    """An amount is claimed of a resource that has no capacity."""


class ImpossibleClaim(UsageError):
    """A claim asks for more than the capacity: the task could never start."""


class ChildWouldDeadlock(UsageError):
    """A child that could only start after the ancestor that waits for it has ended."""


class InvalidOwnership(UsageError):
    """Ownership rules that contradict each other, or a path that nobody owns."""


class ShuttingDown(UsageError):
    """New work was submitted after drain or shutdown was asked for."""


class NotRunning(UsageError):
    """A Runtime was used before it was entered with `async with`, or after it was left."""


class ChangedTask(UsageError):
    """A run was taken up again, and one of its tasks was submitted as another one."""


class NotAnAgent(UsageError):
    """Something was submitted that cannot be called as an agent, or not with these arguments."""


class PlanError(UsageError):
    """A plan or project file cannot be used; `problems` has all that is wrong, in their order.

    Each problem is a record: `file`, `line`, `column` (from 1), `field` (as `tasks.api.writes`),
    `text`, and the `suggestion` of what may have been meant.
    """

    def __init__(self, problems: Sequence[object]) -> None:
        self.problems: tuple[Any, ...] = tuple(problems)
        super().__init__(problems)

    def __str__(self) -> str:
        lines = [str(each) for each in self.problems[:_SHOWN_OF_A_FILE]]
        if len(self.problems) > _SHOWN_OF_A_FILE:
            lines.append(f"and {len(self.problems) - _SHOWN_OF_A_FILE} more problems")
        return "\n".join(lines)


class WouldBlockTheLoop(UsageError):
    """A blocking wait on the event loop's own thread, where it could never end."""


class TaskFailed(InterlockError):
    """A task did not succeed; `outcome` says how it ended."""

    def __init__(self, outcome: EndedTask) -> None:
        self.outcome: Any = outcome
        super().__init__(f"task {outcome.task_id!r} {_ended_as(outcome)}")


class RunFailed(InterlockError):
    """Some tasks of a run did not succeed; `failures` has their outcomes."""

    def __init__(self, failures: Sequence[EndedTask], total: int) -> None:
        self.failures: tuple[Any, ...] = tuple(failures)
        lines = [f"{len(self.failures)} of {total} tasks did not succeed:"]
        lines += [f"  {each.task_id}: {_ended_as(each)}" for each in self.failures[:_SHOWN]]
        if len(self.failures) > _SHOWN:
            lines.append(f"  and {len(self.failures) - _SHOWN} more")
        super().__init__("\n".join(lines))


class FatalError(InterlockError):
    """An agent ran out of memory or stack; raised when its siblings have ended.

    `outcomes` has the outcome of every task of the run.
    """

    def __init__(self, task_id: str, error: str, outcomes: Sequence[EndedTask]) -> None:
        self.outcomes: tuple[Any, ...] = tuple(outcomes)
        super().__init__(f"task {task_id!r} ended with {error}; all other tasks were let finish")


class AttemptsStillAlive(InterlockError):
    """Attempts did not stop within the grace; what they hold stays held in this process.

    `attempts` names their tasks.
    """

    def __init__(self, attempts: Sequence[str], grace: float) -> None:
        self.attempts = tuple(attempts)
        names = ", ".join(repr(each) for each in self.attempts[:_SHOWN])
        if len(self.attempts) > _SHOWN:
            names += f" and {len(self.attempts) - _SHOWN} more"
        super().__init__(
            f"still running {grace:g} s after being told to stop: {names}. Nobody in this process "
            "gets what they claim before they end. Let such agents look at interlock.cancelled(), "
            "or run them with interlock.process(), which can be killed."
        )


class AgentFailed(InterlockError):
    """For agents to raise: the attempt failed, and whether (and when) another one makes sense.

    With `rate`, the name of a limit of the run, nobody takes from that rate within `retry_after`.
    """

    def __init__(
        self, message: str, *, retryable: bool = True, retry_after: float = 0.0, rate: str = ""
    ) -> None:
        self.retryable = retryable
        self.retry_after = retry_after
        self.rate = rate
        super().__init__(message)


class AttemptOver(InterlockError):
    """An agent used its context after its attempt was cancelled, timed out or ended."""


class WouldDeadlock(InterlockError):
    """A wait in mid-flight was denied because it could never have ended."""


class NotStorable(InterlockError):
    """A value cannot be kept in the journal. `path` says where in it, `kind` names the type."""

    def __init__(self, path: str, kind: str, problem: str = "") -> None:
        self.path = path
        self.kind = kind
        super().__init__(
            f"{path} is {problem or f'a {kind}'}, which the journal cannot keep; return plain data,"
            " a dataclass or a Pydantic model, or write it to a file and return its path"
        )


class AlreadyRunning(InterlockError):
    """Another coordinator has this journal: process `pid` on `host`, since `since` (ISO 8601)."""

    def __init__(self, journal: str, pid: int, host: str, since: str) -> None:
        self.journal = journal
        self.pid = pid
        self.host = host
        self.since = since
        who = f"process {pid} on {host} since {since}" if pid else "somebody who did not say who"
        super().__init__(
            f"{journal} is in use by {who}; let that one end, or use another journal. "
            "Reading it is possible meanwhile."
        )


class EarlierAgentsAlive(InterlockError):
    """Agents of a coordinator that is gone are still running, so nothing may start."""

    def __init__(self, path: str, pids: Sequence[int]) -> None:
        self.path = path
        self.pids = tuple(pids)
        which = f" (processes {', '.join(map(str, self.pids[:_SHOWN]))})" if pids else ""
        super().__init__(
            f"agents of an earlier coordinator of {path} are still running{which}, and could not "
            f"be ended; see who has {path}.agents.lock open, end it, and start again"
        )


class UnreadableJournal(InterlockError):
    """A journal cannot be used as it is. Nothing in the file was changed."""

    def __init__(self, journal: str, problem: str, advice: str) -> None:
        self.journal = journal
        self.problem = problem
        super().__init__(f"{journal}: {problem}. {advice}")


class AgentError(InterlockError):
    """An agent could not be made, or failed; `agent_id` says which."""

    def __init__(self, message: str, agent_id: str = "") -> None:
        self.agent_id = agent_id
        super().__init__(message)


class AgentException(AgentError):
    """The same, by the name that callers of the coordinator know it by."""


class EngineError(InterlockError):
    """Whatever runs the agents of a pool or an executor cannot do so."""


class OrchestratorException(InterlockError):
    """Subtasks that may not be run as they were given, such as tests beside other work."""


class ParallelExecutionError(InterlockError):
    """A group ended with a fatal error, after all its agents had ended; `outcomes` has them."""

    def __init__(self, message: str, outcomes: Sequence[Any] = ()) -> None:
        self.outcomes = tuple(outcomes)
        super().__init__(message)


class ResourceConflictError(InterlockError):
    """A resource is claimed twice, or held by somebody else, where nobody is to wait for it."""


class AgentAlreadyRunningError(InterlockError):
    """An agent of which there is to be one runs: in process `pid` on `host`, since `since`."""

    def __init__(self, agent: str, pid: int, host: str, since: str) -> None:
        self.agent = agent
        self.pid = pid
        self.host = host
        self.since = since
        super().__init__(
            f"agent {agent!r} runs already: in process {pid} on {host}, since {since}; "
            "let that one end first"
        )


class KernelError(InterlockError):
    """A broken promise inside Interlock, or a caller that breaks the kernel's contract."""


class IllegalTransition(KernelError):
    """A task was to change state in a way the transition table does not allow."""

    def __init__(self, task_id: str, old: str, new: str, story: Sequence[str]) -> None:
        self.task_id = task_id
        self.story = tuple(story)
        lines = "".join(f"\n  {line}" for line in self.story)
        super().__init__(f"task {task_id!r} may not go from {old} to {new}; its story:{lines}")


class ClockWentBack(KernelError):
    """`handle()` was given an earlier time than before."""
