"""Projects and plans as records, checked and complete: what the runtime works from.

Nothing in them has to be looked up in a file again. Defaults are filled in, variables replaced,
`for_each` expanded, and names of priorities turned into numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from interlock.model.claim import Claim, as_claims
from interlock.model.command import Command
from interlock.model.limits import Breaker, Rate, Retry
from interlock.model.load import Auto, Gate
from interlock.model.task import ONCE
from interlock.model.template import Template

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
GRACE: Final = 30.0


class Position(NamedTuple):
    """A position in a file. Line and column count from 1; 0: not in a file."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


NOWHERE: Final = Position()


def question_id(task_id: str) -> str:
    """Return the id of the task that asks whether another task may start."""
    return f"{task_id}?"


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent of the project file: a program (`command`) or a Python function (`python`).

    `uses` is what every task of this agent uses on top of its own: its limits and, with
    `instances`, one of `agent:NAME`, of which the project's `capacity` has that many. `timeout` and
    `retry` are already in each PlannedTask.
    """

    name: str
    command: Command | None = None
    python: str | None = None
    """`module:function`. Imported by the runtime, never here."""
    process: bool = False
    """A Python agent in a process of its own, which can be killed."""
    owns: tuple[str, ...] = ()
    instances: int | None = None
    workspace: str = "shared"
    guard: str = "none"
    uses: tuple[Claim, ...] = ()
    timeout: float | None = None
    retry: Retry | None = None
    secrets: tuple[str, ...] = ()
    """Names of the secret variables that this agent, and no other, is given."""
    description: str = ""
    position: Position = NOWHERE

    @property
    def takes_prompt(self) -> bool:
        """Whether the agent is given a prompt at all."""
        return self.command is None or self.command.takes_prompt


@dataclass(frozen=True, slots=True)
class Defaults:
    """Defaults for tasks. None: not set."""

    agent: str | None = None
    priority: int | None = None
    timeout: float | None = None
    deadline: float | datetime | None = None
    attempts: int | None = None
    backoff: float | None = None
    estimate: float | None = None
    workspace: str | None = None
    guard: str | None = None
    check: str | None = None
    output: str | None = None
    reads: tuple[str, ...] = ()
    """Added to those of each task; so are `uses` and `labels`."""
    uses: tuple[Claim, ...] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True)
class Project:
    """A project file, or the project of a folder without one (`Project(root=folder)`)."""

    root: Path
    """The folder of the project file: the workspace."""
    path: Path | None = None
    agents: Mapping[str, AgentSpec] = field(default_factory=lambda: NOTHING)
    max_parallel: int | Auto | None = None
    capacity: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    """Includes `agent:NAME` for agents with `instances`."""
    limits: Mapping[str, Rate | Breaker] = field(default_factory=lambda: NOTHING)
    priorities: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    protected: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Names of all variables whose values are secret, including those of agents."""
    env_file: str | None = None
    """Relative to `root`: the one named in the file, or `.env` if it exists."""
    gate: Gate | None = None
    grace: float = GRACE
    defaults: Defaults = field(default_factory=Defaults)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """One task of a plan, with the defaults of plan, agent and project filled in."""

    id: str
    agent: str
    """The name of one of the project's agents."""
    prompt: str | Template | None = None
    kwargs: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """Keyword arguments for a Python agent; `with` in the file."""
    writes: tuple[str, ...] | None = None
    """None: not set; `claims_of` knows what the task claims then."""
    reads: tuple[str, ...] = ()
    uses: tuple[Claim, ...] = ()
    """Those of the task itself; `AgentSpec.uses` comes on top."""
    after: tuple[str, ...] = ()
    """Includes the tasks that its prompt and its question refer to."""
    priority: int = 0
    timeout: float | None = None
    deadline: float | datetime | None = None
    retry: Retry = ONCE
    estimate: float | None = None
    workspace: str = "shared"
    guard: str = "none"
    check: str | None = None
    """A shell command that has to succeed afterwards."""
    output: str | None = None
    """`text`, `json` or `module:Type`."""
    ask: str | Template | None = None
    """A question that a person has to answer before the task starts."""
    labels: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan file, or the prompts given on the command line."""

    name: str
    tasks: tuple[PlannedTask, ...]
    """In the order of the file."""
    path: Path | None = None
    max_parallel: int | Auto | None = None
    fail_fast: bool = False
    deadline: float | None = None
    warnings: tuple[str, ...] = ()


def claims_of(task: PlannedTask, agent: AgentSpec) -> tuple[Claim, ...]:
    """Return all claims of a task.

    A program without `writes` claims what its agent owns; if that is nothing, the whole workspace,
    because it is unknown what it will touch. A Python agent claims only what it declares.
    """
    writes = task.writes
    if writes is None:
        writes = () if agent.command is None else agent.owns or ("**",)
    return as_claims(task.reads, writes, (*task.uses, *agent.uses))
