"""Every error that Interlock raises, as a tree.

InterlockError
├── UsageError                 the request was impossible; nothing was changed
│   ├── BlankId
│   ├── DuplicateId
│   ├── UnknownTask
│   ├── UnknownDependency
│   ├── DependencyCycle        tasks that wait for each other, or a task for itself; names them
│   ├── InvalidOption          a negative duration, zero attempts, a capacity below zero, ...
│   ├── InvalidPattern         with the position
│   ├── ClaimOutsideWorkspace
│   ├── ProtectedPath
│   ├── UnknownResource        an amount of something that has no capacity
│   ├── ImpossibleClaim        more than there will ever be: the task could never start
│   ├── ChildWouldDeadlock     a child that could only start after the ancestor waiting for it
│   ├── InvalidOwnership
│   ├── ShuttingDown           a submission after drain or shutdown
│   ├── NotRunning             a Runtime that was not entered yet, or was left
│   ├── ChangedTask            a task of a resumed run that differs from the one in the journal
│   ├── NotAnAgent             not callable, or not with the arguments given
│   ├── PlanError              a plan or project file; `problems` lists all that is wrong with it
│   └── WouldBlockTheLoop      a blocking wait on the thread of the event loop
├── TaskFailed                 from `await handle.result()`: the task did not succeed
├── RunFailed                  from `raise_for_failures()`: carries the outcomes of the failures
├── FatalError                 an agent ran out of memory or stack; raised when all have ended
├── AttemptsStillAlive         attempts that did not stop; their claims stay held
├── AgentFailed                raised by agents: whether and when to try again
├── AttemptOver                an agent used its context after its attempt was over
├── WouldDeadlock              a request in mid-flight that could never be answered
├── NotStorable                a value that JSON cannot represent; names the part
├── AlreadyRunning             another coordinator has the journal open; names it
├── EarlierAgentsAlive         agents of a dead coordinator are still running; names them
├── UnreadableJournal          a journal that is damaged, foreign, too new or inaccessible
├── AgentError                 an agent could not be created, or failed; names it
│   └── AgentException         the same, under the name that callers of the coordinator expect
├── EngineError                the engine of a pool or an executor cannot run agents
│   ├── ParallelExecutionError a group ended with a fatal error; carries all outcomes
│   └── ResourceConflictError  a resource that is held, where waiting was ruled out
├── OrchestratorException      subtasks that must not be run as given
├── AgentAlreadyRunningError   a singleton agent that is already running; says where, since when
└── KernelError                a bug in Interlock, or a caller that broke the kernel's contract
    ├── IllegalTransition      carries the history of the task
    └── ClockWentBack
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

_SHOWN = 10
"""How many names a message lists."""
_SHOWN_OF_A_FILE = 100
"""How many problems of a file a message lists."""


class EndedTask(Protocol):
    """What the errors need to know of an outcome. The record itself is in `model`."""

    @property
    def task_id(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def reason(self) -> str: ...


def _ended_as(outcome: EndedTask) -> str:
    return f"{outcome.status}: {outcome.reason}" if outcome.reason else str(outcome.status)


class InterlockError(Exception):
    """The root: `except InterlockError` catches everything that Interlock itself raises."""


class UsageError(InterlockError, ValueError):
    """Something impossible was requested. Nothing has been changed."""


class BlankId(UsageError):
    """The id of a task or group is empty or consists of white space."""


class DuplicateId(UsageError):
    """Two tasks of one run have the same id."""


class UnknownTask(UsageError):
    """No task of this run has that id."""


class UnknownDependency(UsageError):
    """A task comes after a task that does not exist."""


class DependencyCycle(UsageError):
    """Tasks wait for each other. `cycle` names them, with the first id repeated at the end."""

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
    """An option has an invalid value."""


class InvalidPattern(UsageError):
    """A path pattern is malformed; `position` counts characters from 0."""

    def __init__(self, pattern: str, position: int, problem: str, task_id: str = "") -> None:
        self.pattern = pattern
        self.position = position
        self.problem = problem
        whose = f"task {task_id!r}: " if task_id else ""
        super().__init__(f"{whose}pattern {pattern!r}, position {position}: {problem}")

    def in_task(self, task_id: str) -> InvalidPattern:
        """Return the same error with the id of the task that claims it."""
        return InvalidPattern(self.pattern, self.position, self.problem, task_id)


class ClaimOutsideWorkspace(UsageError):
    """A claimed path leaves the workspace."""


class ProtectedPath(UsageError):
    """A task claims a protected path for writing."""


class UnknownResource(UsageError):
    """An amount is claimed of a resource that has no capacity."""


class ImpossibleClaim(UsageError):
    """A claim exceeds the capacity: the task could never start."""


class ChildWouldDeadlock(UsageError):
    """A child could only start after the ancestor that waits for it has ended."""


class InvalidOwnership(UsageError):
    """Ownership rules contradict each other, or a path has no owner."""


class ShuttingDown(UsageError):
    """Tasks were submitted after drain or shutdown was requested."""


class NotRunning(UsageError):
    """A Runtime was used before `async with` was entered, or after it was left."""


class ChangedTask(UsageError):
    """A task of a resumed run was submitted with another agent, prompt, arguments or claims."""


class NotAnAgent(UsageError):
    """An agent cannot be called, or not with the arguments given."""


class PlanError(UsageError):
    """A plan or project file is invalid; `problems` lists all that is wrong, in order.

    Each problem is a record: `file`, `line`, `column` (from 1), `field` (such as
    `tasks.api.writes`), `text`, and `suggestion`: what was probably meant.
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
    """A blocking wait on the thread of the event loop, where it could never end."""


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
    """An agent ran out of memory or stack. Raised when all other tasks have ended.

    `outcomes` has the outcome of every task of the run.
    """

    def __init__(self, task_id: str, error: str, outcomes: Sequence[EndedTask]) -> None:
        self.outcomes: tuple[Any, ...] = tuple(outcomes)
        super().__init__(
            f"task {task_id!r} ended with {error}; all other tasks were allowed to finish"
        )


