"""What goes into a pool and what comes out of it: tasks and answers as dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.errors import AgentError, InvalidOption
from interlock.model.outcome import Outcome, State
from interlock.patterns.pool.engine_config import Entry

_STATUS = {
    State.SUCCEEDED: "success",
    State.TIMED_OUT: "timeout",
    State.CANCELLED: "cancelled",
}


def checked(entry: Any, number: int) -> Entry:
    """A task as `run_parallel_tasks` takes it."""
    where = f"task number {number}"
    if not isinstance(entry, Mapping):
        raise InvalidOption(f"{where} is {entry!r}; write {{'agent_id': ..., 'prompt': ...}}")
    for name in ("agent_id", "prompt"):
        if not isinstance(entry.get(name), str):
            raise InvalidOption(f"{where}: {name} is {entry.get(name)!r}; it is text")
    session_id = entry.get("session_id")
    if session_id is not None and (not isinstance(session_id, str) or not session_id.strip()):
        raise InvalidOption(f"{where}: session_id is {session_id!r}; it is text that is not blank")
    if not isinstance(entry.get("kwargs"), Mapping | None):
        raise InvalidOption(f"{where}: kwargs is {entry['kwargs']!r}; it maps names to values")
    for name in entry.get("kwargs") or ():
        if not isinstance(name, str) or name == "ctx":
            told = "; ctx is the TaskContext" if name == "ctx" else ", which is no name"
            raise InvalidOption(f"{where}: kwargs has {name!r}{told}")
    return entry


def answer(
    agent_id: str,
    status: str,
    *,
    output: Any = None,
    latency_ms: float = 0.0,
    tokens: int = 0,
    error: str | None = None,
) -> dict[str, Any]:
    """One entry of the output."""
    return {
        "agent_id": agent_id,
        "status": status,
        "output": output,
        "latency_ms": latency_ms,
        "tokens": tokens,
        "error": error,
    }


def not_spawned(outcome: Outcome[Any]) -> str:
    """What is said of an agent of a batch that was not spawned as a whole."""
    if outcome.status in (State.SUCCEEDED, State.CANCELLED):
        return "cancelled"
    error = outcome.error
    if error is not None and error.type == AgentError.__name__ and error.message:
        return f"error: {error.message}"  # which agent it was is said already
    return f"error: {outcome.reason}"


def answered(agent_id: str, outcome: Outcome[Any]) -> dict[str, Any]:
    """The entry of a task that was submitted."""
    return answer(
        agent_id,
        _STATUS.get(outcome.status, "error"),
        output=outcome.result,
        latency_ms=outcome.duration * 1000.0,
        tokens=outcome.usage.tokens_in + outcome.usage.tokens_out,
        error=None if outcome.succeeded else outcome.reason or str(outcome.status),
    )
