"""Naming a process for good: pid, start time and boot.

A pid alone names a process only while it runs: the system gives the number to others afterwards.
Together with its start time it is unique within one boot of the system, and together with the boot
for ever.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache

from interlock.system.process_table import is_running, start_ticks


@cache
def boot_id() -> str:
    """Names this boot of the system; empty where the system does not tell (macOS)."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def process_started(pid: int) -> str | None:
    """Boot and start time of a process as one text; None if it does not run.

    Two processes with the same pid never have the same text.
    """
    if not _has_process_table():
        return _started_by_ps(pid)
    return f"{boot_id() or 'some boot'} {start_ticks(pid)}" if is_running(pid) else None


@cache
def _has_process_table() -> bool:
    return os.path.exists("/proc/self/stat")


def _started_by_ps(pid: int) -> str | None:  # pragma: no cover - systems without /proc
    told = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return told[1].strip() if len(told) == 2 and not told[0].startswith("Z") else None
