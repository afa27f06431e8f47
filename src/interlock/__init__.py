"""Run many agents at once on one workspace; work that conflicts never overlaps.

Everything public is here. A name is imported when it is first used, so `import interlock` is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.errors import (
        AgentFailed,
        AttemptOver,
        AttemptsStillAlive,
        BlankId,
        ChildWouldDeadlock,
        ClaimOutsideWorkspace,
        ClockWentBack,
        DependencyCycle,
        DuplicateId,
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
        ProtectedPath,
        RunFailed,
        ShuttingDown,
        TaskFailed,
        UnknownDependency,
        UnknownResource,
        UnknownTask,
        UsageError,
        WouldBlockTheLoop,
        WouldDeadlock,
    )
    from interlock.model.claim import Claim, read, uses, write
    from interlock.model.conflict import conflicts
    from interlock.model.limits import Quota, Rate, Retry
    from interlock.model.outcome import State
    from interlock.model.task import Task

    __version__: str

__all__ = [
    "AgentFailed",
    "AttemptOver",
    "AttemptsStillAlive",
    "BlankId",
    "ChildWouldDeadlock",
    "Claim",
    "ClaimOutsideWorkspace",
    "ClockWentBack",
    "DependencyCycle",
    "DuplicateId",
    "FatalError",
    "IllegalTransition",
    "ImpossibleClaim",
    "InterlockError",
    "InvalidOption",
    "InvalidOwnership",
    "InvalidPattern",
    "KernelError",
    "NotAnAgent",
    "NotRunning",
    "ProtectedPath",
    "Quota",
    "Rate",
    "Retry",
    "RunFailed",
    "ShuttingDown",
    "State",
    "Task",
    "TaskFailed",
    "UnknownDependency",
    "UnknownResource",
    "UnknownTask",
    "UsageError",
    "WouldBlockTheLoop",
    "WouldDeadlock",
    "__version__",
    "conflicts",
    "read",
    "uses",
    "write",
]

# Where a public name lives, unless it is an error.
_HOMES = {
    "Claim": "interlock.model.claim",
    "Quota": "interlock.model.limits",
    "Rate": "interlock.model.limits",
    "Retry": "interlock.model.limits",
    "State": "interlock.model.outcome",
    "Task": "interlock.model.task",
    "conflicts": "interlock.model.conflict",
    "read": "interlock.model.claim",
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
