"""What the parts of a run may ask of the shell that drives the kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from interlock.kernel import stimuli as s


class KernelDriver(Protocol):
    """Lets a part of the run have the kernel decide, without a way into the shell's state.

    The shell is the only implementation. A part that needs more says so in a protocol of its own.
    """

    def now(self) -> float:
        """Seconds since the run began: the kernel's time."""

    def take_in(self, stimulus: s.Stimulus) -> None:
        """Let the kernel decide. A UsageError means that nothing has changed."""

    def later(self, delay: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Call a function after a delay, unless the run has ended by then."""
