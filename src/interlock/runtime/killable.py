"""`interlock.process()` for patterns, which may not import execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock.execution.processes.process_agent import Process, process


def killable(step: Callable[..., Any]) -> Process[Any]:
    """An agent that runs a function in a process; raises if it cannot be sent there."""
    return process(step)
