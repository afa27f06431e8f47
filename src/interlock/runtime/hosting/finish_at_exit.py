"""Finish the work of objects that were not shut down, before the program ends."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

from interlock.runtime.log import LOGGER


class Finishable(Protocol):
    """An object whose `shutdown()` finishes its work."""

    def shutdown(self, wait: bool = True) -> None: ...


_open: WeakSet[Finishable] = WeakSet()
_lock = threading.Lock()


def finish_at_exit(owner: Finishable) -> None:
    """Shut an object down once the main thread has ended, as concurrent.futures does."""
    with _lock:
        _open.add(owner)


def _finish() -> None:
    with _lock:
        owners = list(_open)
    for owner in owners:
        try:
            owner.shutdown()
        except Exception:  # noqa: BLE001 - a failure must not keep the others
            LOGGER.exception("work could not be finished at the end of the program")


# `atexit` is too late: from Python 3.12 on, no thread can be started by then. concurrent.futures
# uses the same hook.
_register: Callable[[Callable[[], None]], object]
_register = getattr(threading, "_register_atexit", atexit.register)
_register(_finish)
