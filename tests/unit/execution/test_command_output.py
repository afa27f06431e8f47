"""What a program prints goes into its log and its result, bounded, and past its error patterns."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from interlock.execution.commands.log_file import LogFile
from interlock.execution.commands.output import LONGEST_RESULT, ErrorFinder, Stream
from interlock.model.redaction import Redaction


def printed(path: Path, *pieces: bytes, secrets: tuple[str, ...] = ()) -> Stream:
    log = LogFile(path)
    stream = Stream(Redaction(secrets), log, ErrorFinder({}))
    for each in pieces:
        stream.take(each)
    stream.finish()
    log.close()
    return stream


def test_the_result_is_what_was_printed_without_the_last_newline(tmp_path: Path) -> None:
    assert printed(tmp_path / "log", b"one\ntw", b"o\n\n").result() == "one\ntwo"
    assert (tmp_path / "log").read_text() == "one\ntwo\n\n"


def test_a_line_is_in_the_log_as_soon_as_it_is_complete(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log")
    stream = Stream(Redaction([]), log, ErrorFinder({}))
    stream.take(b"one\ntwo")
    assert (tmp_path / "log").read_text() == "one\n"
    stream.finish()
    log.close()
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_lines_of_two_streams_are_not_mixed(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log")
    out, err = (Stream(Redaction([]), log, ErrorFinder({})) for _ in range(2))
    out.take(b"half a ")
    err.take(b"an error\n")
    out.take(b"line\n")
    out.finish()
    err.finish()
    log.close()
    assert (tmp_path / "log").read_text() == "an error\nhalf a line\n"


def test_of_a_long_result_the_end_is_kept_and_says_so(tmp_path: Path) -> None:
    result = printed(tmp_path / "log", *[b"0123456789" * 1000] * 100, b"the end\n").result()
    first, _, rest = result.partition("\n")
    assert first == f"[... {1_000_008 - LONGEST_RESULT} bytes left out ...]"
    assert rest.endswith("789the end")
    assert len(rest) == LONGEST_RESULT - 1


def test_a_secret_is_in_neither_log_nor_result_where_an_escape_has_split_it(tmp_path: Path) -> None:
    stream = printed(
        tmp_path / "log", b"key hun\x1b[1", b"mter\x1b[0m22", b"22\n", secrets=("hunter2222",)
    )
    assert stream.result() == "key ***"
    assert (tmp_path / "log").read_text() == "key ***\n"


def test_a_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    printed(tmp_path / "log", b"hello\n")
    assert os.stat(tmp_path / "log").st_mode & 0o777 == 0o600


def numbered(count: int) -> list[bytes]:
    return [b"line %06d\n" % number for number in range(count)]


@pytest.mark.parametrize("count", [100, 1_000, 1_234, 5_000, 20_000])
def test_of_a_long_log_the_beginning_and_the_end_are_kept(count: int, tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log", head=2_000, tail=6_000)
    lines = numbered(count)
    for line in lines:
        log.write(line)
        assert os.path.getsize(tmp_path / "log") <= 2_000 + 2 * 6_000 + 100
    log.close()
    kept = (tmp_path / "log").read_bytes()
    whole = b"".join(lines)
    if len(whole) <= 8_000:
        assert kept == whole
        return
    head, gap, tail = kept.partition(b"\n[... ")
    said, _, tail = tail.partition(b" bytes left out ...]\n")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(tail) > 5_900 or tail.count(b"\n") > 500
    assert int(said) == len(whole) - len(head) - len(tail)
    assert gap
    assert not (tmp_path / ".log.partial").exists()


def test_a_character_is_not_cut_in_two_at_the_gap(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log", head=1_001, tail=2_002)
    log.write("é€😀".encode() * 5_000)
    log.close()
    assert "�" not in (tmp_path / "log").read_text(errors="replace")


def test_a_disk_that_is_full_ends_the_log_and_nothing_else(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log")
    os.close(log._file)
    log._file = os.open("/dev/full", os.O_WRONLY)
    stream = Stream(Redaction([]), log, ErrorFinder({}))
    stream.take(b"one\n")
    stream.take(b"two\n")
    stream.finish()
    log.close()
    assert stream.result() == "one\ntwo"


@pytest.mark.parametrize(
    ("output", "kind", "line"),
    [
        ([b"fine\n"], "", ""),
        ([b"a\nHTTP 401 here\nb\n"], "auth_error", "HTTP 401 here"),
        ([b"HTTP 4", b"01"], "auth_error", "HTTP 401"),
        ([b"limit\nHTTP 401\n"], "rate_limited", "limit"),
        ([b"the limit\n"], "", ""),
        ([b"HTTP\n401\n"], "", ""),
        ([b"HTTP\n401\nHTTP\t401\n"], "auth_error", "HTTP\t401"),
        ([b"x" * 1_995 + b" HTTP 401 " + b"x" * 5_000 + b"\n"], "auth_error", None),
        ([b"ok\n" * 5_000 + b"limit\n"], "rate_limited", "limit"),
        ([b"busy" * 2_000 + b".\n"], "", ""),
        ([b"x" * 5_000 + b"busy\n"], "model_error", None),
        ([b"x" * 1_500 + b" trace: " + b"x" * 9_000 + b"\n"], "crash", None),
        ([b"x" * 70_000, b" HTTP 401"], "auth_error", None),
        ([b"x" * 65_530 + b" HTTP", b" 401" + b"x" * 70_000], "auth_error", None),
    ],
    ids=range(14),
)
def test_a_pattern_is_found_in_a_line_and_the_first_line_counts(
    output: list[bytes], kind: str, line: str | None, tmp_path: Path
) -> None:
    found = ErrorFinder(
        {
            "auth_error": (r"HTTP\s+401",),
            "rate_limited": ("^limit$",),
            "model_error": ("busy$",),
            "crash": ("trace:.*",),
        }
    )
    log = LogFile(tmp_path / "log")
    stream = Stream(Redaction([]), log, found)
    for each in output:
        stream.take(each)
    stream.finish()
    log.close()
    assert found.kind == kind
    assert line is None or found.line == line


@pytest.mark.parametrize("pattern", [r"\s+x", r"\w+\s?:"])
@pytest.mark.parametrize("character", [" ", "\n", "a"])
def test_to_look_through_four_times_as_much_takes_about_four_times_as_long(
    pattern: str, character: str
) -> None:
    """Not sixteen times, as it does where a pattern is tried on all of it at once."""

    def seconds(count: int) -> float:
        found, text = ErrorFinder({"a": (pattern,)}), character * count
        begun = time.process_time()
        found.look(text)
        return time.process_time() - begun

    least = [min(seconds(count) for _ in range(2)) for count in (8_000, 32_000)]
    assert least[1] < 9 * least[0] + 0.05
