"""The load of the machine, and what follows from it: a gate, a number of slots between bounds."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.errors import InvalidOption


@dataclass(frozen=True, slots=True)
class Load:
    """CPU and memory in use, in percent. None: not measured yet."""

    cpu: float | None
    memory: float


@dataclass(frozen=True, slots=True)
class Gate:
    """Nothing starts while CPU or memory use is above this percentage, unless nothing runs."""

    cpu: float | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        if self.cpu is None and self.memory is None:
            raise InvalidOption("a Gate needs cpu=, memory= or both, in percent")
        for name, percent in (("cpu", self.cpu), ("memory", self.memory)):
            if percent is not None:
                _check_percent(name, percent)

    def lets_through(self, load: Load) -> bool:
        """Whether the load is low enough. What has not been measured yet counts as busy."""
        if self.cpu is not None and (load.cpu is None or load.cpu > self.cpu):
            return False
        return self.memory is None or load.memory <= self.memory


@dataclass(frozen=True, slots=True)
class Auto:
    """As many slots as the machine has room for, between `least` and `most`.

    While tasks wait and all slots are in use, each measurement adds one slot if CPU and memory use
    are at most these percentages. Above them, one slot fewer than are in use is left.
    """

    least: int = 1
    most: int = 16
    cpu: float = 80.0
    memory: float = 80.0

    def __post_init__(self) -> None:
        for name, slots in (("least", self.least), ("most", self.most)):
            if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
                raise InvalidOption(f"{name} is {slots!r}; it must be a whole number, 1 or more")
        if self.least > self.most:
            raise InvalidOption(f"at least {self.least} slots contradicts at most {self.most}")
        _check_percent("cpu", self.cpu)
        _check_percent("memory", self.memory)

    def slots(self, now: int, in_use: int, load: Load) -> int:
        """Return the number of slots after a measurement."""
        now = max(self.least, min(now, self.most))
        if load.cpu is None:
            return now
        if load.cpu > self.cpu or load.memory > self.memory:
            return max(self.least, min(now, in_use - 1))
        return min(self.most, now + 1) if in_use >= now else now


def _check_percent(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 100:
        raise InvalidOption(f"{name} is {value!r}; it must be above 0 and at most 100 percent")
