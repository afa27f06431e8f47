"""Whether two claims can be held at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from interlock.errors import InvalidOption
from interlock.model.claim import Claim, Mode
from interlock.model.patterns.overlap import overlap
from interlock.model.patterns.pattern import parse

_NO_CAPACITY: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two claims that exclude each other."""

    a: Claim
    b: Claim
    witness: str
    """A path that both match, or the name of the resource."""

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"{self.a} conflicts with {self.b}: both match {self.witness}"


def conflicts(
    a: Claim,
    b: Claim,
    capacity: Mapping[str, int] = _NO_CAPACITY,
    *,
    fold_case: bool = False,
) -> Conflict | None:
    """Return why two claims cannot be held together; None if they can.

    Paths conflict when at least one claim writes and their patterns overlap; `fold_case` is for
    file systems that ignore case. Names conflict when they are equal and one claim is exclusive,
    or when both amounts together exceed the `capacity`. A path and a name never conflict.
    """
    for claim in (a, b):
        if not isinstance(claim, Claim):
            raise InvalidOption(
                f"{claim!r} is not a claim; make one with read(), write() or uses()"
            )
    if a.is_path and b.is_path:
        witness = _shared_path(a, b, fold_case)
    else:
        witness = _shared_name(a, b, capacity)
    return None if witness is None else Conflict(a, b, witness)


def _shared_path(a: Claim, b: Claim, fold_case: bool) -> str | None:
    if a.mode is Mode.READ and b.mode is Mode.READ:
        return None
    return overlap(parse(a.resource, fold_case=fold_case), parse(b.resource, fold_case=fold_case))


def _shared_name(a: Claim, b: Claim, capacity: Mapping[str, int]) -> str | None:
    if a.is_path or b.is_path or a.resource != b.resource:
        return None
    if a.mode is Mode.EXCLUSIVE or b.mode is Mode.EXCLUSIVE:
        return a.resource
    limit = capacity.get(a.resource)
    return a.resource if limit is not None and a.amount + b.amount > limit else None
