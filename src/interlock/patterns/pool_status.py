"""What the agents of a pool do at this moment: looked up and never kept, so it is never stale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.patterns.pool_member import Member
from interlock.runtime.runtime import Runtime

_TOO_MANY = 3
"""Failures in a row after which an agent is in error."""


def status_of(
    members: Mapping[str, Member], runtime: Runtime | None, now: float, *, ending: bool
) -> dict[str, dict[str, Any]]:
    """The status of each agent, by id."""
    busy = {} if runtime is None else _busy(runtime)
    return {
        agent_id: {
            "status": _word(member, runtime, busy.get(agent_id, 0), ending),
            "uptime_s": 0.0 if member.since is None else now - member.since,
            "running": busy.get(agent_id, 0),
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


def _busy(runtime: Runtime) -> dict[str, int]:
    """How many tasks each agent works at, those that were told to stop included."""
    tasks = {}
    for each in runtime.running():
        handle = runtime.handle(each.task_id)
        tasks[handle.parent[0] if handle.parent else each.task_id] = handle.task.labels
    busy: dict[str, int] = {}
    for labels in tasks.values():
        if "session" in labels:
            busy[labels["agent"]] = busy.get(labels["agent"], 0) + 1
    return busy


def _runs(runtime: Runtime, member: Member) -> bool:
    return any(each.task_id == member.spawn for each in runtime.running())
