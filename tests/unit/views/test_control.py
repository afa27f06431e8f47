"""One line there, one line back, and an error that says what is the matter."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import NotRunning, UnknownTask
from interlock.views import control
from interlock.views.control import SOCKET, ControlServer, Refused, Unanswered, ask


async def echo(asked: dict[str, Any]) -> Any:
    if asked["do"] == "fail":
        raise UnknownTask("there is no such task")
    if asked["do"] == "hang":
        await asyncio.Event().wait()
    return asked


async def asked(folder: Path, do: str, **details: Any) -> Any:
    return await asyncio.to_thread(ask, folder, do, **details)


async def test_what_is_asked_comes_there_and_the_answer_comes_back(tmp_path: Path) -> None:
    async with ControlServer(tmp_path, echo):
        assert stat.S_IMODE((tmp_path / SOCKET).stat().st_mode) == 0o600
        said = await asked(tmp_path, "why", task="ä \n b", tasks=["a", None])
        assert said == {"do": "why", "task": "ä \n b", "tasks": ["a", None]}
        with pytest.raises(Refused, match="there is no such task"):
            await asked(tmp_path, "fail")
    assert not (tmp_path / SOCKET).exists()
    with pytest.raises(NotRunning, match="no run is going on"):
        await asked(tmp_path, "why")


async def test_whoever_waits_for_an_answer_is_told_when_the_run_ends(tmp_path: Path) -> None:
    heard = asyncio.Event()

    async def answer(_: dict[str, Any]) -> None:
        heard.set()
        await asyncio.Event().wait()

    async with ControlServer(tmp_path, answer):
        waiting = asyncio.create_task(asked(tmp_path, "hang"))
        await heard.wait()
    with pytest.raises(NotRunning, match="ended before it answered"):
        await waiting


async def test_a_coordinator_that_does_not_answer_is_not_called_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_PATIENCE", 0.05)
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(tmp_path / SOCKET))
        stopped.listen()
        with pytest.raises(Unanswered, match="gave no answer"):
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
            with pytest.raises(Unanswered):
                await asked(tmp_path, "why")


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="Linux only")
async def test_the_path_may_be_longer_than_a_socket_allows(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["long" * 10] * 5)
    deep.mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd"))
    async with ControlServer(deep, echo):
        assert (deep / SOCKET).is_socket()
        assert await asked(deep, "ping") == {"do": "ping"}
    assert len(os.listdir("/proc/self/fd")) == before


async def test_whoever_is_somebody_else_is_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_is_ours", lambda _: False)
    async with ControlServer(tmp_path, echo):
        with pytest.raises(NotRunning):
            await asked(tmp_path, "ping")


def test_we_and_root_are_ours() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert control._is_ours(one)
