"""Why less is given out than there is: a breaker, a gate, a machine that is busy."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.model.duration import span
from interlock.model.load import Load


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """What uses it failed too often in a row. At `until`, or now if there is none, one may try."""

    resource: str
    failures: int
    last: str
    """How the last of them failed."""
    since: float
    until: float | None

    def said(self, now: float) -> str:
        row = f"{self.failures} failures in a row, the last one: {self.last}"
        if self.until is None:
            one = "one attempt has to succeed before others may start"
            return f"{self.resource} is half-open for {span(now - self.since)}: {one} ({row})"
        return (
            f"{self.resource} is open for {span(now - self.since)}: {row}; "
            f"one attempt may try in {span(self.until - now)}"
        )


@dataclass(frozen=True, slots=True)
class ClosedGate:
    """The machine is busier than the gate allows; something runs, so nothing more starts."""

    load: Load
    cpu: float | None
    memory: float | None
    since: float

    def said(self, now: float) -> str:
        return (
            f"the gate is closed for {span(now - self.since)}: "
            f"{_figures(self.load, self.cpu, self.memory)}"
        )


@dataclass(frozen=True, slots=True)
class LoadedMachine:
    """Of the slots there could be, the load allows so many now."""

    slots: int
    least: int
    most: int
    load: Load
    cpu: float
    memory: float
    since: float

    def said(self, now: float) -> str:
        return (
            f"the load allows {self.slots} of {self.most} slots for {span(now - self.since)}: "
            f"{_figures(self.load, self.cpu, self.memory)}"
        )


def _figures(load: Load, cpu: float | None, memory: float | None) -> str:
    said = []
    if cpu is not None:
        used = "not measured yet" if load.cpu is None else f"at {load.cpu:.0f} %"
        said.append(f"CPU {used} (at most {cpu:g} %)")
    if memory is not None:
        said.append(f"memory at {load.memory:.0f} % (at most {memory:g} %)")
    return ", ".join(said)
