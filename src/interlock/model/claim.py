"""Claims: the paths a task reads or writes, and the named or counted resources it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath

from interlock.errors import InvalidOption

Patterns = str | PurePath | Iterable[str | PurePath]


class Mode(StrEnum):
    """How a claim holds its resource."""

    READ = "read"
    """A path, shared with other readers."""
    WRITE = "write"
    """A path, exclusively."""
    USE = "use"
    """A named resource: an amount where it has a capacity, otherwise shared with other users."""
    EXCLUSIVE = "exclusive"
    """A named resource, all of it, exclusively."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing a task touches. Make one with `read()`, `write()` or `uses()`."""

    resource: str
    mode: Mode
    amount: int = 1
    is_path: bool = field(init=False, compare=False, repr=False)
    """Whether the resource is a path pattern (otherwise it is a name)."""

    def __post_init__(self) -> None:
        if self.mode.__class__ is not Mode:
            object.__setattr__(self, "mode", _mode(self.mode))
        if self.amount.__class__ is not int or self.amount < 1:
            raise InvalidOption(
                f"{self.resource!r}: the amount must be a whole number above 0, not {self.amount!r}"
            )
        object.__setattr__(self, "is_path", self.mode in (Mode.READ, Mode.WRITE))

    def __str__(self) -> str:
        if self.is_path:
            return f"{self.mode} {self.resource}"
        if self.mode is Mode.EXCLUSIVE:
            return f"{self.resource}!"
        return self.resource if self.amount == 1 else f"{self.resource}={self.amount}"


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        raise InvalidOption(f"{text!r} is not a mode; use one of {', '.join(Mode)}") from None


def read(pattern: str | PurePath) -> Claim:
    """Claim the paths that a pattern matches, shared with other readers."""
    return Claim(_pattern(pattern), Mode.READ)


def write(pattern: str | PurePath) -> Claim:
    """Claim the paths that a pattern matches, exclusively."""
    return Claim(_pattern(pattern), Mode.WRITE)


def _pattern(value: str | PurePath) -> str:
    if isinstance(value, PurePath):
        return value.as_posix()
    if not isinstance(value, str):
        raise InvalidOption(f"a path pattern is text such as 'src/api/', not {value!r}")
    return value


def uses(name: str, amount: int = 1, *, exclusive: bool = False) -> Claim:
    """Claim a named resource: an amount of its capacity, or `exclusive` for all of it.

    A resource without a capacity is shared by all that use it and excluded by `exclusive`.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidOption(f"a resource needs a name, not {name!r}")
    if exclusive and amount != 1:
        raise InvalidOption(f"uses({name!r}): give an amount or exclusive=True, not both")
    return Claim(name.strip(), Mode.EXCLUSIVE if exclusive else Mode.USE, amount)


def uses_text(text: str) -> Claim:
    """Parse a `uses` claim as plans write it: `gpu`, `memory_mb=2048`, `db:staging!`."""
    if text.endswith("!"):
        return uses(text[:-1], exclusive=True)
    name, equals, amount = text.rpartition("=")
    if not equals:
        return uses(text)
    if not amount.strip().isdecimal():
        raise InvalidOption(f"{text!r}: write the amount as a whole number, such as {name}=2")
    return uses(name, int(amount))


def as_claims(
    reads: Patterns = (),
    writes: Patterns = (),
    uses: str | Claim | Iterable[str | Claim] = (),
) -> tuple[Claim, ...]:
    """Return the claims that the shorthands `reads`, `writes` and `uses` stand for."""
    for name, value in (("reads", reads), ("writes", writes), ("uses", uses)):
        if not isinstance(value, (str, PurePath, Claim, Iterable)):
            raise InvalidOption(f"{name} is {value!r}; give text or a list, or leave it out")
    listed = [write(pattern) for pattern in _many(writes)]
    listed += [read(pattern) for pattern in _many(reads)]
    listed = list(dict.fromkeys(listed))
    if isinstance(uses, Mapping):
        raise InvalidOption(f"uses is {uses!r}; write a list, such as ['gpu', 'memory_mb=2048']")
    for item in (uses,) if isinstance(uses, (str, Claim)) else uses:
        if isinstance(item, str):
            item = uses_text(item)
        elif not isinstance(item, Claim):
            raise InvalidOption(
                f"uses: {item!r} is not a claim; write 'gpu', 'gpu=2' or uses('gpu')"
            )
        listed.append(item)
    return tuple(listed)


def _many(value: Patterns) -> Iterable[str | PurePath]:
    return (value,) if isinstance(value, (str, PurePath)) else value
