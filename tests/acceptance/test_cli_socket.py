"""The control socket of a run: for its owner only, and whatever is said to it does no harm."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.command_line import SHELL, Folder, Gate, Going, folder

__all__ = ["folder"]


@pytest.fixture
def gate(folder: Folder) -> Gate:
    return folder.gate("held")


@pytest.fixture
def running(folder: Folder, gate: Gate) -> Going:
    folder.plan(held=gate.prompt)
    running = folder.start("run", "plan.yaml")
    gate.reached()
    return running


@contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(str(path / ".interlock/control.sock"))
        yield connection


def said(path: Path, request: bytes) -> bytes:
    """What is answered to a line, or to the end of the connection."""
    with connected(path) as connection:
        with_end = request if request.endswith(b"\n") else request + b"\n"
        try:
            connection.sendall(with_end)
            with connection.makefile("rb") as answers:
                return answers.read()
        except (BrokenPipeError, ConnectionResetError):
            return b""


def assert_unharmed(folder: Folder, gate: Gate, running: Going) -> None:
    assert json.loads(said(folder.path, b'{"do": "ping"}'))["ok"]
    gate.open()
    done = running.ended()
    assert done.code == 0, done
    assert done.err == ""
    assert not (folder.path / ".interlock/control.sock").exists()
    log = (folder.path / ".interlock/interlock.log").read_text()
    assert "Traceback" not in log


def test_the_socket_is_for_its_owner_only(folder: Folder, gate: Gate, running: Going) -> None:
    mode = (folder.path / ".interlock/control.sock").lstat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    assert_unharmed(folder, gate, running)


REQUESTS = [
    b"",
    b"hello\n",
    b"GET / HTTP/1.1",
    b"\xff\xfe\x00\x80",
    b"null",
    b"[]",
    b"17",
    b"NaN",
    b'"text"',
    b"{}",
    b'{"do": 5}',
    b'{"do": null}',
    b'{"do": ["ping"]}',
    b'{"do": "eval", "code": "1"}',
    b'{"do": "__class__"}',
    b'{"do": "why"}',
    b'{"do": "why", "task": 5}',
    b'{"do": "why", "task": "nobody"}',
    b'{"do": "cancel", "tasks": 5}',
    b'{"do": "cancel", "tasks": "held"}',
    b'{"do": "cancel", "tasks": [[]]}',
    b'{"do": "cancel", "tasks": [null]}',
    b'{"do": "retry", "task": {}}',
    b'{"do": "pause", "task": []}',
    b'{"do": "pause", "task": "nobody"}',
    b'{"do": "resume", "task": 1.5}',
    b'{"do": "prioritize", "task": "held"}',
    b'{"do": "prioritize", "task": "held", "priority": "high"}',
    b'{"do": "prioritize", "task": "held", "priority": null}',
    b'{"do": "prioritize", "task": "held", "priority": 1e999}',
    b'{"do": "answer", "task": "held"}',
    b'{"do": "answer", "task": "held", "answer": {"a": []}}',
    b'{"$": "Task", "of": {}}',
    b'{"$": "Path", "of": 5}',
    b'{"$": "os:system", "of": "true"}',
    b'{"do": "why", "task": {"$": "datetime", "of": "never"}}',
    b"[" * 100_000,
    b'{"do": "why", "task": "' + b"x" * 1_000_000 + b'"}',
    b'{"do": "ping", "number": ' + b"9" * 10_000 + b"}",
]


def test_whatever_is_asked_is_refused_in_a_line(folder: Folder, gate: Gate, running: Going) -> None:
    for request in REQUESTS:
        answer = said(folder.path, request)
        assert answer.count(b"\n") == 1, request[:80]
        assert json.loads(answer)["error"], request[:80]
    assert folder.state("held") == "running"
    assert_unharmed(folder, gate, running)


def test_who_says_too_much_nothing_or_half_of_it_holds_up_nobody(
    folder: Folder, gate: Gate, running: Going
) -> None:
    assert b"the request is too long" in said(folder.path, b"x" * 9_000_000)
    with connected(folder.path) as silent, connected(folder.path) as slow:
        slow.sendall(b'{"do": "pi')
        with connected(folder.path):
            pass  # and leaves
        with connected(folder.path) as deaf:
            deaf.sendall(b'{"do": "ping"}\n')  # and does not listen
        assert_unharmed(folder, gate, running)
        assert silent.recv(1) == b""


def test_a_project_may_be_deeper_than_the_path_of_a_socket_may_be_long(tmp_path: Path) -> None:
    path = tmp_path.joinpath(*["a-rather-long-name-of-a-folder"] * 6)
    path.mkdir(parents=True)
    assert len(os.fsencode(path)) > 150
    deep = Folder(path)
    try:
        deep.write("interlock.yaml", SHELL)
        gate = deep.gate("held")
        deep.plan(held=gate.prompt, b="true")
        running = deep.start("run", "plan.yaml")
        gate.reached()
        assert deep.facts("why", "held")["state"] == "running"
        deep.ask("pause")
        deep.ask("resume")
        gate.open()
        assert running.ended().code == 0
    finally:
        deep.close()


def test_a_socket_that_was_left_behind_is_in_nobodys_way(folder: Folder) -> None:
    (folder.path / ".interlock").mkdir()
    left = folder.path / ".interlock/control.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    assert "no run is in progress" in folder.refused("pause")
    assert folder.run("run", "true").code == 0
    assert not left.exists()


def test_a_file_in_the_place_of_the_socket_is_not_removed(folder: Folder) -> None:
    file = folder.write(".interlock/control.sock", "mine")
    said = folder.refused("run", "true")
    assert "the control socket" in said
    assert file.read_text() == "mine"
