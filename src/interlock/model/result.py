"""The outcomes of tasks that were run together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from interlock.errors import RunFailed, UnknownTask
from interlock.model.duration import span
from interlock.model.outcome import Outcome
from interlock.model.stable_names import stable_name


@stable_name("data.run_result")
@dataclass(frozen=True, slots=True)
class RunResult:
    """One outcome for each task, in the order in which the tasks were given."""

    outcomes: tuple[Outcome[Any], ...]
    duration: float
    """Seconds from submission to the last outcome."""
    ids: tuple[str, ...] = field(repr=False, compare=False)
    """The ids under which the tasks were given."""
    _by_id: dict[str, Outcome[Any]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", dict(zip(self.ids, self.outcomes, strict=True)))

    def __getitem__(self, task_id: str) -> Outcome[Any]:
        try:
            return self._by_id[task_id]
        except KeyError:
            raise UnknownTask(f"no task of this run has the id {task_id!r}") from None

    def __str__(self) -> str:
        good = len(self.outcomes) - len(self.failures)
        head = f"{good} of {len(self.outcomes)} tasks succeeded in {span(self.duration)}"
        return "\n".join([head, *(f"  {each}" for each in self.outcomes)])

    def __iter__(self) -> Iterator[Outcome[Any]]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def failures(self) -> tuple[Outcome[Any], ...]:
        """The outcomes of all tasks that did not succeed, for whatever reason."""
        return tuple(each for each in self.outcomes if not each.succeeded)

    @property
    def all_succeeded(self) -> bool:
        """Whether every task succeeded; True for a run without tasks."""
        return not self.failures

    @property
    def speedup(self) -> float:
        """How many times longer the tasks would have taken one after another, with backoffs."""
        one_by_one = sum(each.duration for each in self.outcomes)
        return one_by_one / self.duration if self.duration > 0 else 1.0

    def raise_for_failures(self) -> None:
        """Raise RunFailed with all failures, unless all tasks succeeded."""
        failures = self.failures
        if failures:
            raise RunFailed(failures, len(self.outcomes))
