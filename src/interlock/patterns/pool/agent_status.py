"""The status of the agents of a pool: derived from the run on request, so it is never stale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from interlock.patterns.pool.pooled_agent import PooledAgent
from interlock.runtime.runtime import Runtime

_TOO_MANY = 3
"""Consecutive failures after which an agent is in `error`."""


def status_of(
    agents: Mapping[str, PooledAgent], runtime: Runtime | None, now: float, *, is_ending: bool
) -> dict[str, dict[str, Any]]:
    """The status of each agent, by id."""
    running, stopping = (Counter[str](), Counter[str]()) if runtime is None else _busy(runtime)
    return {
        agent_id: {
            "status": _word(agent, runtime, running[agent_id] + stopping[agent_id], is_ending),
            "uptime_s": 0 if agent.since is None else round(now - agent.since),
            "running": running[agent_id],
            "stopping": stopping[agent_id],
            "consecutive_failures": agent.failures,
        }
        for agent_id, agent in agents.items()
    }


def _word(agent: PooledAgent, runtime: Runtime | None, busy: int, is_ending: bool) -> str:
    if agent.since is None:
        return "spawning" if runtime is not None and _is_being_made(runtime, agent) else "pending"
    if is_ending and not busy:
        return "terminated"
    return "error" if agent.failures >= _TOO_MANY else "running"


def _busy(runtime: Runtime) -> tuple[Counter[str], Counter[str]]:
    """For each agent, how many messages it works on, and how many it was told to stop and has not.

    A blocking agent is a child of the task that carries its message: both are one message.
    """
    messages: dict[str, tuple[str, bool]] = {}
    for each in runtime.running():
        handle = runtime.handle(each.task_id)
        if "session" in handle.task.labels:
            task_id = handle.parent[0] if handle.parent is not None else each.task_id
            messages[task_id] = handle.task.labels["agent"], each.stopping
    running = Counter(agent_id for agent_id, stopping in messages.values() if not stopping)
    return running, Counter(agent_id for agent_id, stopping in messages.values() if stopping)


def _is_being_made(runtime: Runtime, agent: PooledAgent) -> bool:
    return any(each.task_id == agent.spawn_id for each in runtime.running())
