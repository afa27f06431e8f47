"""From the tasks as they were read to the tasks that will run: defaults filled in, all checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from interlock.model.claim import Claim
from interlock.model.limits import Retry
from interlock.model.patterns.overlap import overlap
from interlock.model.patterns.pattern import parse
from interlock.model.task import ONCE
from interlock.plan.agents import retry
from interlock.plan.defaults import priority_of
from interlock.plan.for_each import Draft, Drafts
from interlock.plan.problems import Problems, SizeLimit
from interlock.plan.project_file import FILE
from interlock.plan.prompts import PromptReader
from interlock.plan.records import NOTHING, AgentSpec, Defaults, PlannedTask, Position, Project
from interlock.plan.supply import Supply

_SHOWN: Final = 5
_MOST_WARNINGS: Final = 20
MOST_EDGES: Final = 1_000_000
"""How many dependencies a plan may have."""


class TaskBuilder:
    """Builds the tasks of one plan."""

    def __init__(
        self, project: Project, defaults: Defaults, folder: Path, problems: Problems
    ) -> None:
        self.warnings: list[str] = []
        self._project = project
        self._defaults = defaults
        self._problems = problems
        self._supply = Supply(project.capacity, project.limits, project.protected)
        self._usual = defaults.agent or project.defaults.agent
        self._prompts = PromptReader(folder, problems)
        self._owners: dict[str, list[str]] = {}
        """For each pattern of a claim, the agents that own some of it."""
        self._edges = SizeLimit(MOST_EDGES, f"more than {MOST_EDGES:,} dependencies")
        self._whole: list[str] = []
        """Tasks that claim the whole workspace because they have no `writes`."""

    def planned(self, drafts: Drafts) -> list[PlannedTask]:
        """Return the tasks that can be built. The problems say what is wrong with the others."""
        found = [task for each in drafts.tasks if (task := self._task(each, drafts)) is not None]
        self._warn(drafts)
        return found

    def _warn(self, drafts: Drafts) -> None:
        for name in drafts.empty:
            self.warnings.append(f"tasks.{name}: `for_each` is empty, so there is no such task")
        if len(self._whole) > 1:
            few = ", ".join(self._whole[:_SHOWN]) + (", ..." if len(self._whole) > _SHOWN else "")
            self.warnings.append(
                f"{len(self._whole)} tasks have no `writes`, so each claims the whole workspace "
                f"and they run one after another: {few}. Add `writes` to run them in parallel"
            )

    def _task(self, draft: Draft, drafts: Drafts) -> PlannedTask | None:
        found, say = draft.found, self._say
        agent = self._agent(draft)
        if agent is None:
            return None
        prompt, ask = self._prompts.of(draft, agent), found.get("ask")
        kwargs = found.get("with")
        if kwargs and agent.python is None:
            text = f"agent {agent.name!r} is a program; only Python agents take arguments"
            self._problems.add(found.key_at("with"), found.path("with"), text)
        if found.says("check") and agent.command is None:
            text = f"agent {agent.name!r} is a Python function; check its work inside it"
            self._problems.add(found.key_at("check"), found.path("check"), text)
        after = self._after(draft, drafts)
        prompt = self._prompts.resolved(prompt, draft, drafts, "prompt", after)
        ask = self._prompts.resolved(ask, draft, drafts, "ask", after)
        self._edges.take(len(after), draft.at, found.path("after"), self._problems)
        own = found.get("uses", ())
        at, field = found.items_at("uses"), found.path("uses")
        on_top = (*agent.uses, *self._defaults_of("uses"))
        self._supply.check_uses(own, on_top, at, field, self._problems)
        self._check_writes(draft, agent)
        labels = {**self._defaults_of("labels"), **found.get("labels", {})}
        return PlannedTask(
            draft.id,
            agent.name,
            prompt,
            MappingProxyType(kwargs) if kwargs else NOTHING,
            found.get("writes"),
            _together(self._defaults_of("reads"), found.get("reads", ())),
            _together(self._defaults_of("uses"), own),
            tuple(after),
            self._priority(draft),
            say(draft, "timeout", agent.timeout),
            say(draft, "deadline"),
            self._retry(draft, agent),
            say(draft, "estimate"),
            say(draft, "workspace", agent.workspace),
            say(draft, "guard", agent.guard),
            None if agent.command is None else say(draft, "check"),
            say(draft, "output"),
            ask,
            MappingProxyType(labels) if labels else NOTHING,
            Position(self._problems.file, draft.at.line, draft.at.column),
        )

    # -- what is not said in a task: in the plan, by the agent, in the project ---------------

    def _say(self, draft: Draft, name: str, of_the_agent: Any = None) -> Any:
        for value in (draft.found.get(name), getattr(self._defaults, name), of_the_agent):
            if value is not None:
                return value
        return getattr(self._project.defaults, name)

    def _defaults_of(self, name: str) -> Any:
        ours, theirs = getattr(self._defaults, name), getattr(self._project.defaults, name)
        return {**theirs, **ours} if name == "labels" else (*theirs, *ours)

    def _retry(self, draft: Draft, agent: AgentSpec) -> Retry:
        of_the_agent = agent.retry or Retry(1)
        said = None if agent.retry is None else of_the_agent.attempts
        attempts = self._say(draft, "attempts", said)
        backoff = self._say(draft, "backoff", None if agent.retry is None else agent.retry.backoff)
        return retry(attempts, backoff) or ONCE

    def _priority(self, draft: Draft) -> int:
        said = draft.found.get("priority")
        if said is None:
            return self._say_number("priority")
        at, field = draft.found.at("priority"), draft.found.path("priority")
        return priority_of(said, self._project.priorities, at, field, self._problems) or 0

    def _say_number(self, name: str) -> int:
        for defaults in (self._defaults, self._project.defaults):
            value: int | None = getattr(defaults, name)
            if value is not None:
                return value
        return 0

    # -- its agent and its prompt -----------------------------------------------------------

    def _agent(self, draft: Draft) -> AgentSpec | None:
        agents, found = self._project.agents, draft.found
        name: str | None = found.get("agent") or self._usual
        if name is None and len(agents) == 1 and not found.says("agent"):
            return next(iter(agents.values()))
        if name is not None and name in agents:
            return agents[name]
        if name is None:
            if not found.says("agent"):
                self._problems.add(
                    draft.at,
                    found.field,
                    f"it has no agent; add `agent:` to the task or to `defaults`: "
                    f"{', '.join(agents) or f'there is none yet, define one in {FILE}'}",
                )
        elif found.says("agent"):
            more = "" if agents else f"; define it under `agents` in {FILE}"
            text = f"there is no agent {name!r}"
            self._problems.unknown(found.at("agent"), found.path("agent"), name, text, agents, more)
        return None

    # -- what it comes after ---------------------------------------------------------------

    def _after(self, draft: Draft, drafts: Drafts) -> dict[str, None]:
        found, after = draft.found, dict[str, None]()
        for name, at in zip(found.get("after", ()), found.items_at("after"), strict=False):
            ids = drafts.names.get(name)
            if ids is None:
                text = f"there is no task {name!r}"
                self._problems.unknown(at, found.path("after"), name, text, drafts.names)
            else:
                after.update(dict.fromkeys(ids))
        return after

    # -- what it claims --------------------------------------------------------------------

    def _check_writes(self, draft: Draft, agent: AgentSpec) -> None:
        found = draft.found
        writes = found.get("writes")
        if writes is not None:
            for pattern, at in zip(writes, found.items_at("writes"), strict=False):
                self._warn_of_owners(draft, agent, pattern)
                why = self._supply.protected_in(pattern)
                if why is not None:
                    text = f"{why}; claim less, or only read it"
                    self._problems.add(at, found.path("writes"), text)
        elif not found.says("writes") and agent.command is not None and not agent.owns:
            self._whole.append(draft.id)
            why = self._supply.protected_in("**")
            if why is not None and found.is_right:
                self._problems.add(
                    draft.at,
                    found.field,
                    "it has no `writes`, so it would claim the whole workspace, but "
                    f"{why}; add `writes:`",
                )

    def _warn_of_owners(self, draft: Draft, agent: AgentSpec, pattern: str) -> None:
        if pattern not in self._owners:
            wanted = parse(pattern)
            self._owners[pattern] = [
                name
                for name, each in self._project.agents.items()
                if any(overlap(wanted, parse(owned)) is not None for owned in each.owns)
            ]
        owners = self._owners[pattern]
        if owners and agent.name not in owners and len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(
                f"{draft.found.path('writes')}: {pattern} is owned by agent {owners[0]!r}, but "
                f"this task belongs to {agent.name!r}"
            )


def _together(*several: Iterable[Any]) -> tuple[Any, ...]:
    listed = [each for some in several for each in some]
    # The same path twice is one claim; the same amount twice is twice as much.
    if listed and isinstance(listed[0], Claim):
        return tuple(listed)
    return tuple(dict.fromkeys(listed))
