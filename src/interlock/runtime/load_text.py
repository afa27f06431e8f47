"""The load of the machine as text."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from interlock.runtime.machine import Machine

_GB = 2**30


class LoadText:
    """CPU and memory in use. Usable from any thread."""

    def __init__(self) -> None:
        self._psutil: Any = import_module("psutil")
        self._machine = Machine()
        self._lock = threading.Lock()

    def read(self) -> tuple[str | None, str]:
        """Return `45 %` and `2.3 of 16 GB`; no CPU use in the first tenth of a second."""
        with self._lock:
            cpu = self._machine.read().cpu
        memory = self._psutil.virtual_memory()
        used = (memory.total - memory.available) / _GB
        return (
            None if cpu is None else f"{cpu:.0f} %",
            f"{used:.1f} of {memory.total / _GB:.0f} GB",
        )
