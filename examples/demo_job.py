"""The job of the demo: thirteen tasks, what each of them claims, and a witness who was there."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import demo_agents as agents
from interlock import Claim, Retry, Task, TaskContext, conflicts


def tasks(pace: float, *, fix: bool = False) -> list[Task]:
    """All tasks of the job; `pace` stretches the pauses in which agents would ask a model."""

    def task(id: str, agent: Any, seconds: float, *args: Any, **options: Any) -> Task:
        paced = (*args, seconds * pace)
        return Task(id, agent, args=paced, estimate=seconds * pace, **options)

    formula = agents.RIGHT if fix else agents.SLIP
    schema = {"after": "schema", "reads": "schema.json"}
    return [
        task("schema", agents.write_schema, 0.8, formula, writes="schema.json"),
        task("code", agents.write_code, 1.8, writes="src/", **schema),
        task("tests", agents.write_tests, 1.2, writes="tests/", **schema),
        task("length", agents.write_page, 1.0, "length", writes="docs/length.md", **schema),
        task("mass", agents.write_page, 0.6, "mass", writes="docs/mass.md", **schema),
        task("heat", agents.write_page, 1.4, "heat", writes="docs/heat.md", **schema),
        task(
            "german",
            agents.translate,
            1.2,
            after="length",
            reads="docs/length.md",
            writes="docs/de/",
            retry=Retry(attempts=3, backoff=0.6 * pace, jitter=0),
        ),
        task("index", agents.write_index, 1.4, after=["length", "mass", "heat"], writes="docs/**"),
        task(
            "docstrings",
            agents.write_docstrings,
            1.2,
            after="code",
            writes="src/**/*.py",
            priority=1,  # before those who only read what it will change
        ),
        task("compile", agents.compile_code, 1.2, after="code", reads="src/", writes="build/"),
        task("check", agents.run_tests, 1.0, after=["code", "tests"], reads=["src/", "tests/"]),
        task("package", agents.pack, 0.8, after=["check"], reads="src/", writes="dist/"),
        task(
            "announce",
            agents.announce,
            0.6,
            after=["package"],
            reads="dist/",
            writes="docs/news.md",
        ),
    ]


class Span(NamedTuple):
    """From when to when an attempt was at work, by its own clock."""

    task_id: str
    began: float
    ended: float


class Witness:
    """Stands beside every agent with a clock, and takes nobody else's word for anything."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def watch(self, task: Task) -> Task:
        """The same task with its agent watched."""
        return task.replace(agent=self._watched(task.id, task.agent))

    def _watched(self, task_id: str, agent: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(agent)
        async def on_the_loop(ctx: TaskContext, *args: Any) -> Any:
            began = time.monotonic()
            try:
                return await agent(ctx, *args)
            finally:
                self.spans.append(Span(task_id, began, time.monotonic()))

        @functools.wraps(agent)
        def in_a_thread(ctx: TaskContext, *args: Any) -> Any:
            began = time.monotonic()
            try:
                return agent(ctx, *args)
            finally:
                self.spans.append(Span(task_id, began, time.monotonic()))

        return on_the_loop if inspect.iscoroutinefunction(agent) else in_a_thread


def conflicting(tasks: Sequence[Task]) -> list[tuple[str, str]]:
    """The pairs of tasks that may never be at work at the same time."""
    return [(a.id, b.id) for a, b in combinations(tasks, 2) if _conflict(a.claims, b.claims)]


def _conflict(ours: Sequence[Claim], theirs: Sequence[Claim]) -> bool:
    return any(conflicts(mine, their) for mine in ours for their in theirs)


def overlaps(pairs: Sequence[tuple[str, str]], spans: Sequence[Span]) -> list[tuple[Span, Span]]:
    """Attempts of such pairs that were at work at the same time: there should be none."""
    return [
        (one, other)
        for one, other in combinations(sorted(spans, key=lambda span: span.began), 2)
        if other.began < one.ended
        and ((one.task_id, other.task_id) in pairs or (other.task_id, one.task_id) in pairs)
    ]
