"""The server side of the control socket: listens while a run is in progress.

The socket is for its owner only: its mode is 0600, and a connection by another user is closed
without a reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from interlock.errors import InterlockError, UsageError
from interlock.runtime.control import protocol
from interlock.runtime.control.protocol import MAX_REQUEST_BYTES, SOCKET

Answer = Callable[[dict[str, Any]], Awaitable[Any]]


class ControlServer:
    """Listens while the block is entered. Early requests wait until `answer_with` is called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._answer: Answer | None = None
        self._listening = socket.socket(socket.AF_UNIX)
        self._bound: os.stat_result | None = None
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> ControlServer:
        path = self._folder / SOCKET
        before = os.umask(0o177)
        try:
            self._remove_stale()
            with protocol.socket_address(self._folder) as address:
                self._listening.bind(address)
            self._bound = path.lstat()
            self._listening.listen()
        except OSError as error:
            self._listening.close()
            raise UsageError(
                f"the control socket {path} cannot be created ({error.strerror}); "
                "without it, commands in other terminals could not reach this run"
            ) from error
        finally:
            os.umask(before)
        return self

    async def answer_with(self, answer: Answer) -> None:
        """Pass every request to `answer` from now on; what it returns is the reply."""
        self._answer = answer
        options: dict[str, Any] = {"limit": MAX_REQUEST_BYTES, "start_serving": True}
        if sys.version_info >= (3, 13):
            # asyncio would remove the socket by the address it was bound to. That address may be a
            # descriptor that is closed by now, and `_unlink` checks first that the socket is ours.
            options["cleanup_socket"] = False
        self._server = await asyncio.start_unix_server(self._serve, sock=self._listening, **options)

    async def __aexit__(self, *_: object) -> None:
        self._unlink()
        if self._server is None:
            self._listening.close()
        else:
            self._server.close()
        for each in self._serving:
            each.cancel()  # it has not received its request yet
        if self._serving:
            await asyncio.wait(self._serving)

    def _remove_stale(self) -> None:
        """Remove the socket of a dead run. The folder is locked, so it should be dead: check."""
        path = self._folder / SOCKET
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                return
            with (
                socket.socket(socket.AF_UNIX) as connection,
                protocol.socket_address(self._folder) as address,
            ):
                connection.setblocking(False)
                try:
                    connection.connect(address)
                except ConnectionRefusedError:
                    path.unlink()

    def _unlink(self) -> None:
        """Remove our socket, and only ours: the next run may have put its own there already."""
        path = self._folder / SOCKET
        with contextlib.suppress(OSError):
            if self._bound is not None and os.path.samestat(path.lstat(), self._bound):
                path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        try:
            if not _is_same_user(writer.get_extra_info("socket")):
                return
            async with asyncio.timeout(protocol.TIMEOUT):
                line = await _read_request(reader)
            writer.write(protocol.encode_reply(await self._reply(line)))
            async with asyncio.timeout(protocol.TIMEOUT):
                await writer.drain()
        except (OSError, ValueError, TimeoutError, asyncio.CancelledError):
            return  # the client hung up, or never sent a request: it gets no reply
        finally:
            writer.close()

    async def _reply(self, line: bytes | None) -> dict[str, Any]:
        if line is None:
            return _error(f"the request is too long: the limit is {MAX_REQUEST_BYTES:,} bytes")
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            return _error(f"the request is not JSON: {error}")
        try:
            if not isinstance(request, dict):
                raise UsageError("the request is not a JSON object")
            assert self._answer is not None
            return {"ok": await self._answer(request)}
        except InterlockError as error:
            return {"error": str(error), "type": type(error).__name__}
        except Exception as error:  # noqa: BLE001 - the client is told, and the run goes on
            return _error(f"the request failed: {error!r}")


def _error(message: str) -> dict[str, Any]:
    return {"error": message, "type": "UsageError"}


async def _read_request(reader: asyncio.StreamReader) -> bytes | None:
    """The line of the request; None if it is too long.

    An overlong line is read to its end all the same: a client that is still writing reads nothing.
    """
    try:
        return await reader.readline()
    except ValueError:
        while (more := await reader.read(1 << 16)) and not more.endswith(b"\n"):
            pass
        return None


def _is_same_user(connection: socket.socket) -> bool:
    """Whether the other side is the same user, or root."""
    if sys.platform != "linux":
        return True  # the mode of the socket has to do
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return bool(user in (0, os.geteuid()))
