"""The client side of the control socket: send one request to the run in a folder."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from interlock.errors import NotRunning
from interlock.runtime.control import protocol
from interlock.runtime.control.protocol import NoReply, RequestRejected

_ENDED = "the run ended before it replied"


def ask(folder: Path, do: str, **details: Any) -> Any:
    """Send a request and return what the run replies.

    Raises NotRunning if no run is in progress, RequestRejected if the run refuses, and NoReply if
    it does not answer in time.
    """
    request = json.dumps({"do": do, **details}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(protocol.TIMEOUT)
        try:
            with protocol.socket_address(folder) as address:
                connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            raise NotRunning(f"no run is in progress in {folder.parent}") from None
        except OSError as error:
            raise NoReply(
                f"the run in {folder.parent} cannot be reached: {error.strerror or error}"
            ) from error
        reply = _exchange(connection, request)
    if "error" in reply:
        raise RequestRejected(reply["error"])
    return reply["ok"]


def _exchange(connection: socket.socket, request: bytes) -> dict[str, Any]:
    try:
        connection.sendall(request)
        with connection.makefile("rb") as replies:
            line = replies.readline()
        reply = protocol.decode_reply(line)
    except (OSError, ValueError) as error:
        if isinstance(error, ConnectionError):
            raise NotRunning(_ENDED) from error
        raise NoReply(f"the run did not reply ({error}); is its process suspended?") from error
    if not line:
        raise NotRunning(_ENDED)
    if not isinstance(reply, dict):
        raise NoReply("the run sent a reply that is not an object")
    return reply
