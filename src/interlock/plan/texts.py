"""Texts on the command line as a plan: one task for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from interlock.errors import InvalidOption
from interlock.model.limits import Retry
from interlock.model.task import ONCE
from interlock.plan.records import Plan, PlannedTask, Project

_WORD = re.compile(r"[a-z0-9]+")
_FILLERS = frozenset("a an and for in into is it of on or the to with".split())
_WORDS = 4


def plan_of_texts(texts: Sequence[tuple[str, str]], project: Project) -> Plan:
    """A plan of one task for each agent and text; they go by the first words of their texts."""
    used: set[str] = set()
    tasks = tuple(_task(agent, text, project, used) for agent, text in texts)
    return Plan("command line", tasks)


def split_agent(text: str, agents: Iterable[str]) -> tuple[str | None, str]:
    """`agent: text`; the part before the colon counts only if there is an agent of that name."""
    name, colon, rest = text.partition(":")
    if colon and name.strip() in set(agents):
        return name.strip(), rest.strip()
    return None, text.strip()


def _task(agent: str, text: str, project: Project, used: set[str]) -> PlannedTask:
    spec = project.agents.get(agent)
    if spec is None:
        known = ", ".join(project.agents) or "none; `interlock init` writes a first project file"
        raise InvalidOption(f"there is no agent {agent!r} in the project file; known: {known}")
    if not text.strip():
        raise InvalidOption(f"the text for {agent} is blank; say what it is to do")
    if not spec.takes_prompt:
        raise InvalidOption(
            f"agent {agent!r} never gets to see a text: write {{prompt}} into its command"
        )
    said = project.defaults
    retry = spec.retry or (Retry(said.attempts, said.backoff or 1.0) if said.attempts else ONCE)
    return PlannedTask(
        _id(text, used),
        agent,
        text,
        uses=said.uses,
        reads=said.reads,
        priority=said.priority or 0,
        timeout=said.timeout if spec.timeout is None else spec.timeout,
        retry=retry,
        labels=said.labels,
    )


def _id(text: str, used: set[str]) -> str:
    words = [each for each in _WORD.findall(text.lower()) if each not in _FILLERS]
    name = "-".join(words[:_WORDS])[:40].strip("-") or "task"
    number, unique = 1, name
    while unique in used:
        number += 1
        unique = f"{name}-{number}"
    used.add(unique)
    return unique
