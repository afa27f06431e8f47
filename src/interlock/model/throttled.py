"""Reasons to grant less than there is: a breaker, a gate, a busy machine.

They are apart from the other reasons of `model/why.py` because they are also journaled: the runtime
measures them and passes them to the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from interlock.model.duration import span
from interlock.model.load import Load
from interlock.model.naming import Naming


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """Too many consecutive failures; at `until` (now, if null) one attempt may try."""

    kind: ClassVar[str] = "open_breaker"

    resource: str
    failures: int
    last: str
    """How the last of them failed."""
    since: float
    until: float | None

    def describe(self, now: float) -> str:
        row = f"{self.failures} failures in a row, the last one: {self.last}"
        if self.until is None:
            return (
                f"{self.resource} has been half-open for {span(now - self.since)}: "
                f"one attempt has to succeed before others may start ({row})"
            )
        return (
            f"{self.resource} has been open for {span(now - self.since)}: {row}; "
            f"one attempt may try in {span(self.until - now)}"
        )

    def summarize(self, now: float, name: Naming = str) -> str:
        following = "is running" if self.until is None else f"in {span(self.until - now)}"
        return f"{self.resource}: {self.failures} failures in a row, next try {following}"


@dataclass(frozen=True, slots=True)
class ClosedGate:
    """The machine is busier than the gate allows, so nothing starts until something has ended."""

    kind: ClassVar[str] = "closed_gate"

    load: Load
    cpu: float | None
    memory: float | None
    since: float

    def describe(self, now: float) -> str:
        return (
            f"the gate has been closed for {span(now - self.since)}: "
            f"{_figures(self.load, self.cpu, self.memory)}"
        )

    def summarize(self, now: float, name: Naming = str) -> str:
        return "the machine is too busy (gate)"


@dataclass(frozen=True, slots=True)
class LoadedMachine:
    """The load of the machine allows fewer slots than there could be."""

    kind: ClassVar[str] = "loaded_machine"

    slots: int
    least: int
    most: int
    load: Load
    cpu: float
    memory: float
    since: float

    def describe(self, now: float) -> str:
        return (
            f"the load has allowed only {self.slots} of {self.most} slots for "
            f"{span(now - self.since)}: {_figures(self.load, self.cpu, self.memory)}"
        )

    def summarize(self, now: float, name: Naming = str) -> str:
        return f"the load allows {self.slots} of {self.most} slots"


def _figures(load: Load, cpu: float | None, memory: float | None) -> str:
    figures = []
    if cpu is not None:
        used = "not measured yet" if load.cpu is None else f"at {load.cpu:.0f} %"
        figures.append(f"CPU {used} (at most {cpu:g} %)")
    if memory is not None:
        figures.append(f"memory at {load.memory:.0f} % (at most {memory:g} %)")
    return ", ".join(figures)
