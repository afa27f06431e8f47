"""Run many agents at once on one workspace; tasks that conflict never overlap.

    async with interlock.Runtime(max_parallel=4) as rt:
        api = rt.submit(write_api, writes="src/api/")
        docs = rt.submit(write_docs, reads="src/api/", writes="docs/")  # waits for write_api
        tests = rt.submit(run_tests, after=[api, docs], uses="database!")

A task declares its *claims*: what it reads, writes and uses. It starts as soon as its claims, its
dependencies and a slot are all available. The public names:

- run tasks: `Runtime`, `run`, `Task`, `Handle`, `Outcome`, `RunResult`, `Event`
- declare claims: `read`, `write`, `uses`, `conflicts`
- limit and retry: `Retry`, `Rate`, `Quota`, `Breaker`, `Gate`, `Auto`
- agents: `command` (programs), `process` (own process), `current`, `cancelled`, `TaskContext`
- the seven systems: `AgentPool`, `Roundtable`, `CronScheduler`, `ParallelExecutor`,
  `TaskScheduler`, `TaskQueue`, `ParallelAgentCoordinator`
- errors: see `interlock.errors` for the tree

A name is imported when it is first used, so `import interlock` is cheap.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # Type checkers know it; importing `typing` would double the import time.
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
        PlanError,
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
    from interlock.execution.processes.process_agent import process
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
    from interlock.model.template import Template
    from interlock.model.usage import Usage
    from interlock.model.why import Explanation
    from interlock.patterns.coordinator.coordinator import ParallelAgentCoordinator
    from interlock.patterns.coordinator.orchestrator import Orchestrator
    from interlock.patterns.coordinator.subtask import AgentPlugin, StateManager, SubTask
    from interlock.patterns.cron.cron import CronScheduler
    from interlock.patterns.executor.events import (
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
    from interlock.patterns.executor.executor import ParallelExecutor
    from interlock.patterns.executor.models import (
        AgentAssignment,
        AgentOutcome,
        ParallelExecutionGroup,
        ParallelExecutionResult,
        ParallelProgress,
        ProgressCallback,
    )
    from interlock.patterns.executor.resource_locks import InMemoryResourceLock, ResourceLock
    from interlock.patterns.executor.shutdown_manager import ShutdownManager, ShutdownResult
    from interlock.patterns.pool.chat import ChatEngine, SessionManager
    from interlock.patterns.pool.engine_config import EngineConfig
    from interlock.patterns.pool.pool import AgentPool
    from interlock.patterns.queue.agent_registry import AgentRegistry
    from interlock.patterns.queue.agent_task import AgentTask
    from interlock.patterns.queue.delegate import delegate_tasks_parallel
    from interlock.patterns.queue.file_ownership import FileOwnership
    from interlock.patterns.queue.queue import TaskQueue
    from interlock.patterns.roundtable.roundtable import Roundtable
    from interlock.patterns.scheduler.llm_limiter import LLMLimiter
    from interlock.patterns.scheduler.rolling_summary import RollingSummary
    from interlock.patterns.scheduler.scheduler import TaskScheduler
    from interlock.patterns.scheduler.shared_store import SharedStore
    from interlock.runtime.context import TaskContext, cancelled, current
    from interlock.runtime.handle import Handle
    from interlock.runtime.requests import Question
    from interlock.runtime.run import run
    from interlock.runtime.runtime import Runtime
    from interlock.runtime.session import Message, Session

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
    "AgentPlugin",
    "AgentPool",
    "AgentRegistry",
    "AgentTask",
    "AlreadyRunning",
    "AttemptOver",
    "AttemptsStillAlive",
    "Auto",
    "BlankId",
    "Breaker",
    "ChangedTask",
    "ChatEngine",
    "ChildWouldDeadlock",
    "Claim",
    "ClaimOutsideWorkspace",
    "ClockWentBack",
    "Command",
    "CronScheduler",
    "DependencyCycle",
    "DuplicateId",
    "EarlierAgentsAlive",
    "EngineConfig",
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
    "LLMLimiter",
    "Load",
    "Message",
    "NotAnAgent",
    "NotRunning",
    "NotStorable",
    "Orchestrator",
    "OrchestratorException",
    "Outcome",
    "ParallelAgentCoordinator",
    "ParallelExecutionError",
    "ParallelExecutionGroup",
    "ParallelExecutionResult",
    "ParallelExecutor",
    "ParallelProgress",
    "PlanError",
    "Progress",
    "ProgressCallback",
    "ProtectedPath",
    "Question",
    "Quota",
    "Rate",
    "ResourceConflictError",
    "ResourceLock",
    "Retry",
    "RollingSummary",
    "Roundtable",
    "RunFailed",
    "RunResult",
    "Runtime",
    "Session",
    "SessionManager",
    "SharedStore",
    "ShutdownManager",
    "ShutdownResult",
    "ShuttingDown",
    "State",
    "StateManager",
    "SubTask",
    "Task",
    "TaskContext",
    "TaskFailed",
    "TaskQueue",
    "TaskScheduler",
    "Template",
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
    "PARALLEL_AGENT_CANCELLED": "interlock.patterns.executor.events",
    "PARALLEL_AGENT_COMPLETE": "interlock.patterns.executor.events",
    "PARALLEL_AGENT_ERROR": "interlock.patterns.executor.events",
    "PARALLEL_AGENT_START": "interlock.patterns.executor.events",
    "PARALLEL_GROUP_COMPLETE": "interlock.patterns.executor.events",
    "PARALLEL_GROUP_START": "interlock.patterns.executor.events",
    "PARALLEL_LOCK_ACQUIRED": "interlock.patterns.executor.events",
    "PARALLEL_LOCK_CONFLICT": "interlock.patterns.executor.events",
    "PARALLEL_LOCK_RELEASED": "interlock.patterns.executor.events",
    "PARALLEL_LOCK_RELEASE_ERROR": "interlock.patterns.executor.events",
    "PARALLEL_PROGRESS_UPDATE": "interlock.patterns.executor.events",
    "PARALLEL_VALIDATION_ERROR": "interlock.patterns.executor.events",
    "__version__": "interlock.version",
    "AgentAssignment": "interlock.patterns.executor.models",
    "AgentOutcome": "interlock.patterns.executor.models",
    "AgentPlugin": "interlock.patterns.coordinator.subtask",
    "AgentPool": "interlock.patterns.pool.pool",
    "AgentRegistry": "interlock.patterns.queue.agent_registry",
    "AgentTask": "interlock.patterns.queue.agent_task",
    "Auto": "interlock.model.load",
    "Breaker": "interlock.model.limits",
    "ChatEngine": "interlock.patterns.pool.chat",
    "Claim": "interlock.model.claim",
    "Command": "interlock.model.command",
    "CronScheduler": "interlock.patterns.cron.cron",
    "EngineConfig": "interlock.patterns.pool.engine_config",
    "ErrorRecord": "interlock.model.outcome",
    "Event": "interlock.model.event",
    "Explanation": "interlock.model.why",
    "FileOwnership": "interlock.patterns.queue.file_ownership",
    "Gate": "interlock.model.load",
    "Handle": "interlock.runtime.handle",
    "InMemoryResourceLock": "interlock.patterns.executor.resource_locks",
    "Kind": "interlock.model.event",
    "LLMLimiter": "interlock.patterns.scheduler.llm_limiter",
    "Load": "interlock.model.load",
    "Message": "interlock.runtime.session",
    "Orchestrator": "interlock.patterns.coordinator.orchestrator",
    "Outcome": "interlock.model.outcome",
    "ParallelAgentCoordinator": "interlock.patterns.coordinator.coordinator",
    "ParallelExecutionGroup": "interlock.patterns.executor.models",
    "ParallelExecutionResult": "interlock.patterns.executor.models",
    "ParallelExecutor": "interlock.patterns.executor.executor",
    "ParallelProgress": "interlock.patterns.executor.models",
    "Progress": "interlock.model.progress",
    "ProgressCallback": "interlock.patterns.executor.models",
    "Question": "interlock.runtime.requests",
    "Quota": "interlock.model.limits",
    "Rate": "interlock.model.limits",
    "ResourceLock": "interlock.patterns.executor.resource_locks",
    "Retry": "interlock.model.limits",
    "RollingSummary": "interlock.patterns.scheduler.rolling_summary",
    "Roundtable": "interlock.patterns.roundtable.roundtable",
    "RunResult": "interlock.model.result",
    "Runtime": "interlock.runtime.runtime",
    "Session": "interlock.runtime.session",
    "SessionManager": "interlock.patterns.pool.chat",
    "SharedStore": "interlock.patterns.scheduler.shared_store",
    "ShutdownManager": "interlock.patterns.executor.shutdown_manager",
    "ShutdownResult": "interlock.patterns.executor.shutdown_manager",
    "State": "interlock.model.outcome",
    "StateManager": "interlock.patterns.coordinator.subtask",
    "SubTask": "interlock.patterns.coordinator.subtask",
    "Task": "interlock.model.task",
    "TaskContext": "interlock.runtime.context",
    "TaskQueue": "interlock.patterns.queue.queue",
    "TaskScheduler": "interlock.patterns.scheduler.scheduler",
    "Template": "interlock.model.template",
    "Usage": "interlock.model.usage",
    "cancelled": "interlock.runtime.context",
    "command": "interlock.model.command",
    "conflicts": "interlock.model.conflict",
    "current": "interlock.runtime.context",
    "delegate_tasks_parallel": "interlock.patterns.queue.delegate",
    "process": "interlock.execution.processes.process_agent",
    "read": "interlock.model.claim",
    "run": "interlock.runtime.run",
    "uses": "interlock.model.claim",
    "write": "interlock.model.claim",
}

# Hidden from type checkers: they would take any misspelt name for a public one.
if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'interlock' has no attribute {name!r}")
        value = getattr(import_module(_HOMES.get(name, "interlock.errors")), name)
        globals()[name] = value  # Found without this function from now on.
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
