"""What callers exchange with an executor: frozen models that validate themselves."""

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

from interlock.model.stable_names import stable_name

CANCELLED = "Cancelled"
TIMED_OUT = "Timed out after "
REFUSED = "Refused: "


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it must not be blank")
    return text


NotBlank = Annotated[str, AfterValidator(_not_blank)]


class _Model(BaseModel):
    """Frozen, and without extra fields: a misspelt option is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _drop_computed_fields(cls, data: Any) -> Any:
        """Accept the output of `model_dump`, which contains computed fields."""
        if isinstance(data, dict) and not cls.model_computed_fields.keys().isdisjoint(data):
            return {key: each for key, each in data.items() if key not in cls.model_computed_fields}
        return data


@stable_name("data.agent_assignment")
class AgentAssignment(_Model):
    """An agent and its task. Both may be any objects that have an `id`."""

    identity: Any
    task: Any
    completion_config: Any = None
    max_turns: int = Field(default=20, ge=1)
    timeout_seconds: float | None = Field(default=None, gt=0)
    memory_messages: tuple[Any, ...] = ()
    resource_claims: tuple[NotBlank, ...] = ()
    """Paths and patterns that no other agent may touch while this one runs."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for what, given in (("identity", self.identity), ("task", self.task)):
            if not str(getattr(given, "id", "")).strip():
                raise ValueError(f"{what} needs an id that is not blank: {given!r} has none")
        twice = _repeated(self.resource_claims)
        if twice:
            raise ValueError(f"resource_claims contains duplicates: {', '.join(twice)}")
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


@stable_name("data.parallel_execution_group")
class ParallelExecutionGroup(_Model):
    """Assignments that are executed together, at most `max_concurrency` at a time."""

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


@stable_name("data.agent_outcome")
class AgentOutcome(_Model):
    """How one assignment ended: the result of the engine, or the text of an error."""

    task_id: NotBlank
    agent_id: NotBlank
    result: Any = None
    error: NotBlank | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.result is None) == (self.error is None):
            raise ValueError("an outcome has a result or an error, and not both")
        if self.result is not None:
            mismatch = find_mismatch(self.result, self.task_id, self.agent_id)
            if mismatch:
                raise ValueError(mismatch)
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_success(self) -> bool:
        """Whether there is a result whose `is_success` is true."""
        return self.result is not None and bool(self.result.is_success)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def termination_reason(self) -> str:
        """The reason given by the result; without one, how the assignment ended, in one word."""
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


@stable_name("data.parallel_execution_result")
class ParallelExecutionResult(_Model):
    """The outcomes of a group, in the order of its assignments."""

    group_id: NotBlank
    outcomes: tuple[AgentOutcome, ...]
    total_duration_seconds: float = Field(ge=0)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def agents_succeeded(self) -> int:
        """How many assignments returned a success."""
        return sum(each.is_success for each in self.outcomes)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def agents_failed(self) -> int:
        """How many did not, including those that were cancelled or refused."""
        return len(self.outcomes) - self.agents_succeeded

    @computed_field  # type: ignore[prop-decorator]
    @property
    def all_succeeded(self) -> bool:
        """Whether no assignment failed."""
        return self.agents_failed == 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total_cost_usd(self) -> float:
        """The sum over all results, including those of failures."""
        results = [each.result for each in self.outcomes if each.result is not None]
        return sum((float(result.total_cost_usd) for result in results), 0.0)


@stable_name("data.parallel_progress")
class ParallelProgress(_Model):
    """The progress of a group. Counts that do not add up are rejected."""

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
                f"{self.succeeded} succeeded and {self.failed} failed, which does not add up to "
                f"{self.completed} completed"
            )
        if self.completed + self.in_progress > self.total:
            raise ValueError(
                f"{self.completed} completed and {self.in_progress} in progress are more than the "
                f"total of {self.total}"
            )
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def pending(self) -> int:
        """How many have not started: they wait for a slot."""
        return self.total - self.completed - self.in_progress


class ProgressCallback(Protocol):
    """Called on the event loop with every change of the counts; must be quick, is not awaited."""

    def __call__(self, progress: ParallelProgress, /) -> None: ...


def find_mismatch(result: Any, task_id: str, agent_id: str) -> str:
    """Say why this is not the result of that agent for that task; empty if it is."""
    try:
        result.is_success, result.total_cost_usd  # noqa: B018 - only whether they exist
        found_task, found_agent = result.task_id, result.agent_id
    except AttributeError:
        needed = ("is_success", "agent_id", "task_id", "total_cost_usd")
        missing = ", ".join(name for name in needed if not hasattr(result, name))
        return f"a {type(result).__name__} is not a result: it has no {missing}"
    if str(found_task) != task_id:
        return f"the result belongs to task {str(found_task)!r}, but {task_id!r} was executed"
    if str(found_agent) != agent_id:
        return f"the result belongs to agent {str(found_agent)!r}, but {agent_id!r} was executed"
    return ""


def _repeated(texts: Iterable[str]) -> list[str]:
    return sorted(text for text, count in Counter(texts).items() if count > 1)
