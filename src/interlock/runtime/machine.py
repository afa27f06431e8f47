"""How busy this machine is."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any, Protocol

from interlock.execution.commands import launch as command_launch
from interlock.model.load import Load

_LEAST = 0.1
"""The system counts in hundredths of a second: over less than ten of them CPU use is noise."""


def containment() -> str:
    """How programs are kept together here, so that nothing of them is left when they are ended."""
    return command_launch.containment()


class LoadMeter(Protocol):
    """Measures the load, from its making on."""

    def read(self) -> Load:
        """The load now: CPU use is that since the last reading."""


class Machine:
    """The real load, from psutil."""

    def __init__(self) -> None:
        # Imported with the first gate: nobody else needs it.
        self._psutil: Any = import_module("psutil")
        self._at = time.monotonic()
        self._before = self._times()
        self._cpu: float | None = None

    def read(self) -> Load:
        """The load now."""
        at = time.monotonic()
        if at - self._at >= _LEAST:
            busy, total = self._times()
            passed = total - self._before[1]
            if passed > 0:
                self._cpu = min(100.0, max(0.0, 100 * (busy - self._before[0]) / passed))
            self._at, self._before = at, (busy, total)
        return Load(self._cpu, float(self._psutil.virtual_memory().percent))

    def _times(self) -> tuple[float, float]:
        """Seconds that all CPUs were busy, and all seconds, since the machine was started."""
        # Not psutil.cpu_percent: it measures since anybody's last call, also that of an agent.
        times = self._psutil.cpu_times()
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        total = sum(times) - guests  # which are part of `user` and `nice`
        return total - times.idle - getattr(times, "iowait", 0.0), total
