"""SIGINT, SIGTERM, SIGHUP: the first drains the run, the second stops it at once."""

from __future__ import annotations

import asyncio
import functools
import signal
import threading
from collections.abc import Callable
from typing import Any


class Signals:
    """Listens while a run goes on, unless somebody else already does."""

    def __init__(self, loop: asyncio.AbstractEventLoop, received: Callable[[int], None]) -> None:
        self._loop = loop
        self._received = received
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """Take over the signals that nobody has claimed; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            handler = signal.getsignal(number)
            if not _is_default(handler):
                continue  # a program's own handler knows better than we do
            try:
                self._loop.add_signal_handler(number, self._received, number)
            except (NotImplementedError, RuntimeError):
                return  # a loop or a platform without signals
            self._before[number] = handler

    def stop(self) -> None:
        """Give them back."""
        for number, handler in self._before.items():
            self._loop.remove_signal_handler(number)
            signal.signal(number, handler)
        self._before.clear()


def _is_default(handler: Any) -> bool:
    if handler in (signal.SIG_DFL, signal.default_int_handler):
        return True
    # asyncio.run() has put its own in: it cancels the main task, without letting anything finish.
    whose = getattr(handler.func, "__self__", None) if isinstance(handler, functools.partial) else 0
    return isinstance(whose, asyncio.Runner)


def error_for(number: int) -> BaseException:
    """What ends a program that such a signal has ended."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
