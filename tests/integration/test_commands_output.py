"""Output of a stranger: a gigabyte of it, lines without end, no UTF-8, orders to the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import Runtime, Task, command

PROGRAM = Path(__file__).with_name("output_program.py")
MEGABYTES = 150
"""What a coordinator may need in all; it needs about 45 without any output."""


def measured(script: str, *patterns: str) -> Any:
    source = str(Path(interlock.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(PROGRAM), script, *patterns],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def log_of(workspace: Path) -> bytes:
    (log,) = workspace.glob(".interlock/logs/*/a/1.log")
    return log.read_bytes()


def test_a_gigabyte_of_output_needs_no_memory(workspace: Path) -> None:
    line = "0123456789" * 6 + "abc"
    ran = measured(f"echo first; yes {line} | head -c 1000000000; echo; echo THE END", "THE END")
    assert ran["status"] == "failed"
    assert "and printed: THE END" in ran["reason"]  # it was all looked at, to the last line
    assert ran["megabytes"] < MEGABYTES
    log = log_of(workspace)
    assert 10_000_000 < len(log) < 10 * 1024 * 1024 + 100
    assert log.startswith(b"first\n0123")
    assert log.endswith(b"\nTHE END\n")
    head, _, rest = log.partition(b"\n[... ")
    left_out, _, tail = rest.partition(b" bytes left out ...]\n")
    assert int(left_out) + len(head) + len(tail) == 1_000_000_000 + len("first\n\nTHE END\n")


def test_a_line_of_100_megabytes_needs_no_memory(workspace: Path) -> None:
    ran = measured("head -c 100000000 /dev/zero | tr '\\0' x; echo END; echo last")
    assert ran["status"] == "succeeded"
    first, *_, last = ran["result"].split("\n")
    assert first == f"[... {100_000_009 - 65_536} bytes left out ...]"
    assert last == "last"
    assert ran["megabytes"] < MEGABYTES
    assert len(log_of(workspace)) <= 10 * 1024 * 1024 + 100


def test_an_escape_that_never_ends_needs_no_memory(workspace: Path) -> None:
    ran = measured("printf '\\033]0;'; head -c 30000000 /dev/zero | tr '\\0' x; echo last")
    assert ran["result"].endswith("xlast")
    assert ran["megabytes"] < MEGABYTES


async def test_what_is_no_text_does_no_harm(workspace: Path) -> None:
    Path("noise").write_bytes(bytes(range(256)) * 5_000 + os.urandom(1_000_000))
    async with Runtime() as rt:
        outcome = await rt.submit(command(["cat", "noise"]), id="a")
    assert outcome.succeeded
    for text in (str(outcome.result), log_of(workspace).decode()):
        assert all(each in "\t\n" or each.isprintable() or ord(each) > 0x9F for each in text)
        assert "\x1b" not in text
        assert "�" in text


async def test_nothing_is_executed_by_the_terminal_that_shows_it(workspace: Path) -> None:
    nasty = (
        "\x1b]52;c;cm0gLXJmIC8=\x07\x1b[2J\x1b]0;title\x1b\\\x9b31mred\x1b[0m \x1b[6n\x07ok\x08\r\n"
    )
    Path("nasty").write_text(nasty, encoding="utf-8")
    async with Runtime() as rt:
        outcome = await rt.submit(command(["cat", "nasty"]), id="a")
        failed = await rt.submit(command(["sh", "-c", "cat nasty; exit 1"]), id="b")
    assert outcome.result == "red ok"
    assert log_of(workspace) == b"red ok\n"
    assert failed.reason == "crashed: sh ended with exit code 1: red ok"


async def test_a_program_that_closes_its_output_is_waited_for() -> None:
    async with Runtime() as rt:
        outcome = await rt.submit(command(["sh", "-c", "echo x; exec >&- 2>&-; sleep 0.1; >mark"]))
    assert outcome.result == "x"
    assert Path("mark").exists()


@pytest.mark.parametrize("size", [65_536, 65_537, 262_145])
async def test_the_result_is_whole_up_to_64_kilobytes(size: int) -> None:
    (outcome,) = await ran(Task("a", command(["head", "-c", str(size), "/dev/zero"])))
    assert outcome.result == ""  # of zeros nothing is left
    script = f"head -c {size} /dev/zero | tr '\\0' x"
    (outcome,) = await ran(Task("a", command(["sh", "-c", script])))
    assert outcome.result.rpartition("\n")[2] == "x" * 65_536
    assert outcome.result.startswith("[") is (size > 65_536)


async def ran(*tasks: Task) -> Any:
    async with Runtime() as rt:
        return await rt.run(tasks)
