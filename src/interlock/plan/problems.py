"""Problems: everything that is wrong with a file, reported at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Final, NoReturn

from interlock.errors import PlanError
from interlock.plan.literal_secrets import hidden
from interlock.plan.node import Node

MOST: Final = 1_000
"""After this many problems reading stops."""
_LOOKED_AT: Final = 10_000
_NAMED: Final = 12


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where. Lines and columns count from 1; 0: not in the file."""

    file: str
    line: int
    column: int
    field: str
    """The key, such as `tasks.api.writes`; empty for the file as a whole."""
    text: str
    """What is wrong, and what to write instead."""
    suggestion: str = ""
    """What was probably meant."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        parts = [place, self.field, self.text] if self.field else [place, self.text]
        meant = f"; did you mean {self.suggestion!r}?" if self.suggestion else ""
        return ": ".join(parts) + meant


def _place(problem: Problem) -> tuple[int, int]:
    return problem.line, problem.column


class Problems:
    """Collects the problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: dict[tuple[int, str, str], Problem] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, at: Node | None, field: str, text: str, suggestion: str = "") -> None:
        """Add a problem. The same one in the same line is added once."""
        line, column = (at.line, at.column) if at is not None else (0, 0)
        problem = Problem(self.file, line, column, hidden(field), hidden(text), hidden(suggestion))
        self._found.setdefault((line, problem.field, problem.text), problem)
        if len(self._found) >= MOST:
            self.stop()

    def unknown(
        self,
        at: Node | None,
        field: str,
        name: str,
        text: str,
        known: Iterable[str],
        more: str = "",
    ) -> None:
        """Add the problem of an unknown name, with the known one that was probably meant."""
        listed = list(islice(known, _LOOKED_AT))
        close = get_close_matches(name, listed, n=1)
        if close:
            self.add(at, field, text, close[0])
            return
        shown = ", ".join(sorted(listed)[:_NAMED]) + (", ..." if len(listed) > _NAMED else "")
        there = f"; known: {shown}" if listed else "; none is defined"
        self.add(at, field, f"{text}{there}{more}")

    def refuse(self, at: Node | None, field: str, text: str) -> NoReturn:
        """Add a problem after which nothing can be read, and raise."""
        self.add(at, field, text)
        self.stop()

    def stop(self) -> NoReturn:
        """Raise PlanError with all problems."""
        in_order = sorted(self._found.values(), key=_place)
        raise PlanError(in_order)

    def raise_any(self) -> None:
        """Raise PlanError if there are problems."""
        if self._found:
            self.stop()


class SizeLimit:
    """How large a plan may become: a small file must not fill the memory of the machine."""

    def __init__(self, most: int, what: str) -> None:
        self._left = most
        self._what = what

    def take(self, amount: int, at: Node | None, field: str, problems: Problems) -> None:
        """Count more; raise with a problem if it is too much."""
        self._left -= amount
        if self._left < 0:
            problems.refuse(at, field, f"here the tasks expand to {self._what}; split the plan")
