"""From project and plan files to what a Runtime takes: agents, options, tasks."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

from interlock.errors import AgentFailed, InvalidOption, NotAnAgent
from interlock.execution.call_spec import call_spec_of
from interlock.execution.processes.process_agent import Process
from interlock.model.claim import Mode, as_claims
from interlock.model.command import Command
from interlock.model.labels import AGENT_LABEL
from interlock.model.stable_names import stable_name
from interlock.model.task import ONCE, Task
from interlock.plan.env_file import secret_values
from interlock.plan.records import AgentSpec, Plan, PlannedTask, Project, claims_of
from interlock.plan.records import question_id as question_id
from interlock.runtime.context import TaskContext

_NO = frozenset({"n", "no", "stop", "false", "0"})


class ProjectAgents:
    """The agents of a project. Each is made on first use and kept."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.secrets = secret_values(project, os.environ)
        """By name: from the environment, or from the project's `.env`."""
        self._made: dict[str, Any] = {}

    def named(self, name: str) -> Any:
        """The agent of that name in the project file."""
        if name not in self._made:
            self._made[name] = self._make(self.spec(name))
        return self._made[name]

    def spec(self, name: str) -> AgentSpec:
        """The definition of an agent in the project file."""
        spec = self._project.agents.get(name)
        if spec is None:
            known = ", ".join(self._project.agents) or "none"
            raise InvalidOption(f"there is no agent {name!r} in the project file; known: {known}")
        return spec

    def spec_of(self, agent: Any) -> AgentSpec | None:
        """The definition of an agent that was made here; None for any other."""
        for name, made in self._made.items():
            if made is agent:
                return self._project.agents[name]
        return None

    def imported(self, name: str) -> Any:
        """The object that `module:name` names; modules in the project's folder are found first."""
        module, _, attribute = name.partition(":")
        # Like a script in that folder: its own modules come before installed ones.
        here = os.fspath(self._project.root)
        if here not in sys.path:
            sys.path.insert(0, here)
        try:
            found: Any = importlib.import_module(module)
        except Exception as error:  # importing a module runs its code, which may raise anything
            raise NotAnAgent(f"{name}: {module} cannot be imported: {error!r}") from error
        for part in attribute.split("."):
            try:
                found = getattr(found, part)
            except AttributeError:
                raise NotAnAgent(f"{name}: {module} has no {attribute!r}") from None
        return found

    def _make(self, spec: AgentSpec) -> Any:
        if spec.command is not None:
            given = dict.fromkeys((*spec.command.pass_env, *spec.secrets))
            return spec.command.replace(name=spec.name, pass_env=tuple(given))
        agent = self.imported(spec.python or "")
        if isinstance(agent, type):
            agent = agent()
        call_spec_of(agent)  # it has the error for what is none
        return Process(agent) if spec.process else agent


def with_agent_defaults(task: Task, agents: ProjectAgents) -> Task:
    """A task with the claims, limits and label that the project file gives its agent.

    Tasks of plans have them already.
    """
    if isinstance(task.agent, str):
        task = task.replace(agent=agents.named(task.agent))
    spec = agents.spec_of(task.agent)
    if spec is None or AGENT_LABEL in task.labels:
        return task
    claims = (*task.claims, *spec.uses)
    if spec.command is not None and not any(each.mode is Mode.WRITE for each in claims):
        # A program can write anywhere. Unless its claims say otherwise, assume that it does.
        claims += as_claims(writes=spec.owns or ("**",))
    return task.replace(
        claims=claims,
        timeout=spec.timeout if task.timeout is None else task.timeout,
        retry=spec.retry if task.retry is ONCE and spec.retry else task.retry,
        labels={**task.labels, AGENT_LABEL: spec.name},
    )


def options_of(project: Project, secrets: Iterable[str]) -> dict[str, Any]:
    """The options of a Runtime for this project."""
    options: dict[str, Any] = {
        "workspace": project.root,
        "capacity": dict(project.capacity),
        "limits": dict(project.limits),
        "gate": project.gate,
        "protected": project.protected,
        "grace": project.grace,
        "secrets": tuple(secrets),
    }
    if project.max_parallel is not None:
        options["max_parallel"] = project.max_parallel
    return options


def tasks_of(plan: Plan, agents: ProjectAgents) -> list[Task]:
    """The tasks of a plan, as a Runtime takes them; questions are tasks of their own."""
    tasks: list[Task] = []
    for planned in plan.tasks:
        tasks += _tasks(planned, agents)
    return tasks


def _tasks(planned: PlannedTask, agents: ProjectAgents) -> Iterable[Task]:
    spec = agents.spec(planned.agent)
    agent, after = agents.named(planned.agent), planned.after
    if planned.ask is not None:
        question = question_id(planned.id)
        yield Task(
            question,
            ask_first,
            prompt=planned.ask,
            after=after,
            priority=planned.priority,
            labels={AGENT_LABEL: "you"},
        )
        after = (*after, question)
    if planned.check is not None:
        if not isinstance(agent, Command):
            raise InvalidOption(
                f"task {planned.id!r}: a check needs an agent that is a program, and "
                f"{spec.name!r} is a Python function; let it check its work itself"
            )
        agent = agent.replace(check=planned.check)
    yield Task(
        planned.id,
        agent,
        prompt=planned.prompt,
        kwargs=planned.kwargs,
        claims=claims_of(planned, spec),
        after=after,
        priority=planned.priority,
        timeout=planned.timeout,
        deadline=planned.deadline,
        retry=planned.retry,
        estimate=planned.estimate,
        output=_output(planned.output, agents),
        labels={**planned.labels, AGENT_LABEL: spec.name},
    )


@stable_name("plan.question")
async def ask_first(ctx: TaskContext) -> str:
    """Ask a person whether the task that depends on this one may start; `no` ends both."""
    answer = await ctx.ask(ctx.prompt or "Go on?")
    if answer.strip().lower() in _NO:
        raise AgentFailed(f"the answer was {answer.strip()!r}", retryable=False)
    return answer


def _output(output: str | None, agents: ProjectAgents) -> Any:
    if output is None or output == "text":
        return None
    return object if output == "json" else agents.imported(output)
