"""The names by which a journal knows Interlock's own agents and data types.

A journal does not store code. It knows an agent, and the class of a value, by its name, and a task
whose agent has another name is another task: a run that is resumed refuses it, or runs it again. So
the name of what Interlock itself puts into a journal must not be the one that Python gives it.

`STABLE_NAMES` has them all. The values are the names of 0.1.0, where they were Python's; they are
written, read and compared for ever. Renaming or moving a class or a function changes nothing here.
A new entry has `interlock:` and its key as its value. An entry is never changed or reused.

To mark a function or a class, decorate it with its key:

    @stable_name("pool.answer")
    async def answer(ctx): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])

STABLE_NAMES = {
    # -- agents of the systems ----------------------------------------------------------------
    "coordinator.agent_on_loop": (
        "interlock.patterns.coordinator_agent:Life.attempts.<locals>.in_a_thread.<locals>.lives"
    ),
    "coordinator.agent_in_thread": (
        "interlock.patterns.coordinator_agent:Life.attempts.<locals>.on_the_loop.<locals>.<lambda>"
    ),
    "coordinator.attempt_in_thread": (
        "interlock.patterns.coordinator_agent:Life.attempts.<locals>.in_a_thread"
    ),
    "coordinator.attempt_on_loop": (
        "interlock.patterns.coordinator_agent:Life.attempts.<locals>.on_the_loop"
    ),
    "coordinator.group_end": "interlock.patterns.coordinator_call:GroupEnd",
    "cron.missing_agent": "interlock.patterns.cron_recall:_nobody",
    "executor.agent": "interlock.patterns.executor_execution:Execution.tasks.<locals>.agent",
    "executor.group": "interlock.patterns.executor:ParallelExecutor._execute.<locals>.gate",
    "plan.question": "interlock.runtime.project:ask_first",
    "pool.answer": "interlock.patterns.pool_engine:Engine._answering.<locals>.answer",
    "pool.given": "interlock.patterns.pool_config:Maker.making.<locals>.given",
    "pool.make": "interlock.patterns.pool_config:Maker.making.<locals>.make",
    "pool.make_in_thread": (
        "interlock.patterns.pool_config:Maker.making.<locals>.make_in_a_thread"
    ),
    # -- around the agents of users -----------------------------------------------------------
    "process": "interlock.execution.process:Process",
    # -- data that users may keep: in arguments, results and records --------------------------
    "data.agent_assignment": "interlock.patterns.executor_models:AgentAssignment",
    "data.agent_outcome": "interlock.patterns.executor_models:AgentOutcome",
    "data.agent_task": "interlock.patterns.queue_task:AgentTask",
    "data.engine_config": "interlock.patterns.pool_config:EngineConfig",
    "data.event": "interlock.model.event:Event",
    "data.explanation": "interlock.model.why:Explanation",
    "data.message": "interlock.runtime.session:Message",
    "data.parallel_execution_group": "interlock.patterns.executor_models:ParallelExecutionGroup",
    "data.parallel_execution_result": "interlock.patterns.executor_models:ParallelExecutionResult",
    "data.parallel_progress": "interlock.patterns.executor_models:ParallelProgress",
    "data.progress": "interlock.model.progress:Progress",
    "data.question": "interlock.runtime.waits:Question",
    "data.run_result": "interlock.model.result:RunResult",
    "data.shutdown_result": "interlock.patterns.executor_shutdown:ShutdownResult",
    "data.subtask": "interlock.patterns.coordinator_models:SubTask",
}

_ATTRIBUTE = "__interlock_name__"
_types: dict[str, type] = {}


def stable_name(key: str) -> Callable[[T], T]:
    """Have a journal know a function or a class by the name in `STABLE_NAMES`. A decorator."""
    name = STABLE_NAMES[key]

    def decorate(named: T) -> T:
        setattr(named, _ATTRIBUTE, name)
        if isinstance(named, type):
            _types[name] = named
        return named

    return decorate


def stable_name_of(named: Any) -> str | None:
    """The stable name of a function or a class; None if it has none, as with those of users."""
    if isinstance(named, type):
        # Its own only: a user's subclass is another class.
        found: str | None = vars(named).get(_ATTRIBUTE)
        return found
    return getattr(named, _ATTRIBUTE, None)


def type_of_stable_name(name: str) -> type | None:
    """The class that has a stable name; None if there is none, or it is not loaded."""
    return _types.get(name)
