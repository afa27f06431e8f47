"""Defaults, of a project or of a plan; and priorities by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from interlock.plan.composite_kinds import RecordValues
from interlock.plan.node import Node
from interlock.plan.problems import Problems
from interlock.plan.records import AgentSpec, Defaults
from interlock.plan.supply import Supply


def priority_of(
    text: str, known: Mapping[str, int], at: Node, field: str, problems: Problems
) -> int | None:
    """Return a priority given by number or by name."""
    try:
        number = int(text) if len(text) < 12 else None
    except ValueError:
        if text in known:
            return known[text]
        more = "; a whole number is also allowed"
        problems.unknown(at, field, text, f"there is no priority {text!r}", known, more)
        return None
    if number is None:
        problems.add(at, field, "a priority has at most 10 digits")
    return number


def defaults_of(
    found: RecordValues,
    agents: Mapping[str, AgentSpec],
    priorities: Mapping[str, int],
    supply: Supply,
    problems: Problems,
) -> Defaults:
    """Return the defaults of a project or of a plan."""
    uses = found.get("uses", ())
    supply.check_uses(uses, (), found.items_at("uses"), found.path("uses"), problems)
    values = dict(found.values)
    agent = values.get("agent")
    if agent is not None and agent not in agents:
        text = f"there is no agent {agent!r}"
        problems.unknown(found.at("agent"), found.path("agent"), agent, text, agents)
    if "priority" in values:
        at, field = found.at("priority"), found.path("priority")
        values["priority"] = priority_of(values["priority"], priorities, at, field, problems)
    if "labels" in values:
        values["labels"] = MappingProxyType(values["labels"])
    return Defaults(**values)
