"""Following a log that becomes too long and is replaced: every line is shown once, in order."""

from __future__ import annotations

import io
from pathlib import Path

from interlock.execution.commands.log_file import LogFile
from interlock.views.cli.task_log import _Tail


def test_a_follower_of_a_log_that_is_replaced_sees_each_line_once(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "1.log", head=10_000, tail=50_000)
    out = io.StringIO()
    with _Tail(log.path) as tail:
        for number in range(20_000):
            log.write(b"line %d of the output\n" % number)
            if number % 500 == 0:
                tail.copy(out)
        log.close()
        tail.copy(out, last=True)
    assert out.getvalue().splitlines() == [f"line {n} of the output" for n in range(20_000)]


def test_who_looks_too_seldom_is_told_that_something_is_missing(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "1.log", head=1_000, tail=5_000)
    out = io.StringIO()
    with _Tail(log.path) as tail:
        log.write(b"first\n")
        tail.copy(out)
        for number in range(5_000):
            log.write(b"line %d\n" % number)
        tail.copy(out)
        log.write(b"last\n")
        tail.copy(out, last=True)
    shown = out.getvalue().splitlines()
    assert shown[0] == "first"
    assert shown[-1] == "last"
    assert "[... some lines were missed: the output came too fast ...]" in shown
