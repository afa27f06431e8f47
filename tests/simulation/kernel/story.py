"""Stories for simulated worlds: what is submitted, what each agent does, what goes wrong.

A story is plain data made from a seed before anything runs, so that a failing one can be shortened
and replayed.
"""

from __future__ import annotations

from typing import NamedTuple

from interlock.kernel import stimuli as event
from interlock.model.claim import Claim
from interlock.model.limits import Rate
from interlock.model.outcome import State
from interlock.model.task import Task


class WorldStep(NamedTuple):
    """One thing an agent does after working for a while."""

    after: float
    kind: str
    claims: tuple[Claim, ...] = ()
    children: tuple[WorldPlan, ...] = ()
    patience: float = 0.0
    """How long until a question is answered, or until a waiting agent dies; 0 for never."""
    used: int = 1
    """How much a take uses in the end."""
    beside: bool = False
    """Whether the agent goes on to its next step without waiting for the answer to this one."""
    group: str = ""
    """The group of the children."""
    gives_up: float | None = None
    """How long until it withdraws the request, answered or not; None for never."""
    others: tuple[str, ...] = ()
    """The tasks, other than its children, that it waits for; unknown ones are skipped."""


class Behaviour(NamedTuple):
    """What an agent does with one attempt."""

    steps: tuple[WorldStep, ...] = ()
    work: float = 0.0
    """How long it works after the last step."""
    status: State = State.SUCCEEDED
    retryable: bool = True
    retry_after: float = 0.0
    chance: float = 0.0
    lag: float = 0.0
    """How long after its end it is gone."""
    deaf: float = 0.0
    """How long it goes on after it was told to stop."""
    last_words: str = ""
    """What it reports when told to stop: nothing, `failed`, or `finishes` (it ignores it)."""
    vanishes: bool = False
    """Whether it disappears at the end without having reported an outcome."""
    careless: bool = False
    """Whether it ends without waiting for its open requests."""
    echo: bool = False
    """Whether each of its reports comes twice."""


class WorldPlan(NamedTuple):
    """A task with what its agent will do; the last behaviour repeats."""

    task: Task
    attempts: tuple[Behaviour, ...]


class Operation(NamedTuple):
    """Something that comes from outside at a time: a submission or any other stimulus."""

    at: float
    kind: str
    plans: tuple[WorldPlan, ...] = ()
    stimulus: event.Stimulus | None = None
    detail: str = ""


class WorldStory(NamedTuple):
    """A whole story."""

    seed: int
    slots: int
    capacities: dict[str, int]
    rates: dict[str, Rate]
    operations: tuple[Operation, ...]
    protected: tuple[str, ...] = ()
    lateness: float = 0.0
    """How late the clock's ticks come."""
    batched: bool = False
    """Whether the reports of one moment come all at once."""
    fold_case: bool = False
    """Whether paths that differ only in case are the same."""
