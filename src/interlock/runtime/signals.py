"""SIGINT, SIGTERM, SIGHUP: the first drains the run, the second stops it at once."""

from __future__ import annotations

import asyncio
import functools
import signal
import threading
from collections.abc import Callable
from typing import Any


class Signals:
    """Handles signals while a run goes on, unless the program handles them itself."""

    def __init__(self, loop: asyncio.AbstractEventLoop, received: Callable[[int], None]) -> None:
        self._loop = loop
        self._received = received
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """Install handlers for signals that have none; only the main thread can."""
        # Python runs signal handlers on the main thread, and refuses to install them elsewhere.
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            handler = signal.getsignal(number)
            if not _is_default(handler):
                continue  # the handler of the program takes precedence
            try:
                self._loop.add_signal_handler(number, self._received, number)
            except (NotImplementedError, RuntimeError):
                return  # a loop or a platform without signal handling
            self._before[number] = handler

    def stop(self) -> None:
        """Restore the handlers from before."""
        for number, handler in self._before.items():
            # asyncio restores the default of Python, not what was there before.
            self._loop.remove_signal_handler(number)
            signal.signal(number, handler)
        self._before.clear()


def _is_default(handler: Any) -> bool:
    if handler in (signal.SIG_DFL, signal.default_int_handler):
        return True
    # That of asyncio.run() cancels the main task without letting anything finish: replace it too.
    whose = getattr(handler.func, "__self__", None) if isinstance(handler, functools.partial) else 0
    return isinstance(whose, asyncio.Runner)


def error_for(number: int) -> BaseException:
    """The exception that ends a program after such a signal."""
    # 128 + number is how shells report a program that a signal has ended.
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
