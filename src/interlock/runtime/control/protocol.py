"""The protocol of the control socket, shared by `server` and `client`.

A connection carries one request and one reply, one line each: the request is plain JSON, an object
whose `do` names what is asked for; the reply is written as the journal writes, so that it can carry
records (`{"ok": …}`, or `{"error": …, "type": …}`). The socket lives in the run's folder and is
accessible to its owner only.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interlock.errors import InterlockError, UsageError
from interlock.journal.schema.codec import Codec

SOCKET = "control.sock"
MAX_REQUEST_BYTES = 1 << 22
"""Enough for a plan of prompts."""
TIMEOUT = 10.0
"""Seconds for the run to reply, and for a client to send its request."""
_MAX_ADDRESS_BYTES = 100
"""The kernel accepts 107 bytes as the path of a socket."""

_CODEC = Codec()


class RequestRejected(UsageError):
    """The run rejected a request; the message says why."""


class NoReply(InterlockError):
    """A run is in progress, but it does not reply."""


def encode_reply(reply: dict[str, Any]) -> bytes:
    """A reply as one line."""
    return _CODEC.dumps(reply).encode() + b"\n"


def decode_reply(line: bytes) -> Any:
    """The reply in a line. Raises ValueError if there is none."""
    return _CODEC.loads(line or b"null")


@contextlib.contextmanager
def socket_address(folder: Path) -> Iterator[str]:
    """The address of the socket in a folder, valid inside the block, short enough for the kernel.

    A path that is too long is reached through a descriptor of its folder.
    """
    path = str(folder / SOCKET)
    if len(os.fsencode(path)) <= _MAX_ADDRESS_BYTES or sys.platform != "linux":
        yield path
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
