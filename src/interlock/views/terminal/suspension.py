"""Ctrl-Z: restores the terminal before the program stops, and takes it again afterwards."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType


class Suspension:
    """Calls `before` and `after` around a stop by Ctrl-Z."""

    def __init__(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        self._before = before
        self._after = after
        self._watching = False

    def watch(self) -> None:
        """Handle Ctrl-Z from now on, in the main thread and if there is no other handler."""
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            signal.signal(signal.SIGTSTP, self._stop)
            self._watching = True

    def leave(self) -> None:
        """Handle Ctrl-Z no more."""
        if self._watching and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            self._watching = False

    def _stop(self, number: int, _: FrameType | None) -> None:
        self._before()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # the process stops here, and continues with `fg`
        signal.signal(number, self._stop)
        self._after()
