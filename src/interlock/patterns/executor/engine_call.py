"""The engine that runs agents, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from interlock.errors import AgentFailed, EngineError
from interlock.patterns.executor.models import AgentAssignment, problem_of

_OPTIONS = ("completion_config", "max_turns", "memory_messages", "timeout_seconds")


class AgentEngine(Protocol):
    """Runs one agent: `async run(identity=…, task=…, …)`.

    It may also take `completion_config`, `max_turns`, `memory_messages` and `timeout_seconds`.
    What it returns has `is_success`, `agent_id`, `task_id` and `total_cost_usd`.
    """

    @property
    def run(self) -> Any: ...


class Unsuccessful(AgentFailed):
    """The engine returned a result that is not a success; `result` has it."""

    def __init__(self, result: Any) -> None:
        self.result = result
        reason = getattr(result, "termination_reason", None)
        shown = "" if reason is None else f": {getattr(reason, 'value', reason)}"
        super().__init__(f"the result is not a success{shown}", retryable=False)


class EngineCaller:
    """Calls an engine with as much of an assignment as it takes."""

    def __init__(self, engine: Any) -> None:
        run = getattr(engine, "run", None)
        if not callable(run):
            raise EngineError(
                f"{engine!r} is no engine: it needs an async run(identity=..., task=...)"
            )
        self._run: Callable[..., Any] = run
        taken = _taken(run)
        self._options = [name for name in _OPTIONS if taken is None or name in taken]
        missing = [name for name in ("identity", "task") if taken is not None and name not in taken]
        if missing:
            raise EngineError(f"run() of {engine!r} does not take {' and '.join(missing)}")

    async def __call__(self, assignment: AgentAssignment) -> Any:
        """The result, whether or not it is a success."""
        options = {name: getattr(assignment, name) for name in self._options}
        running = self._run(identity=assignment.identity, task=assignment.task, **options)
        if not inspect.isawaitable(running):
            raise EngineError("run() of the engine is not async: it returned without being awaited")
        result = await running
        wrong = problem_of(result, assignment.task_id, assignment.agent_id)
        if wrong:
            raise EngineError(wrong)
        return result


def _taken(run: Callable[..., Any]) -> set[str] | None:
    """The names of what it takes; None if it takes anything, or nobody can tell."""
    try:
        parameters = inspect.signature(run).parameters
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    return set(parameters)
