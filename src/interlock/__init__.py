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
    from interlock.runtime.context import TaskContext, cancelled, current
    from interlock.runtime.handle import Handle
    from interlock.runtime.run import run
    from interlock.runtime.runtime import Runtime
    from interlock.runtime.waits import Question

    __version__: str

__all__ = [
    "AgentAlreadyRunningError",
    "AgentError",
    "AgentException",
    "AgentFailed",
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
    "DependencyCycle",
    "DuplicateId",
    "EngineError",
    "ErrorRecord",
    "Event",
    "Explanation",
    "FatalError",
    "Gate",
    "Handle",
    "IllegalTransition",
    "ImpossibleClaim",
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
    "Progress",
    "ProtectedPath",
    "Question",
    "Quota",
    "Rate",
    "ResourceConflictError",
    "Retry",
    "RunFailed",
    "RunResult",
    "Runtime",
    "ShuttingDown",
    "State",
    "Task",
    "TaskContext",
    "TaskFailed",
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
    "conflicts",
    "current",
    "process",
    "read",
    "run",
    "uses",
    "write",
]

# Where a public name lives, unless it is an error.
_HOMES = {
    "Auto": "interlock.model.load",
    "Breaker": "interlock.model.limits",
    "Claim": "interlock.model.claim",
    "ErrorRecord": "interlock.model.outcome",
    "Event": "interlock.model.event",
    "Explanation": "interlock.model.why",
    "Gate": "interlock.model.load",
    "Handle": "interlock.runtime.handle",
    "Kind": "interlock.model.event",
    "Load": "interlock.model.load",
    "Outcome": "interlock.model.outcome",
    "Progress": "interlock.model.progress",
    "Question": "interlock.runtime.waits",
    "Quota": "interlock.model.limits",
    "Rate": "interlock.model.limits",
    "Retry": "interlock.model.limits",
    "RunResult": "interlock.model.result",
    "Runtime": "interlock.runtime.runtime",
    "State": "interlock.model.outcome",
    "Task": "interlock.model.task",
    "TaskContext": "interlock.runtime.context",
    "Usage": "interlock.model.usage",
    "cancelled": "interlock.runtime.context",
    "conflicts": "interlock.model.conflict",
    "current": "interlock.runtime.context",
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
