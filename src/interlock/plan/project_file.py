"""The project file: `interlock.yaml`, in the workspace or in a folder above it."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from interlock.errors import InvalidOption
from interlock.model.limits import Breaker, Rate
from interlock.model.load import Gate
from interlock.model.ownership import Ownership
from interlock.plan.agents import agent_of
from interlock.plan.composite_kinds import RecordValues
from interlock.plan.defaults import defaults_of
from interlock.plan.file_keys import PROJECT
from interlock.plan.file_text import read_text
from interlock.plan.literal_secrets import ELSEWHERE, may_have_secrets, names_a_secret, secret_in
from interlock.plan.node import ListNode, MappingNode, Node, ScalarNode
from interlock.plan.problems import Problems
from interlock.plan.records import GRACE, AgentSpec, Defaults, Project
from interlock.plan.scalar_kinds import WRONG
from interlock.plan.supply import Supply
from interlock.plan.yaml_tree import compose

FILE: Final = "interlock.yaml"
PRIORITIES: Final = {"low": -10, "normal": 0, "high": 10}
ENV_FILE: Final = ".env"


def find_project(start: str | PathLike[str] = ".") -> Path | None:
    """Return the project file in this folder, or in the nearest one above it."""
    start = Path(start).absolute()
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder / FILE
    return None


def load_project(path: str | PathLike[str]) -> Project:
    """Read a project file. PlanError has everything that is wrong with it."""
    path = Path(path)
    problems = Problems(str(path))
    text = read_text(path, problems)
    root = compose(text, problems)
    if may_have_secrets(text):
        refuse_secrets(root, "", problems)
    found = PROJECT.read(root, "", problems)
    if found is WRONG:
        problems.stop()
    project = _project(path, found, problems)
    problems.raise_any()
    return project


def refuse_secrets(node: Node, field: str, problems: Problems) -> None:
    """Report every value and every key that contains a secret."""
    if isinstance(node, ScalarNode):
        what = secret_in(node.value)
        if what is not None:
            problems.add(node, field, f"it contains {what}; {ELSEWHERE}")
    elif isinstance(node, ListNode):
        for each in node.items:
            refuse_secrets(each, field, problems)
    else:
        for name, (key, value) in node.entries.items():
            below = f"{field}.{name}" if field else name
            refuse_secrets(key, below, problems)
            refuse_secrets(value, below, problems)


def _project(path: Path, found: RecordValues, problems: Problems) -> Project:
    agents = {
        name: agent_of(name, each, problems) for name, each in found.get("agents", {}).items()
    }
    limits = _limits(found, problems)
    capacity = _capacity(found, agents, limits, problems)
    priorities = {**PRIORITIES, **found.get("priorities", {})}
    protected = found.get("protected", ())
    supply = Supply(capacity, limits, protected)
    _check_agents(found, agents, limits, supply, problems)
    secrets = [*found.get("secrets", ()), *(n for each in agents.values() for n in each.secrets)]
    _check_passed_on(found, agents, set(secrets), problems)
    root = path.absolute().parent
    return Project(
        root,
        path,
        MappingProxyType(agents),
        found.get("max_parallel"),
        MappingProxyType(capacity),
        MappingProxyType(limits),
        MappingProxyType(priorities),
        protected,
        tuple(dict.fromkeys(secrets)),
        _env_file(found, root, problems),
        _gate(found, problems),
        found.get("grace", GRACE),
        _defaults(found, agents, priorities, supply, problems),
        (
            *(f"{each}; the first one owns it" for each in _owned_twice(agents)),
            *_open_secrets(agents, set(secrets)),
        ),
    )


def _defaults(
    found: RecordValues,
    agents: Mapping[str, AgentSpec],
    priorities: Mapping[str, int],
    supply: Supply,
    problems: Problems,
) -> Defaults:
    read = found.get("defaults")
    return Defaults() if read is None else defaults_of(read, agents, priorities, supply, problems)


def _env_file(found: RecordValues, root: Path, problems: Problems) -> str | None:
    named: str | None = found.get("env_file")
    if named is None:
        return ENV_FILE if (root / ENV_FILE).is_file() else None
    if not (root / named).is_file():
        text = f"there is no file {named!r} beside the project file"
        problems.add(found.at("env_file"), "env_file", text)
    return named


def _gate(found: RecordValues, problems: Problems) -> Gate | None:
    gate = found.get("gate")
    if gate is None:
        return None
    try:
        return Gate(**gate.values)
    except InvalidOption:
        if not gate.node.entries:
            problems.add(gate.node, "gate", "set `cpu`, `memory` or both, in percent")
        return None


def _limits(found: RecordValues, problems: Problems) -> dict[str, Rate | Breaker]:
    limits: dict[str, Rate | Breaker] = {}
    for name, each in found.get("limits", {}).items():
        is_rate = each.says("requests") or each.says("tokens")
        is_breaker = each.says("failures") or each.says("cool_down")
        if is_rate == is_breaker:
            problems.add(
                each.node,
                each.field,
                "set `requests`, `tokens` or both for a rate, or `failures` and `cool_down` for a "
                "breaker" + ("; this has both: use two limits" if is_rate else ""),
            )
        elif is_breaker:
            limits[name] = Breaker(**each.values)
        elif each.values:
            limits[name] = Rate(**each.values)
    return limits


def _capacity(
    found: RecordValues,
    agents: dict[str, AgentSpec],
    limits: dict[str, Rate | Breaker],
    problems: Problems,
) -> dict[str, int]:
    capacity: dict[str, int] = dict(found.get("capacity", {}))
    entries = getattr(found.at("capacity"), "entries", {})
    for name in capacity:
        at, field = entries[name][0], f"capacity.{name}"
        agent = agents.get(name.removeprefix("agent:")) if name.startswith("agent:") else None
        if name == "slots":
            problems.add(at, field, "set the number of slots with `max_parallel`")
        elif name in limits:
            problems.add(at, field, f"{name!r} is also a limit; keep one of them")
        elif agent is not None and agent.instances is not None:
            problems.add(
                at, field, f"the agent has `instances: {agent.instances}`; keep one of them"
            )
        elif name.endswith("!") or "=" in name:
            problems.add(at, field, "a name cannot contain = or !; these say how much is used")
    for name, each in agents.items():
        if each.instances is not None:
            capacity.setdefault(f"agent:{name}", each.instances)
    return capacity


def _check_agents(
    found: RecordValues,
    agents: dict[str, AgentSpec],
    limits: dict[str, Rate | Breaker],
    supply: Supply,
    problems: Problems,
) -> None:
    for name, each in found.get("agents", {}).items():
        for limit, at in zip(each.get("limits", ()), each.items_at("limits"), strict=False):
            if limit not in limits and limit not in _said(found, "limits"):
                text = f"there is no limit {limit!r}"
                problems.unknown(at, each.path("limits"), limit, text, limits)
        own = each.get("uses", ())
        supply.check_uses(own, (), each.items_at("uses"), each.path("uses"), problems)
        for pattern, at in zip(agents[name].owns, each.items_at("owns"), strict=False):
            why = supply.protected_in(pattern)
            if why is not None:
                problems.add(at, each.path("owns"), why)


def _said(found: RecordValues, name: str) -> Any:
    """Return the names in a mapping, valid or not: invalid ones have been reported."""
    node = found.at(name)
    return node.entries if isinstance(node, MappingNode) and node is not found.node else ()


def _check_passed_on(
    found: RecordValues, agents: dict[str, AgentSpec], secrets: set[str], problems: Problems
) -> None:
    for name, each in found.get("agents", {}).items():
        for passed, at in zip(each.get("pass_env", ()), each.items_at("pass_env"), strict=False):
            if passed in secrets and passed not in agents[name].secrets:
                problems.add(
                    at, each.path("pass_env"), f"{passed!r} is a secret; list it under `secrets`"
                )


def _open_secrets(agents: dict[str, AgentSpec], secrets: set[str]) -> list[str]:
    return [
        f"agents.{name}.pass_env: {passed!r} looks like the name of a secret; under `secrets` it "
        "would be kept out of logs and journal"
        for name, each in agents.items()
        for passed in (() if each.command is None else each.command.pass_env)
        if names_a_secret(passed) and passed not in secrets
    ]


def _owned_twice(agents: dict[str, AgentSpec]) -> list[str]:
    rules = {name: each.owns for name, each in agents.items() if each.owns}
    return [str(each) for each in Ownership(rules).problems()]
