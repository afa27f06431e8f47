"""The tasks of a plan after `for_each` has been expanded: each with an id."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from interlock.plan.composite_kinds import RecordKind, RecordValues
from interlock.plan.file_keys import LISTED_TASK, NAMED_TASK, TASKS
from interlock.plan.node import ListNode, MappingNode, Node, ScalarNode
from interlock.plan.problems import Problems
from interlock.plan.records import question_id
from interlock.plan.scalar_kinds import WRONG, wrong
from interlock.plan.variables import ItemsKind, Scope, listed

MOST_TASKS: Final = 50_000
_HOLE: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_LONGEST_ID: Final = 200


@dataclass(slots=True)
class Draft:
    """A task as it was read, before it is checked against the others."""

    id: str
    found: RecordValues
    scope: Scope
    at: Node
    """The node of its id, if it has one; otherwise that of the whole task."""


@dataclass(slots=True)
class Drafts:
    """All tasks, and what their names stand for."""

    tasks: list[Draft] = field(default_factory=list)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Ids of tasks, and names of groups: the tasks that one `for_each` makes."""
    empty: list[str] = field(default_factory=list)
    """Names of groups without a task."""


def unfold(node: Node, scope: Scope, problems: Problems) -> Drafts:
    """Read the tasks of a plan, which are a list or a mapping."""
    unfolding = _Expansion(scope, problems)
    if isinstance(node, MappingNode):
        scope.tasks = node.entries.keys()
        for name, (key, value) in node.entries.items():
            unfolding.add(name, key, value, f"tasks.{name}", NAMED_TASK)
    elif isinstance(node, ListNode):
        said = [each.get("id") for each in node.items if isinstance(each, MappingNode)]
        scope.tasks = {each.value for each in said if isinstance(each, ScalarNode)}
        for number, each in enumerate(node.items):
            own = _said_id(each)
            path = f"tasks[{number}]" if own is None else f"tasks.{own}"
            at = each.get("id") if isinstance(each, MappingNode) else None
            unfolding.add(own, at, each, path, LISTED_TASK)
    else:
        wrong(node, "tasks", problems, *TASKS)
    if (
        isinstance(node, MappingNode | ListNode)
        and not unfolding.drafts.tasks
        and not len(problems)
    ):
        problems.add(node, "tasks", "there are no tasks")
    return unfolding.named()


def _said_id(node: Node) -> str | None:
    said = node.get("id") if isinstance(node, MappingNode) else None
    return said.value if isinstance(said, ScalarNode) and not said.is_nothing else None


