"""Waiting for what the system is short of: descriptors, processes, memory.

A shortage is not the failure of a task: it may be over as soon as another attempt has ended.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TypeVar

try:
    import resource
except ImportError:  # pragma: no cover - Windows
    resource = None  # type: ignore[assignment]

_SHORT_OF = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS})
Made = TypeVar("Made")
_ENOUGH = 1 << 16
"""Descriptors that suffice; each agent takes five of ours."""
_MOST_ON_MACOS = 10_240

PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, *[3.0] * 200)
"""Seconds before each further try: ten minutes in all, in which other attempts may end."""
_STEP = 0.1
_line = threading.Lock()


def is_shortage(number: int | None) -> bool:
    """Whether an error number stands for a shortage that may pass."""
    return number in _SHORT_OF


def retry_while_short(make: Callable[[], Made], wait: Callable[[float], bool]) -> Made:
    """Make something, and try again while the system is short of resources.

    `wait` waits for some seconds, and returns whether to give up. A `make` that fails must leave
    nothing open. Callers that have to wait do so in line: they are served one after the other, as
    other attempts end.
    """
    try:
        return make()
    except OSError as error:
        if not is_shortage(error.errno):
            raise
        while not _line.acquire(timeout=_STEP):
            if wait(0):
                raise
    try:
        return _make_in_turn(make, wait)
    finally:
        _line.release()


def _make_in_turn(make: Callable[[], Made], wait: Callable[[float], bool]) -> Made:
    for pause in PAUSES:
        try:
            return make()
        except OSError as error:
            if not is_shortage(error.errno) or wait(pause):
                raise
    return make()


@cache
def raise_limit_of_files() -> int:
    """Raise the number of descriptors that this process may have.

    Returns the limit before, which is meant for the programs that it starts; 0 if nothing has
    changed. The usual 1,024 are there for programs that use `select`, which we do not. They are too
    few for 200 agents at once.
    """
    if resource is None:  # pragma: no cover - Windows
        return 0
    had, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (_ENOUGH, _MOST_ON_MACOS):
        wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        if had == resource.RLIM_INFINITY or wanted <= had:
            break
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
            return had
    return 0
