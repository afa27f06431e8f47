"""The story of a run, as plain data: what a user asks for and when, and what the agents do."""

from __future__ import annotations

from typing import Literal, NamedTuple

from interlock.model.claim import Claim
from interlock.model.limits import Rate
from interlock.model.task import Task

AgentPlace = Literal["loop", "thread", "process"]


class RunStep(NamedTuple):
    """Something an agent does; which fields matter depends on the kind."""

    kind: str
    seconds: float = 0.0
    patience: float | None = None
    """How long to wait for what is asked for before giving up; None: for ever."""
    claims: tuple[Claim, ...] = ()
    path: str = ""
    plans: tuple[RunPlan, ...] = ()
    tasks: tuple[str, ...] = ()
    amount: int = 0
    steps: tuple[RunStep, ...] = ()


Course = tuple[RunStep, ...]
"""What an agent does in one attempt."""


class RunPlan(NamedTuple):
    """A task, and what its agent does in its first attempt, its second, ...; the last repeats."""

    task: Task
    courses: tuple[Course, ...]
    place: AgentPlace = "loop"
    swallows: int = 0
    given: tuple[str, ...] = ()
    """Tasks whose handles are among its arguments."""


class Act(NamedTuple):
    """Something the user does at a time."""

    at: float
    kind: str
    plans: tuple[RunPlan, ...] = ()
    task_id: str = ""
    patience: float | None = None
    fail_fast: bool = False
    deadline: float | None = None
    name: str = ""
    amount: int = 0


class RunStory(NamedTuple):
    """A run from its start to its end."""

    seed: int
    slots: int
    capacity: dict[str, int]
    limits: dict[str, Rate]
    grace: float
    acts: tuple[Act, ...]
    leaves: Literal["at once", "last"] = "last"
    """Whether the block is left after the last act, or once all callers have been answered."""
    answers_after: float = 1.0
    """How long the person takes to answer a question."""
    journal_takes: float = 0.0
    """How long the journal takes to make something durable; 0: it does so at once."""
    bad_listener: bool = False
    then: tuple[RunPlan, ...] = ()
    """What the next run on the same workspace does, if attempts were left alive."""
    strikes_at: int = 0
    """From this step on, the first step of an async agent is cancelled, from outside."""


def all_plans(plans: tuple[RunPlan, ...]) -> dict[str, RunPlan]:
    """These plans and those of their children, by id."""
    found: dict[str, RunPlan] = {}
    for plan in plans:
        found[plan.task.id] = plan
        for course in plan.courses:
            for step in course:
                found |= all_plans(step.plans)
    return found
