"""The control socket: how commands in other terminals reach the coordinator of a project.

One request a connection, one line each way: plain JSON there, and back as the journal writes. The
socket is in `.interlock/`, for its owner only; whoever else connects, by whatever way, is turned
away.
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
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from interlock.errors import InterlockError, NotRunning, UsageError
from interlock.journal.schema.codec import Codec

SOCKET = "control.sock"
_LONGEST = 1 << 22
"""Bytes of a request: a plan of texts, at most."""
_PATIENCE = 10.0
"""Seconds for the coordinator to answer, and for a client to say what it wants."""
_ENDED = "the run ended before it answered"

_CODEC = Codec()

Answer = Callable[[dict[str, Any]], Awaitable[Any]]


class Refused(UsageError):
    """The coordinator said no, and why."""


class Unanswered(InterlockError):
    """Somebody carries out the run, and does not answer."""


class ControlServer:
    """Listens while a run goes on; whoever comes early waits until it is said who answers."""

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
            self._remove_dead()
            with _address(self._folder) as address:
                self._listening.bind(address)
            self._bound = path.lstat()
            self._listening.listen()
        except OSError as error:
            self._listening.close()
            raise UsageError(
                f"the control socket {path} cannot be made ({error.strerror}); "
                "commands in other terminals would not reach this run"
            ) from error
        finally:
            os.umask(before)
        return self

    async def answer_with(self, answer: Answer) -> None:
        """From now on there are answers."""
        self._answer = answer
        self._server = await asyncio.start_unix_server(
            self._serve, sock=self._listening, limit=_LONGEST, start_serving=True
        )

    async def __aexit__(self, *_: object) -> None:
        self._unlink()
        if self._server is None:
            self._listening.close()
        else:
            self._server.close()
        for each in self._serving:
            each.cancel()  # whoever has not said yet what it wants
        if self._serving:
            await asyncio.wait(self._serving)

    def _remove_dead(self) -> None:
        """Whoever left a socket behind is dead, as the folder is ours; but better ask."""
        path = self._folder / SOCKET
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                return
            with socket.socket(socket.AF_UNIX) as connection, _address(self._folder) as address:
                connection.setblocking(False)
                try:
                    connection.connect(address)
                except ConnectionRefusedError:
                    path.unlink()

    def _unlink(self) -> None:
        """Ours only: somebody may have deleted it, and the next run made its own."""
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
            if not _is_ours(writer.get_extra_info("socket")):
                return
            async with asyncio.timeout(_PATIENCE):
                line = await _line(reader)
            writer.write(_said(await self._reply(line)))
            async with asyncio.timeout(_PATIENCE):
                await writer.drain()
        except (OSError, ValueError, TimeoutError, asyncio.CancelledError):
            return  # who hangs up, or never says what it wants, gets no answer
        finally:
            writer.close()

    async def _reply(self, line: bytes | None) -> dict[str, Any]:
        if line is None:
            return {"error": f"a request has at most {_LONGEST:,} bytes", "type": "UsageError"}
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            return {"error": f"no JSON: {error}", "type": "UsageError"}
        try:
            if not isinstance(request, dict):
                raise UsageError("a request is an object of JSON")
            assert self._answer is not None
            return {"ok": await self._answer(request)}
        except InterlockError as error:
            return {"error": str(error), "type": type(error).__name__}
        except Exception as error:  # noqa: BLE001 - whoever asks is told; the run goes on
            return {"error": f"this cannot be done: {error!r}", "type": "UsageError"}


async def _line(reader: asyncio.StreamReader) -> bytes | None:
    """What is asked; None if it is too long. It is read on then: who still writes hears nothing."""
    try:
        return await reader.readline()
    except ValueError:
        while (more := await reader.read(1 << 16)) and not more.endswith(b"\n"):
            pass
        return None


def ask(folder: Path, do: str, **details: Any) -> Any:
    """Ask the coordinator; NotRunning if there is none, Refused if it says no, or Unanswered."""
    request = json.dumps({"do": do, **details}).encode() + b"\n"
    connection = socket.socket(socket.AF_UNIX)
    with connection:
        connection.settimeout(_PATIENCE)
        try:
            with _address(folder) as address:
                connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            raise NotRunning(f"no run is going on in {folder.parent}") from None
        except OSError as error:
            raise Unanswered(
                f"the run in {folder.parent} cannot be reached: {error.strerror or error}"
            ) from error
        reply = _exchange(connection, request)
    if "error" in reply:
        raise Refused(reply["error"])
    return reply["ok"]


def _said(value: Any) -> bytes:
    return _CODEC.dumps(value).encode() + b"\n"


def _exchange(connection: socket.socket, request: bytes) -> dict[str, Any]:
    try:
        connection.sendall(request)
        with connection.makefile("rb") as answers:
            line = answers.readline()
        reply = _CODEC.loads(line or b"null")
    except (OSError, ValueError) as error:
        if isinstance(error, ConnectionError):
            raise NotRunning(_ENDED) from error
        raise Unanswered(f"the run gave no answer ({error}); is it stopped?") from error
    if not line:
        raise NotRunning(_ENDED)
    if not isinstance(reply, dict):
        raise Unanswered("the run gave an answer that makes no sense")
    return reply


@contextlib.contextmanager
def _address(folder: Path) -> Iterator[str]:
    """The path of the socket in at most 107 bytes, which is all that the kernel takes."""
    path = str(folder / SOCKET)
    if len(os.fsencode(path)) <= 100 or sys.platform != "linux":
        yield path
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other side is the same user, or root."""
    if sys.platform != "linux":
        return True  # the mode of the socket has to do
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return bool(user in (0, os.geteuid()))
