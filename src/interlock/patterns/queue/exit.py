"""Queues that nobody shut down finish their work before the program ends."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

_LOG = logging.getLogger("interlock")


class Finishes(Protocol):
    """A queue."""

    def shutdown(self, wait: bool = True) -> None: ...


_QUEUES: WeakSet[Finishes] = WeakSet()
_LOCK = threading.Lock()


def finish_with_the_program(queue: Finishes) -> None:
    """Shut a queue down when the main thread has ended, as executors of the library are."""
    with _LOCK:
        _QUEUES.add(queue)


def _finish() -> None:
    with _LOCK:
        queues = list(_QUEUES)
    for queue in queues:
        try:
            queue.shutdown()
        except Exception:  # noqa: BLE001 - one that fails must not keep the others
            _LOG.exception("a queue could not be finished at the end of the program")


# What `atexit` calls comes too late: from 3.12 on no more threads can be started then. This is how
# concurrent.futures does it.
_register: Callable[[Callable[[], None]], object]
_register = getattr(threading, "_register_atexit", atexit.register)
_register(_finish)
