"""What a run was asked to do: kept beside its journal, so that it can be taken up without words."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

NAMESPACE = "interlock.requests"
"""Where requests are kept, by the id of their run."""


@dataclass(frozen=True, slots=True)
class Request:
    """One `interlock run` or `interlock delegate`."""

    plan: str = ""
    """The path of a plan file, from the project's folder; empty if there are texts instead."""
    texts: tuple[tuple[str, str], ...] = ()
    """Agent and prompt of each task, in order."""
    variables: dict[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    fail_fast: bool | None = None
    deadline: float | None = None
    max_parallel: int | None = None

    @property
    def title(self) -> str:
        """What to call it."""
        if self.plan:
            return self.plan
        return f"{len(self.texts)} task" + ("" if len(self.texts) == 1 else "s")

    def gone_on(self, only: tuple[str, ...], variables: dict[str, str]) -> Request:
        """What it was asked before, and what is said anew."""
        return replace(self, variables={**self.variables, **variables}, only=only or self.only)

    def with_options(self, **given: Any) -> Request:
        """The same with those options changed that somebody has given."""
        return replace(self, **{name: value for name, value in given.items() if value})

    def as_record(self) -> dict[str, Any]:
        """As the journal keeps it."""
        return asdict(self) | {"texts": [list(each) for each in self.texts]}


def from_record(record: Any) -> Request | None:
    """A request out of the journal; None if there is none that makes sense."""
    if not isinstance(record, dict):
        return None
    known = {each.name for each in fields(Request)}
    kept = {name: value for name, value in record.items() if name in known}
    kept["texts"] = tuple((agent, text) for agent, text in kept.get("texts", ()))
    kept["only"] = tuple(kept.get("only", ()))
    return Request(**kept)
