"""What the agents of a pool do at this moment: looked up and never kept, so it is never stale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from interlock.patterns.pool.member import Member
from interlock.runtime.runtime import Runtime

_TOO_MANY = 3
"""Failures in a row after which an agent is in error."""


def status_of(
    members: Mapping[str, Member], runtime: Runtime | None, now: float, *, ending: bool
) -> dict[str, dict[str, Any]]:
    """The status of each agent, by id."""
    running, stopping = (Counter[str](), Counter[str]()) if runtime is None else _busy(runtime)
    return {
        agent_id: {
            "status": _word(member, runtime, running[agent_id] + stopping[agent_id], ending),
            "uptime_s": 0.0 if member.since is None else now - member.since,
            "running": running[agent_id],
            "stopping": stopping[agent_id],
            "consecutive_failures": member.failures,
        }
        for agent_id, member in members.items()
    }


def _word(member: Member, runtime: Runtime | None, busy: int, ending: bool) -> str:
    if member.since is None:
        return "spawning" if runtime is not None and _runs(runtime, member) else "pending"
    if ending and not busy:
        return "terminated"
    return "error" if member.failures >= _TOO_MANY else "running"


def _busy(runtime: Runtime) -> tuple[Counter[str], Counter[str]]:
    """How many tasks each agent works at; and how many of its were told to stop, and have not."""
    tasks: dict[str, tuple[str, bool]] = {}
    for each in runtime.running():
        handle = runtime.handle(each.task_id)
        if "session" in handle.task.labels:
            # A blocking agent is a child of the task by which it is asked.
            name = handle.parent[0] if handle.parent is not None else each.task_id
            tasks[name] = handle.task.labels["agent"], each.stopping
    running = Counter(agent_id for agent_id, stopping in tasks.values() if not stopping)
    return running, Counter(agent_id for agent_id, stopping in tasks.values() if stopping)


def _runs(runtime: Runtime, member: Member) -> bool:
    return any(each.task_id == member.spawn for each in runtime.running())