class _Expansion:
    def __init__(self, scope: Scope, problems: Problems) -> None:
        self.drafts = Drafts()
        self._scope = scope
        self._problems = problems
        self._first: dict[str, Node] = {}
        """Where each id was used first."""
        self._nameless: list[Draft] = []

    def add(
        self, name: str | None, key: Node | None, node: Node, path: str, kind: RecordKind
    ) -> None:
        """Add a task, or one for each item of its `for_each`."""
        task = _as_task(node)
        if task is None:
            hint = "use a mapping with keys such as agent, prompt, writes"
            wrong(node, path, self._problems, "a task", hint)
            return
        at = key or node
        repeated = task.get("for_each")
        if repeated is None:
            filled = self._scope.task(task, path, self._problems)
            own = self._id(name, at, path, self._scope)
            self._draft(own, kind.read(filled, path, self._problems), self._scope, at, path)
            return
        items = self._items(repeated, f"{path}.for_each")
        ids = []
        for index, item in enumerate(items, start=1):
            scope = self._scope.of_item(item, index)
            own = self._id(name, at, path, scope)
            if own is not None and own == name:
                own = f"{name}-{index}"
            filled = scope.task(task, path, self._problems)
            read = kind.read(filled, path, self._problems)
            ids.append(self._draft(own, read, scope, at, path))
        if name is not None:
            self._group(name, at, path, [each.id for each in ids if each is not None])

    def _group(self, name: str, at: Node, path: str, ids: list[str]) -> None:
        """Let a name stand for all tasks of a `for_each`: what comes after it comes after all."""
        short = _HOLE.sub("", name).strip("-_./: ")
        for each in dict.fromkeys((name, short)):
            if each in self._first:
                first = self._first[each].line
                text = f"{each!r} would mean all of these and the task on line {first}; rename one"
                self._problems.add(at, path, text)
            elif each:
                self._first[each] = at
                self.drafts.names[each] = tuple(ids)
        if not ids:
            self.drafts.empty.append(name)

    def _items(self, node: Node, path: str) -> tuple[str | dict[str, str], ...]:
        if isinstance(node, ScalarNode) and not node.is_nothing:
            hole = _HOLE.fullmatch(node.value.strip())
            name = node.value.strip() if hole is None else hole[1]
            if name not in self._scope.variables:
                text = f"there is no variable {name!r}"
                self._problems.unknown(node, path, name, text, self._scope.variables)
                return ()
            self._scope.used.add(name)
            value = self._scope.variables[name]
            if value is None:
                text = f"{name!r} has no value; give it one with --set {name}=a,b"
                self._problems.add(node, path, text)
            elif isinstance(value, str):
                return listed(value)
            else:
                return value
            return ()
        found = ItemsKind().read(
            self._scope.filled(node, path, self._problems), path, self._problems
        )
        return () if found is WRONG else found

    def _id(self, name: str | None, at: Node, path: str, scope: Scope) -> str | None:
        if name is None:
            return None
        if "{{" not in name:
            return name
        parts = scope.parts(name, at, path, self._problems)
        if not all(isinstance(each, str) for each in parts):
            self._problems.add(at, path, "an id cannot quote results of tasks")
        return "".join(str(each) for each in parts).strip()

    def _draft(
        self, own: str | None, found: Any, scope: Scope, at: Node, path: str
    ) -> Draft | None:
        if len(self.drafts.tasks) >= MOST_TASKS:
            self._problems.refuse(at, path, f"there are more than {MOST_TASKS:,} tasks")
        if found is WRONG:
            return None
        draft = Draft(own or "", found, scope, at)
        self.drafts.tasks.append(draft)
        if own is None:
            self._nameless.append(draft)
            return draft
        self._claim_id(draft, path)
        return draft

    def _claim_id(self, draft: Draft, path: str) -> None:
        own, at = draft.id, draft.at
        if not own.strip() or len(own) > _LONGEST_ID or not own.isprintable():
            hint = f"use up to {_LONGEST_ID} characters in one line"
            self._problems.add(at, path, f"{own[:60]!r} is not a valid id; {hint}")
        first = self._first.setdefault(own, at)
        if first is not at or own in self.drafts.names:
            self._problems.add(
                at, path, f"there is already a task {own!r} on line {first.line}; use another id"
            )
        self.drafts.names[own] = (own,)

    def named(self) -> Drafts:
        """Return all tasks. Those without an id get one from the first words of their prompt."""
        names = self.drafts.names
        for draft in self._nameless:
            base = own = _slug(draft.found)
            count = 1
            while own in names:
                count += 1
                own = f"{base}-{count}"
            draft.id = own
            names[own] = (own,)
        self._check_questions()
        return self.drafts

    def _check_questions(self) -> None:
        """Reject tasks that have the id of a question: a question is a task of its own."""
        tasks = {draft.id: draft for draft in self.drafts.tasks}
        for draft in self.drafts.tasks:
            other = tasks.get(question_id(draft.id)) if draft.found.says("ask") else None
            if other is not None:
                text = f"this is the id of the question that {draft.id!r} asks; use another id"
                self._problems.add(other.at, other.found.field, text)


def _as_task(node: Node) -> MappingNode | None:
    """Return a task as a mapping. Text alone is a prompt."""
    if isinstance(node, MappingNode):
        return node
    if not isinstance(node, ScalarNode) or node.is_nothing:
        return None
    task = MappingNode(node.line, node.column)
    task.entries["prompt"] = (node, node)
    task.has_holes = "{{" in node.value
    return task


def _slug(found: RecordValues) -> str:
    text = str(found.get("prompt") or found.get("prompt_file") or found.get("agent") or "task")
    words = re.findall(r"[^\W_]+", text.lower())[:5]
    return "-".join(words)[:40].strip("-") or "task"
