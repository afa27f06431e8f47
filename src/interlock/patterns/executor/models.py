"""What an executor takes and returns: frozen models that check themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Protocol, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    computed_field,
    model_validator,
)

CANCELLED = "Cancelled"
TIMED_OUT = "Timed out after "
REFUSED = "Refused: "


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it must not be blank")
    return text


NotBlank = Annotated[str, AfterValidator(_not_blank)]


class _Model(BaseModel):
    """Frozen, and strict about names: a misspelt option must not be taken for a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_what_is_computed(cls, data: Any) -> Any:
        """What was dumped can be read again, although computed fields are among it."""
        if isinstance(data, dict) and not cls.model_computed_fields.keys().isdisjoint(data):
            return {key: each for key, each in data.items() if key not in cls.model_computed_fields}
        return data


class AgentAssignment(_Model):
    """An agent and the task it is to do. Both may be any objects that have an `id`."""

    identity: Any
    task: Any
    completion_config: Any = None
    max_turns: int = Field(default=20, ge=1)
    timeout_seconds: float | None = Field(default=None, gt=0)
    memory_messages: tuple[Any, ...] = ()
    resource_claims: tuple[NotBlank, ...] = ()
    """Paths and patterns that no other agent may touch meanwhile."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for what, whom in (("identity", self.identity), ("task", self.task)):
            if not str(getattr(whom, "id", "")).strip():
                raise ValueError(f"{what} needs an id that is not blank: {whom!r} has none")
        twice = _repeated(self.resource_claims)
        if twice:
            raise ValueError(f"resource_claims has these twice: {', '.join(twice)}")
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def agent_id(self) -> str:
        """The id of the identity, as text."""
        return str(self.identity.id)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def task_id(self) -> str:
        """The id of the task, as text."""
        return str(self.task.id)


class ParallelExecutionGroup(_Model):
    """Assignments to be executed together, at most `max_concurrency` of them at a time."""

    group_id: NotBlank
    assignments: tuple[AgentAssignment, ...] = Field(min_length=1)
    max_concurrency: int | None = Field(default=None, ge=1)
    fail_fast: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        for what in ("task_id", "agent_id"):
            twice = _repeated(getattr(each, what) for each in self.assignments)
            if twice:
                raise ValueError(f"several assignments have the same {what}: {', '.join(twice)}")
        return self


class AgentOutcome(_Model):
    """How one assignment ended: what the engine returned, or the text of an error."""

    task_id: NotBlank
    agent_id: NotBlank
    result: Any = None
    error: NotBlank | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.result is None) == (self.error is None):
            raise ValueError("an outcome has a result or an error, and not both")
        if self.result is not None:
            wrong = problem_of(self.result, self.task_id, self.agent_id)
            if wrong:
                raise ValueError(wrong)
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_success(self) -> bool:
        """Whether there is a result, and it says that it is a success."""
        return self.result is not None and bool(self.result.is_success)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def termination_reason(self) -> str:
        """What the result says about it; else how it ended, in one word."""
        if self.error is None:
            reason = getattr(self.result, "termination_reason", None)
            if reason is None:
                return "succeeded" if self.is_success else "failed"
            return str(getattr(reason, "value", reason))
        if self.error == CANCELLED:
            return "cancelled"
        if self.error.startswith(TIMED_OUT):
            return "timed_out"
        return "refused" if self.error.startswith(REFUSED) else "failed"


class ParallelExecutionResult(_Model):
    """The outcomes of a group, in the order of its assignments."""

    group_id: NotBlank
    outcomes: tuple[AgentOutcome, ...]
    total_duration_seconds: float = Field(ge=0)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def agents_succeeded(self) -> int:
        """How many returned a success."""
        return sum(each.is_success for each in self.outcomes)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def agents_failed(self) -> int:
        """All others: those that were cancelled or refused as well."""
        return len(self.outcomes) - self.agents_succeeded

    @computed_field  # type: ignore[prop-decorator]
    @property
    def all_succeeded(self) -> bool:
        """Whether nobody failed."""
        return self.agents_failed == 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total_cost_usd(self) -> float:
        """What all results have cost, those of failures included."""
        results = [each.result for each in self.outcomes if each.result is not None]
        return sum((float(result.total_cost_usd) for result in results), 0.0)


class ParallelProgress(_Model):
    """How far a group is. The counts add up, or there is no such object."""

    group_id: NotBlank
    total: int = Field(ge=0)
    completed: int = Field(ge=0)
    in_progress: int = Field(ge=0)
    succeeded: int = Field(ge=0)
    failed: int = Field(ge=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.succeeded + self.failed != self.completed:
            raise ValueError(
                f"{self.succeeded} succeeded and {self.failed} failed, which is not the number "
                f"completed ({self.completed})"
            )
        if self.completed + self.in_progress > self.total:
            raise ValueError(
                f"{self.completed} completed and {self.in_progress} in progress are more than "
                f"there are ({self.total})"
            )
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def pending(self) -> int:
        """How many have not begun: they wait for their turn."""
        return self.total - self.completed - self.in_progress


class ProgressCallback(Protocol):
    """Told of every step of a group, on the event loop: it must be quick, and is not awaited."""

    def __call__(self, progress: ParallelProgress, /) -> None: ...


def problem_of(result: Any, task_id: str, agent_id: str) -> str:
    """Why this cannot be the result of that agent for that task; empty if it can."""
    try:
        result.is_success, result.total_cost_usd  # noqa: B018 - only whether they are there
        found_task, found_agent = result.task_id, result.agent_id
    except AttributeError:
        needed = ("is_success", "agent_id", "task_id", "total_cost_usd")
        missing = ", ".join(name for name in needed if not hasattr(result, name))
        return f"a {type(result).__name__} is no result: it has no {missing}"
    if str(found_task) != task_id:
        return f"the result is that of task {str(found_task)!r}, but {task_id!r} was executed"
    if str(found_agent) != agent_id:
        return f"the result is that of agent {str(found_agent)!r}, but {agent_id!r} was asked"
    return ""


def _repeated(texts: Iterable[str]) -> list[str]:
    return sorted(text for text, count in Counter(texts).items() if count > 1)
