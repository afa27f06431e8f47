"""What systems hand to a process: the way to `interlock.process()` from further down the rooms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock.execution.processes.process_agent import Process, process


def killable(step: Callable[..., Any]) -> Process[Any]:
    """An agent that does the same in a process of its own; raises for what cannot be sent there."""
    return process(step)
