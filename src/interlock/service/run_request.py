"""What a run was asked to do. The journal keeps it, so that `--resume` needs no arguments."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

NAMESPACE = "interlock.requests"
"""The journal keeps requests under this name, by the id of their run."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One `interlock run` or `interlock delegate`."""

    plan: str = ""
    """The path of a plan file, relative to the project's folder; empty if there are prompts."""
    texts: tuple[tuple[str, str], ...] = ()
    """Agent and prompt of each task, in order."""
    variables: dict[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    fail_fast: bool | None = None
    deadline: float | None = None
    max_parallel: int | None = None

    @property
    def title(self) -> str:
        """The name under which views show the run."""
        if self.plan:
            return self.plan
        return f"{len(self.texts)} task" + ("" if len(self.texts) == 1 else "s")

    def continued(self, only: tuple[str, ...], variables: dict[str, str]) -> RunRequest:
        """The request, changed by what is given on the command line when the run is resumed."""
        return replace(self, variables={**self.variables, **variables}, only=only or self.only)

    def with_options(self, **given: Any) -> RunRequest:
        """The same request with those options changed that were given."""
        return replace(self, **{name: value for name, value in given.items() if value})

    def as_record(self) -> dict[str, Any]:
        """The form in which the journal keeps it."""
        return asdict(self) | {"texts": [list(each) for each in self.texts]}


def from_record(record: Any) -> RunRequest | None:
    """The request that a journal has kept; None if there is none, or none that can be read."""
    if not isinstance(record, dict):
        return None
    known = {each.name for each in fields(RunRequest)}
    kept = {name: value for name, value in record.items() if name in known}
    kept["texts"] = tuple((agent, text) for agent, text in kept.get("texts", ()))
    kept["only"] = tuple(kept.get("only", ()))
    return RunRequest(**kept)
