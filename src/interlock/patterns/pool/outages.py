"""Which failures mean that a model is down, and not that its agent made an error."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import Any

from interlock.errors import AgentFailed
from interlock.runtime.limits.llm_answers import http_status, retry_after

_TOO_MANY_REQUESTS = 429
_UNREACHABLE = {errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH}
_NAMES = ("ConnectionError", "ConnectError", "ConnectTimeout", "RateLimit", "Overloaded")
"""Parts of the names of such errors in model and HTTP libraries, which are not imported here."""


def is_outage(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, means an outage.

    That is: a connection error, HTTP 429 or 5xx, and a failure that names a rate or a time to wait.
    """
    return any(_means_outage(each) for each in _with_causes(error))


def _means_outage(error: BaseException) -> bool:
    if isinstance(error, AgentFailed) and (error.rate or error.retry_after):
        return True
    if isinstance(error, ConnectionError | socket.gaierror):
        return True
    if isinstance(error, OSError) and error.errno in _UNREACHABLE:
        return True
    if any(name in kind.__name__ for kind in type(error).__mro__ for name in _NAMES):
        return True
    status: Any = http_status(error)
    if isinstance(status, int) and (status == _TOO_MANY_REQUESTS or 500 <= status <= 599):
        return True
    return retry_after(error) > 0


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, the errors in its groups, and their causes; each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting.append(each.__cause__)
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
