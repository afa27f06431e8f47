"""What goes into a pool and what comes out of it: tasks and answers as dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.errors import AgentError, InvalidOption
from interlock.model.outcome import Outcome, State
from interlock.patterns.pool.engine_config import Entry
from interlock.runtime.outcome_conversion import error_text, status_word


def checked(entry: Any, number: int) -> Entry:
    """An entry of `run_parallel_tasks`; raises for what is wrong with it."""
    where = f"task number {number}"
    if not isinstance(entry, Mapping):
        raise InvalidOption(f"{where} is {entry!r}; write {{'agent_id': ..., 'prompt': ...}}")
    for name in ("agent_id", "prompt"):
        if not isinstance(entry.get(name), str):
            raise InvalidOption(f"{where}: {name} is {entry.get(name)!r}; it must be text")
    session_id = entry.get("session_id")
    if session_id is not None and (not isinstance(session_id, str) or not session_id.strip()):
        raise InvalidOption(f"{where}: session_id is {session_id!r}; it must be non-blank text")
    if not isinstance(entry.get("kwargs"), Mapping | None):
        raise InvalidOption(f"{where}: kwargs is {entry['kwargs']!r}; it maps names to values")
    for name in entry.get("kwargs") or ():
        if not isinstance(name, str) or name == "ctx":
            problem = "; ctx is the TaskContext" if name == "ctx" else ", which is not a name"
            raise InvalidOption(f"{where}: kwargs has {name!r}{problem}")
    return entry


def refused_answer(agent_id: str, error: str) -> dict[str, Any]:
    """The answer to an entry that was not submitted."""
    return answer(agent_id, Outcome("", State.FAILED, cause=error))


def answer(agent_id: str, outcome: Outcome[Any]) -> dict[str, Any]:
    """The answer to an entry, from the outcome of its task."""
    return {
        "agent_id": agent_id,
        "status": status_word(outcome),
        "output": outcome.result,
        "latency_ms": round(outcome.duration * 1000),
        "tokens": outcome.usage.tokens_in + outcome.usage.tokens_out,
        "error": error_text(outcome),
    }


def spawn_failure(outcome: Outcome[Any]) -> str:
    """The status of an agent whose batch was not spawned as a whole."""
    if outcome.status in (State.SUCCEEDED, State.CANCELLED):
        return "cancelled"
    error = outcome.error
    if error is not None and error.type == AgentError.__name__ and error.message:
        return f"error: {error.message}"  # the mapping names the agent already
    return f"error: {outcome.reason}"