class AttemptsStillAlive(InterlockError):
    """Attempts did not stop within the grace period. Their claims stay held in this process.

    `attempts` names their tasks.
    """

    def __init__(self, attempts: Sequence[str], grace: float) -> None:
        self.attempts = tuple(attempts)
        names = ", ".join(repr(each) for each in self.attempts[:_SHOWN])
        if len(self.attempts) > _SHOWN:
            names += f" and {len(self.attempts) - _SHOWN} more"
        super().__init__(
            f"still running {grace:g} s after being told to stop: {names}. Their claims stay held "
            "in this process until they end. Let such agents check interlock.cancelled(), or run "
            "them with interlock.process(), which can be killed."
        )


class AgentFailed(InterlockError):
    """Raised by agents: the attempt failed. Says whether, and when, another one makes sense.

    With `rate`, the name of a limit of the run, nothing is taken from that rate for `retry_after`
    seconds.
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
    """A request in mid-flight was denied because it could never have been answered."""


class NotStorable(InterlockError):
    """A value cannot be stored in the journal. `path` says which part, `kind` names its type."""

    def __init__(self, path: str, kind: str, problem: str = "") -> None:
        self.path = path
        self.kind = kind
        super().__init__(
            f"{path} is {problem or f'a {kind}'}, which the journal cannot store; return plain "
            "data, a dataclass or a Pydantic model, or write it to a file and return its path"
        )


class AlreadyRunning(InterlockError):
    """Another coordinator has the journal open: process `pid` on `host`, since `since`."""

    def __init__(self, journal: str, pid: int, host: str, since: str) -> None:
        self.journal = journal
        self.pid = pid
        self.host = host
        self.since = since
        holder = f"process {pid} on {host} since {since}" if pid else "an unknown process"
        super().__init__(
            f"{journal} is in use by {holder}; wait until that ends, or use another journal. "
            "It can be read meanwhile."
        )


class EarlierAgentsAlive(InterlockError):
    """Agents of a coordinator that has died are still running, so nothing may start."""

    def __init__(self, path: str, pids: Sequence[int]) -> None:
        self.path = path
        self.pids = tuple(pids)
        which = f" (processes {', '.join(map(str, self.pids[:_SHOWN]))})" if pids else ""
        super().__init__(
            f"agents of an earlier coordinator of {path} are still running{which} and could not be "
            f"stopped; find the process that has {path}.agents.lock open, end it, and start again"
        )


class UnreadableJournal(InterlockError):
    """A journal cannot be used as it is. The file has not been changed."""

    def __init__(self, journal: str, problem: str, advice: str) -> None:
        self.journal = journal
        self.problem = problem
        super().__init__(f"{journal}: {problem}. {advice}")


class AgentError(InterlockError):
    """An agent could not be created, or failed; `agent_id` names it."""

    def __init__(self, message: str, agent_id: str = "") -> None:
        self.agent_id = agent_id
        super().__init__(message)


class AgentException(AgentError):
    """The same, under the name that callers of the coordinator expect."""


class EngineError(InterlockError):
    """The engine of a pool or an executor cannot run agents."""


class OrchestratorException(InterlockError):
    """Subtasks must not be run as given, such as tests beside other work."""


class ParallelExecutionError(EngineError):
    """A group ended with a fatal error, after all its agents had ended. `outcomes` has them all."""

    def __init__(self, message: str, outcomes: Sequence[Any] = ()) -> None:
        self.outcomes = tuple(outcomes)
        super().__init__(message)


class ResourceConflictError(EngineError):
    """A resource is claimed twice, or is held and the caller ruled out waiting."""


class AgentAlreadyRunningError(InterlockError):
    """A singleton agent is already running: in process `pid` on `host`, since `since`."""

    def __init__(self, agent: str, pid: int, host: str, since: str) -> None:
        self.agent = agent
        self.pid = pid
        self.host = host
        self.since = since
        super().__init__(
            f"agent {agent!r} is already running in process {pid} on {host}, since {since}; "
            "wait until that ends"
        )


class KernelError(InterlockError):
    """A bug in Interlock, or a caller that breaks the contract of the kernel."""


class IllegalTransition(KernelError):
    """A task was about to change state in a way that the transition table does not allow."""

    def __init__(self, task_id: str, old: str, new: str, story: Sequence[str]) -> None:
        self.task_id = task_id
        self.story = tuple(story)
        lines = "".join(f"\n  {line}" for line in self.story)
        super().__init__(f"task {task_id!r} must not go from {old} to {new}; its history:{lines}")


class ClockWentBack(KernelError):
    """`handle()` was given an earlier time than before."""
