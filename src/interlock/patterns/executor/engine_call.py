"""The engine port, and how an engine is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from interlock.errors import AgentFailed, EngineError
from interlock.patterns.executor.models import AgentAssignment, find_mismatch

_OPTIONS = ("completion_config", "max_turns", "memory_messages", "timeout_seconds")


class GroupEngine(Protocol):
    """Runs one agent: `async run(identity=…, task=…, …)`.

    It may also take `completion_config`, `max_turns`, `memory_messages` and `timeout_seconds`.
    Its result has `is_success`, `agent_id`, `task_id` and `total_cost_usd`.
    """

    @property
    def run(self) -> Any: ...


class Unsuccessful(AgentFailed):
    """The engine returned a result that is not a success; it is in `result`."""

    def __init__(self, result: Any) -> None:
        self.result = result
        reason = getattr(result, "termination_reason", None)
        shown = "" if reason is None else f": {getattr(reason, 'value', reason)}"
        super().__init__(f"the result is not a success{shown}", retryable=False)


class EngineCaller:
    """Calls an engine with those fields of an assignment that its `run` accepts."""

    def __init__(self, engine: Any) -> None:
        run = getattr(engine, "run", None)
        if not callable(run):
            raise EngineError(
                f"{engine!r} is not an engine: it needs an async run(identity=..., task=...)"
            )
        self._run: Callable[..., Any] = run
        accepted = _accepted_names(run)
        self._options = [name for name in _OPTIONS if accepted is None or name in accepted]
        required = ("identity", "task")
        missing = [name for name in required if accepted is not None and name not in accepted]
        if missing:
            raise EngineError(f"run() of {engine!r} does not accept {' and '.join(missing)}")

    async def __call__(self, assignment: AgentAssignment) -> Any:
        """Run an assignment and return its result, whether or not it is a success."""
        options = {name: getattr(assignment, name) for name in self._options}
        running = self._run(identity=assignment.identity, task=assignment.task, **options)
        if not inspect.isawaitable(running):
            raise EngineError("run() of the engine is not async: it returned without being awaited")
        result = await running
        mismatch = find_mismatch(result, assignment.task_id, assignment.agent_id)
        if mismatch:
            raise EngineError(mismatch)
        return result


def _accepted_names(run: Callable[..., Any]) -> set[str] | None:
    """Return the parameter names of a function; None if it accepts any, or cannot be inspected."""
    try:
        parameters = inspect.signature(run).parameters
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    return set(parameters)
