"""One line there, one line back, and an error that says what is the matter."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import NotRunning, UnknownTask, UsageError
from interlock.runtime.control import protocol, server
from interlock.runtime.control.client import ask
from interlock.runtime.control.protocol import SOCKET, NoReply, RequestRejected
from interlock.runtime.control.server import Answer, ControlServer


async def echo(asked: dict[str, Any]) -> Any:
    if asked["do"] == "fail":
        raise UnknownTask("there is no such task")
    if asked["do"] == "hang":
        await asyncio.Event().wait()
    return asked


@asynccontextmanager
async def serving(folder: Path, answer: Answer) -> AsyncIterator[ControlServer]:
    async with ControlServer(folder) as server:
        await server.answer_with(answer)
        yield server


async def asked(folder: Path, do: str, **details: Any) -> Any:
    return await asyncio.to_thread(ask, folder, do, **details)


async def test_what_is_asked_comes_there_and_the_answer_comes_back(tmp_path: Path) -> None:
    async with serving(tmp_path, echo):
        assert stat.S_IMODE((tmp_path / SOCKET).stat().st_mode) == 0o600
        said = await asked(tmp_path, "why", task="ä \n b", tasks=["a", None])
        assert said == {"do": "why", "task": "ä \n b", "tasks": ["a", None]}
        with pytest.raises(RequestRejected, match="there is no such task"):
            await asked(tmp_path, "fail")
    assert not (tmp_path / SOCKET).exists()
    with pytest.raises(NotRunning, match="no run is in progress"):
        await asked(tmp_path, "why")


async def test_whoever_waits_for_an_answer_is_told_when_the_run_ends(tmp_path: Path) -> None:
    heard = asyncio.Event()

    async def answer(_: dict[str, Any]) -> None:
        heard.set()
        await asyncio.Event().wait()

    async with serving(tmp_path, answer):
        waiting = asyncio.create_task(asked(tmp_path, "hang"))
        await heard.wait()
    with pytest.raises(NotRunning, match="ended before it replied"):
        await waiting


async def test_a_coordinator_that_does_not_answer_is_not_called_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "TIMEOUT", 0.05)
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(tmp_path / SOCKET))
        stopped.listen()
        with pytest.raises(NoReply, match="did not reply"):
            await asked(tmp_path, "why")


async def test_an_answer_that_makes_no_sense_is_none(tmp_path: Path) -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(lines.pop())
        writer.close()

    lines = [b"[]\n", b"garbage\n"]
    server = await asyncio.start_unix_server(garbage, tmp_path / SOCKET)
    async with server:
        for _ in range(2):
            with pytest.raises(NoReply):
                await asked(tmp_path, "why")


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="Linux only")
async def test_the_path_may_be_longer_than_a_socket_allows(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["long" * 10] * 5)
    deep.mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd"))
    async with serving(deep, echo):
        assert (deep / SOCKET).is_socket()
        assert await asked(deep, "ping") == {"do": "ping"}
    assert len(os.listdir("/proc/self/fd")) == before


async def test_whoever_is_somebody_else_is_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_is_same_user", lambda _: False)
    async with serving(tmp_path, echo):
        with pytest.raises(NotRunning):
            await asked(tmp_path, "ping")


def test_we_and_root_are_ours() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert server._is_same_user(one)


async def test_the_socket_of_the_next_run_is_left_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, echo):
        (tmp_path / SOCKET).unlink()
        following = await ControlServer(tmp_path).__aenter__()
        await following.answer_with(echo)
    assert await asked(tmp_path, "ping") == {"do": "ping"}
    await following.__aexit__()
    assert not (tmp_path / SOCKET).exists()


async def test_a_socket_that_somebody_listens_at_is_not_taken_away(tmp_path: Path) -> None:
    async with serving(tmp_path, echo):
        with pytest.raises(UsageError, match="Address already in use"):
            async with ControlServer(tmp_path):
                raise AssertionError
        assert await asked(tmp_path, "ping") == {"do": "ping"}


async def test_one_that_a_dead_coordinator_has_left_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / SOCKET))
    async with serving(tmp_path, echo):
        assert await asked(tmp_path, "ping") == {"do": "ping"}


async def test_whoever_comes_before_there_are_answers_waits_for_them(tmp_path: Path) -> None:
    async with ControlServer(tmp_path) as server:
        with socket.socket(socket.AF_UNIX) as early:
            early.connect(str(tmp_path / SOCKET))
            early.sendall(b'{"do": "ping"}\n')
            await server.answer_with(echo)
            with early.makefile("rb") as answers:
                line = await asyncio.to_thread(answers.readline)
        assert line == b'{"ok":{"do":"ping"}}\n'


MESSAGES = {
    "a request has at most 4,194,304 bytes": "the limit is 4,194,304 bytes",
    "this cannot be done: ZeroDivisionError": "the request failed: ZeroDivisionError",
    "a request is an object of JSON": "the request is not a JSON object",
    "no JSON": "the request is not JSON",
}
"""What the run says, by the short name of the case."""


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (b"x" * (5 << 20) + b"\n", "a request has at most 4,194,304 bytes"),
        (b'{"do": "break"}\n', "this cannot be done: ZeroDivisionError"),
        (b"[]\n", "a request is an object of JSON"),
        (b"\xff\n", "no JSON"),
    ],
)
async def test_whatever_is_asked_is_answered(tmp_path: Path, request_: bytes, error: str) -> None:
    async def answer(_: dict[str, Any]) -> None:
        raise ZeroDivisionError

    async with serving(tmp_path, answer):
        reader, writer = await asyncio.open_unix_connection(tmp_path / SOCKET)
        writer.write(request_)
        await writer.drain()
        assert MESSAGES[error] in (await reader.readline()).decode()
        writer.close()
        await writer.wait_closed()
