"""Plan files: tasks with their agents, claims and dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Final

from interlock.model.graph import find_cycle
from interlock.plan.composite_kinds import RecordValues
from interlock.plan.defaults import defaults_of
from interlock.plan.file_keys import DEFAULTS, PLAN
from interlock.plan.file_text import read_text
from interlock.plan.for_each import Drafts, unfold
from interlock.plan.literal_secrets import ELSEWHERE, may_have_secrets, names_a_secret, secret_in
from interlock.plan.node import ListNode, MappingNode, Node, ScalarNode
from interlock.plan.problems import Problems
from interlock.plan.project_file import refuse_secrets
from interlock.plan.records import Defaults, Plan, PlannedTask, Project
from interlock.plan.scalar_kinds import WRONG
from interlock.plan.supply import Supply
from interlock.plan.tasks import TaskBuilder
from interlock.plan.variables import RESERVED, Given, Scope, listed
from interlock.plan.yaml_tree import compose

COMMAND_LINE: Final = "command line"
_MOST_CYCLES: Final = 10
_DEPENDING: Final = ("after", "prompt", "prompt_file", "ask")


def load_plan(
    path: str | PathLike[str],
    project: Project,
    *,
    variables: Mapping[str, str] = MappingProxyType({}),
    only: Iterable[str] = (),
) -> Plan:
    """Read a plan file. PlanError has everything that is wrong with it.

    `variables` override those of the file. `only` names the tasks to keep, with all their
    dependencies.
    """
    path = Path(path)
    problems = Problems(str(path))
    text = read_text(path, problems)
    root = compose(text, problems)
    if isinstance(root, ListNode):
        problems.refuse(root, "", "a plan is a mapping; put the list under `tasks:`")
    if may_have_secrets(text):
        refuse_secrets(root, "", problems)
    found = PLAN.read(root, "", problems)
    if found is WRONG:
        problems.stop()
    given = _variables(found, variables, problems)
    tasks = found.node.get("tasks")
    if tasks is None:
        problems.raise_any()
        problems.refuse(None, "tasks", "there are no tasks; write them under `tasks:`")
    scope = Scope(given)
    drafts = unfold(tasks, scope, problems)
    defaults = _defaults(found, scope, project, problems)
    reader = TaskBuilder(project, defaults, path.parent, problems)
    planned = reader.planned(drafts)
    _check_cycles(planned, drafts, problems)
    _check_set(variables, found, scope, problems)
    planned = _only(planned, drafts, tuple(only), problems)
    problems.raise_any()
    return Plan(
        found.get("name") or path.stem,
        tuple(planned),
        path,
        found.get("max_parallel"),
        found.get("fail_fast", False),
        found.get("deadline"),
        tuple(reader.warnings),
    )


def plan_of_prompts(
    prompts: Sequence[tuple[str | None, str]], project: Project, *, name: str = COMMAND_LINE
) -> Plan:
    """Make a plan from prompts, each with the name of its agent or None for the default one.

    Nothing in them is taken for a variable.
    """
    problems = Problems(name)
    tasks = ListNode()
    for agent, prompt in prompts:
        task = MappingNode()
        task.entries["prompt"] = (ScalarNode("prompt"), ScalarNode(prompt, plain=False))
        if agent is not None:
            task.entries["agent"] = (ScalarNode("agent"), ScalarNode(agent, plain=False))
        tasks.items.append(task)
    refuse_secrets(tasks, "", problems)
    drafts = unfold(tasks, Scope({}), problems)
    reader = TaskBuilder(project, Defaults(), project.root, problems)
    planned = reader.planned(drafts)
    problems.raise_any()
    return Plan(name, tuple(planned), warnings=tuple(reader.warnings))


def _variables(
    found: RecordValues, given: Mapping[str, str], problems: Problems
) -> dict[str, Given]:
    known: dict[str, Given] = dict(found.get("variables", {}))
    entries = getattr(found.at("variables"), "entries", {}) if found.says("variables") else {}
    for name, value in known.items():
        at, field = entries[name][0], f"variables.{name}"
        if name in RESERVED:
            problems.add(at, field, f"{name!r} is reserved for `for_each`; use another name")
        if names_a_secret(name) and isinstance(value, str) and value.strip():
            problems.add(at, field, f"{name!r} looks like the name of a secret; {ELSEWHERE}")
    for name, text in given.items():
        field = f"--set {name}"
        if names_a_secret(name) or secret_in(text) is not None:
            problems.add(None, field, f"this looks like a secret; {ELSEWHERE}")
        if "\0" in text or any("\ud800" <= each <= "\udfff" for each in text):
            problems.add(None, field, "its value is not UTF-8 text")
        known[name] = listed(text) if isinstance(known.get(name), tuple) else text
    return known


def _check_set(
    given: Mapping[str, str], found: RecordValues, scope: Scope, problems: Problems
) -> None:
    declared = found.get("variables", {})
    for name in given:
        if name not in declared and name not in scope.used:
            known = [*declared, *scope.used]
            text = f"the plan has no variable {name!r}"
            problems.unknown(None, f"--set {name}", name, text, known)


def _defaults(found: RecordValues, scope: Scope, project: Project, problems: Problems) -> Defaults:
    node: Node | None = found.get("defaults")
    if node is None:
        return Defaults()
    read = DEFAULTS.read(scope.filled(node, "defaults", problems), "defaults", problems)
    if read is WRONG:
        return Defaults()
    supply = Supply(project.capacity, project.limits, project.protected)
    return defaults_of(read, project.agents, project.priorities, supply, problems)


def _check_cycles(planned: Sequence[PlannedTask], drafts: Drafts, problems: Problems) -> None:
    """Report cycles of dependencies, up to a few."""
    after = {task.id: list(task.after) for task in planned}
    places = {draft.id: draft for draft in drafts.tasks}
    for _ in range(_MOST_CYCLES):
        cycle = find_cycle(after)
        if cycle is None:
            return
        found = places[cycle[0]].found
        key = next((each for each in _DEPENDING if found.says(each)), "after")
        if len(cycle) == 2:
            text = "it comes after itself; leave it out"
        else:
            way = " -> ".join(cycle)
            text = f"these tasks wait for each other: {way}; remove one of these dependencies"
        problems.add(found.at(key), found.path(key), text)
        for each in cycle:
            after.pop(each, None)


def _only(
    planned: list[PlannedTask], drafts: Drafts, only: tuple[str, ...], problems: Problems
) -> list[PlannedTask]:
    if not only:
        return planned
    by_id = {task.id: task for task in planned}
    wanted: dict[str, None] = {}
    for name in only:
        if name not in drafts.names:
            text = f"there is no task {name!r}"
            problems.unknown(None, f"--only {name}", name, text, drafts.names)
        wanted.update(dict.fromkeys(drafts.names.get(name, ())))
    todo = list(wanted)
    while todo:
        task = by_id.get(todo.pop())
        for before in task.after if task is not None else ():
            if before not in wanted:
                wanted[before] = None
                todo.append(before)
    return [task for task in planned if task.id in wanted]
