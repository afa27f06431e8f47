"""Run many agents at once on one workspace; work that conflicts never overlaps.

Everything public is here. A name is imported when it is first used, so `import interlock` is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.errors import (
        AgentAlreadyRunningError,
        AgentError,
        AgentException,
        AgentFailed,
        AlreadyRunning,
        AttemptOver,
        AttemptsStillAlive,
        BlankId,
        ChangedTask,
        ChildWouldDeadlock,
        ClaimOutsideWorkspace,
        ClockWentBack,
        DependencyCycle,
        DuplicateId,
        EarlierAgentsAlive,
        EngineError,
        FatalError,
        IllegalTransition,
        ImpossibleClaim,
        InterlockError,
        InvalidOption,
        InvalidOwnership,
        InvalidPattern,
        KernelError,
        NotAnAgent,
        NotRunning,
        NotStorable,
        OrchestratorException,
        ParallelExecutionError,
        ProtectedPath,
        ResourceConflictError,
        RunFailed,
        ShuttingDown,
        TaskFailed,
        UnknownDependency,
        UnknownResource,
        UnknownTask,
        UnreadableJournal,
        UsageError,
        WouldBlockTheLoop,
        WouldDeadlock,
    )
    from interlock.execution.process import process
    from interlock.model.claim import Claim, read, uses, write
    from interlock.model.command import Command, command
    from interlock.model.conflict import conflicts
    from interlock.model.event import Event, Kind
    from interlock.model.limits import Breaker, Quota, Rate, Retry
    from interlock.model.load import Auto, Gate, Load
    from interlock.model.outcome import ErrorRecord, Outcome, State
    from interlock.model.progress import Progress
    from interlock.model.result import RunResult
    from interlock.model.task import Task
    from interlock.model.usage import Usage
    from interlock.model.why import Explanation
    from interlock.patterns.executor import ParallelExecutor
    from interlock.patterns.executor_events import (
        PARALLEL_AGENT_CANCELLED,
        PARALLEL_AGENT_COMPLETE,
        PARALLEL_AGENT_ERROR,
        PARALLEL_AGENT_START,
        PARALLEL_GROUP_COMPLETE,
        PARALLEL_GROUP_START,
        PARALLEL_LOCK_ACQUIRED,
        PARALLEL_LOCK_CONFLICT,
        PARALLEL_LOCK_RELEASE_ERROR,
        PARALLEL_LOCK_RELEASED,
        PARALLEL_PROGRESS_UPDATE,
        PARALLEL_VALIDATION_ERROR,
    )
    from interlock.patterns.executor_locks import InMemoryResourceLock, ResourceLock
    from interlock.patterns.executor_models import (
        AgentAssignment,
        AgentOutcome,
        ParallelExecutionGroup,
        ParallelExecutionResult,
        ParallelProgress,
        ProgressCallback,
    )
    from interlock.patterns.executor_shutdown import ShutdownManager, ShutdownResult
    from interlock.patterns.queue import TaskQueue
    from interlock.patterns.queue_delegate import delegate_tasks_parallel
    from interlock.patterns.queue_ownership import FileOwnership
    from interlock.patterns.queue_registry import AgentRegistry
    from interlock.patterns.queue_task import AgentTask
    from interlock.runtime.context import TaskContext, cancelled, current
    from interlock.runtime.handle import Handle
    from interlock.runtime.run import run
    from interlock.runtime.runtime import Runtime
    from interlock.runtime.waits import Question

    __version__: str

__all__ = [
    "PARALLEL_AGENT_CANCELLED",
    "PARALLEL_AGENT_COMPLETE",
    "PARALLEL_AGENT_ERROR",
    "PARALLEL_AGENT_START",
    "PARALLEL_GROUP_COMPLETE",
    "PARALLEL_GROUP_START",
    "PARALLEL_LOCK_ACQUIRED",
    "PARALLEL_LOCK_CONFLICT",
    "PARALLEL_LOCK_RELEASED",
    "PARALLEL_LOCK_RELEASE_ERROR",
    "PARALLEL_PROGRESS_UPDATE",
    "PARALLEL_VALIDATION_ERROR",
    "AgentAlreadyRunningError",
    "AgentAssignment",
    "AgentError",
    "AgentException",
    "AgentFailed",
    "AgentOutcome",
    "AgentRegistry",
    "AgentTask",
    "AlreadyRunning",
    "AttemptOver",
    "AttemptsStillAlive",
    "Auto",
    "BlankId",
    "Breaker",
    "ChangedTask",
    "ChildWouldDeadlock",
    "Claim",
    "ClaimOutsideWorkspace",
    "ClockWentBack",
    "Command",
    "DependencyCycle",
    "DuplicateId",
    "EarlierAgentsAlive",
    "EngineError",
    "ErrorRecord",
    "Event",
    "Explanation",
    "FatalError",
    "FileOwnership",
    "Gate",
    "Handle",
    "IllegalTransition",
    "ImpossibleClaim",
    "InMemoryResourceLock",
    "InterlockError",
    "InvalidOption",
    "InvalidOwnership",
    "InvalidPattern",
    "KernelError",
    "Kind",
    "Load",
    "NotAnAgent",
    "NotRunning",
    "NotStorable",
    "OrchestratorException",
    "Outcome",
    "ParallelExecutionError",
    "ParallelExecutionGroup",
    "ParallelExecutionResult",
    "ParallelExecutor",
    "ParallelProgress",
    "Progress",
    "ProgressCallback",
    "ProtectedPath",
    "Question",
    "Quota",
    "Rate",
    "ResourceConflictError",
    "ResourceLock",
    "Retry",
    "RunFailed",
    "RunResult",
    "Runtime",
    "ShutdownManager",
    "ShutdownResult",
    "ShuttingDown",
    "State",
    "Task",
    "TaskContext",
    "TaskFailed",
    "TaskQueue",
    "UnknownDependency",
    "UnknownResource",
    "UnknownTask",
    "UnreadableJournal",
    "Usage",
    "UsageError",
    "WouldBlockTheLoop",
    "WouldDeadlock",
    "__version__",
    "cancelled",
    "command",
    "conflicts",
    "current",
    "delegate_tasks_parallel",
    "process",
    "read",
    "run",
    "uses",
    "write",
]

# Where a public name lives, unless it is an error.
_HOMES = {
    "PARALLEL_AGENT_CANCELLED": "interlock.patterns.executor_events",
    "PARALLEL_AGENT_COMPLETE": "interlock.patterns.executor_events",
    "PARALLEL_AGENT_ERROR": "interlock.patterns.executor_events",
    "PARALLEL_AGENT_START": "interlock.patterns.executor_events",
    "PARALLEL_GROUP_COMPLETE": "interlock.patterns.executor_events",
    "PARALLEL_GROUP_START": "interlock.patterns.executor_events",
    "PARALLEL_LOCK_ACQUIRED": "interlock.patterns.executor_events",
    "PARALLEL_LOCK_CONFLICT": "interlock.patterns.executor_events",
    "PARALLEL_LOCK_RELEASED": "interlock.patterns.executor_events",
    "PARALLEL_LOCK_RELEASE_ERROR": "interlock.patterns.executor_events",
    "PARALLEL_PROGRESS_UPDATE": "interlock.patterns.executor_events",
    "PARALLEL_VALIDATION_ERROR": "interlock.patterns.executor_events",
    "AgentAssignment": "interlock.patterns.executor_models",
    "AgentOutcome": "interlock.patterns.executor_models",
    "AgentRegistry": "interlock.patterns.queue_registry",
    "AgentTask": "interlock.patterns.queue_task",
    "Auto": "interlock.model.load",
    "Breaker": "interlock.model.limits",
    "Claim": "interlock.model.claim",
    "Command": "interlock.model.command",
    "ErrorRecord": "interlock.model.outcome",
    "Event": "interlock.model.event",
    "Explanation": "interlock.model.why",
    "FileOwnership": "interlock.patterns.queue_ownership",
    "Gate": "interlock.model.load",
    "Handle": "interlock.runtime.handle",
    "InMemoryResourceLock": "interlock.patterns.executor_locks",
    "Kind": "interlock.model.event",
    "Load": "interlock.model.load",
    "Outcome": "interlock.model.outcome",
    "ParallelExecutionGroup": "interlock.patterns.executor_models",
    "ParallelExecutionResult": "interlock.patterns.executor_models",
    "ParallelExecutor": "interlock.patterns.executor",
    "ParallelProgress": "interlock.patterns.executor_models",
    "Progress": "interlock.model.progress",
    "ProgressCallback": "interlock.patterns.executor_models",
    "Question": "interlock.runtime.waits",
    "Quota": "interlock.model.limits",
    "Rate": "interlock.model.limits",
    "ResourceLock": "interlock.patterns.executor_locks",
    "Retry": "interlock.model.limits",
    "RunResult": "interlock.model.result",
    "Runtime": "interlock.runtime.runtime",
    "ShutdownManager": "interlock.patterns.executor_shutdown",
    "ShutdownResult": "interlock.patterns.executor_shutdown",
    "State": "interlock.model.outcome",
    "Task": "interlock.model.task",
    "TaskContext": "interlock.runtime.context",
    "TaskQueue": "interlock.patterns.queue",
    "Usage": "interlock.model.usage",
    "cancelled": "interlock.runtime.context",
    "command": "interlock.model.command",
    "conflicts": "interlock.model.conflict",
    "current": "interlock.runtime.context",
    "delegate_tasks_parallel": "interlock.patterns.queue_delegate",
    "process": "interlock.execution.process",
    "read": "interlock.model.claim",
    "run": "interlock.runtime.run",
    "uses": "interlock.model.claim",
    "write": "interlock.model.claim",
}

# Type checkers must not see this: they would take any misspelt name for a public one.
if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'interlock' has no attribute {name!r}")
        if name == "__version__":
            value = import_module("importlib.metadata").version("interlock")
        else:
            value = getattr(import_module(_HOMES.get(name, "interlock.errors")), name)
        globals()[name] = value  # from now on it is found without coming here
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
