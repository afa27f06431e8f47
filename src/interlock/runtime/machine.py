"""The load of this machine."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any, Protocol

from interlock.execution.commands import launch as command_launch
from interlock.model.load import Load

_LEAST = 0.1
"""Seconds. The system counts in hundredths: over fewer than ten of them CPU use is noise."""


def containment() -> str:
    """How the processes of a program are kept together here, so that all of them can be ended."""
    return command_launch.choose_containment()


class LoadMeter(Protocol):
    """Measures the load, from the moment it is made."""

    def read(self) -> Load:
        """The load now; CPU use is measured since the last reading."""


class Machine:
    """The real load, from psutil."""

    def __init__(self) -> None:
        # Imported with the first gate: runs without one do not need it.
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
        """Busy seconds and all seconds of all CPUs, since the machine was started."""
        # Not psutil.cpu_percent: it measures since the last call in this process, by any code.
        times = self._psutil.cpu_times()
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        total = sum(times) - guests  # which are part of `user` and `nice`
        return total - times.idle - getattr(times, "iowait", 0.0), total
