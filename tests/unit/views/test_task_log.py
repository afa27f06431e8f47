"""Logs are printed line by line, whatever is in them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from interlock.views.cli.task_log import _Tail
from interlock.views.terminal import safe_text


def printed(path: Path) -> str:
    out = io.StringIO()
    with _Tail(path) as tail:
        tail.copy(out, last=True)
    return out.getvalue()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"", ""),
        (b"one\ntwo\n", "one\ntwo\n"),
        (b"no end", "no end\n"),
        (b"\n\n", "\n\n"),
        (b"\x1b[31mred\x1b[0m\x07\r\n", "red \n"),
        (b"\xff\xfe broken\n", "\ufffd\ufffd broken\n"),
        ("ä日本\n".encode(), "ä日本\n"),
    ],
)
def test_a_log_is_shown_as_harmless_lines(written: bytes, shown: str, tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(written)
    assert printed(path) == shown


def test_a_log_that_was_removed_is_empty(tmp_path: Path) -> None:
    assert printed(tmp_path / "gone.log") == ""


def test_a_line_without_an_end_is_shown_in_pieces_of_which_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_text("x" * 1_000_001)
    lines = printed(path).splitlines()
    assert "".join(lines) == "x" * 1_000_001
    assert max(map(len, lines)) == safe_text.LIMIT


def test_a_character_that_comes_in_two_halves_is_one(tmp_path: Path) -> None:
    path, out = tmp_path / "1.log", io.StringIO()
    first, second = "ä".encode()[:1], "ä".encode()[1:]
    path.write_bytes(b"half " + first)
    with _Tail(path) as tail, path.open("ab") as file:
        tail.copy(out)
        assert out.getvalue() == ""  # a line is shown when it is complete
        file.write(second + b"\nnext")
        file.flush()
        tail.copy(out)
        assert out.getvalue() == "half ä\n"
        tail.copy(out, last=True)
        assert out.getvalue() == "half ä\nnext\n"
