"""Finish the work of queues that were not shut down, before the program ends."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

from interlock.runtime.log import LOGGER


class _Queue(Protocol):
    def shutdown(self, wait: bool = True) -> None: ...


_queues: WeakSet[_Queue] = WeakSet()
_lock = threading.Lock()


def finish_at_exit(queue: _Queue) -> None:
    """Shut a queue down once the main thread has ended, as the standard library's executors are."""
    with _lock:
        _queues.add(queue)


def _finish() -> None:
    with _lock:
        queues = list(_queues)
    for queue in queues:
        try:
            queue.shutdown()
        except Exception:  # noqa: BLE001 - a failure must not keep the other queues
            LOGGER.exception("a queue could not be finished at the end of the program")


# `atexit` is too late: from Python 3.12 on, no thread can be started by then. concurrent.futures
# uses the same hook.
_register: Callable[[Callable[[], None]], object]
_register = getattr(threading, "_register_atexit", atexit.register)
_register(_finish)
