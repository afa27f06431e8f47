"""Whoever does not read holds up nobody but the thread that writes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import pytest

from interlock.views.terminal import writer_thread as pen
from interlock.views.terminal.writer_thread import FrameWriter, LineWriter


@pytest.fixture
def unread() -> Iterator[tuple[int, io.TextIOWrapper]]:
    """A pipe that is full: where to read it, and a stream that cannot write to it."""
    there, here = os.pipe()
    os.set_blocking(here, False)
    try:
        while True:
            os.write(here, b"." * 4096)
    except BlockingIOError:
        os.set_blocking(here, True)
    with os.fdopen(here, "w", encoding="ascii") as stream:
        yield there, stream
        os.close(there)


def rest(there: int) -> str:
    with os.fdopen(os.dup(there), "rb") as file:
        return file.read().decode().lstrip(".")


def test_lines_come_in_order_and_are_spelt_as_the_stream_can() -> None:
    there, here = os.pipe()
    with os.fdopen(here, "w", encoding="ascii") as stream:
        lines = LineWriter(stream)
        lines.write("one\n")
        lines.write("zwölf\n")
        lines.finish("end\n")
    assert rest(there) == "one\nzw?lf\nend\n"
    os.close(there)


def test_lines_that_nobody_reads_are_left_out_and_counted_but_not_the_last(
    unread: tuple[int, io.TextIOWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pen, "WAITING", 3)
    there, stream = unread
    lines = LineWriter(stream)
    for number in range(10):
        lines.write(f"{number}\n")
    lines.finish("end\n", 0)
    assert lines.broken
    told = b""
    while not told.endswith(b"end\n"):
        told += os.read(there, 4096)
    assert told.lstrip(b".").startswith(b"0\n1\n2\n")
    assert told.endswith(b" lines are omitted: they were not read in time)\nend\n")


def test_a_frame_that_nobody_sees_is_given_up(unread: tuple[int, io.TextIOWrapper]) -> None:
    frames = FrameWriter(unread[1], "first", "last")
    frames.draw("frame")
    frames.close(0)
    assert frames.broken


def test_the_first_and_the_last_words_of_a_pen_are_never_left_out() -> None:
    stream = io.StringIO()
    frames = FrameWriter(stream, "first ", "last")
    for _ in range(100):
        frames.draw("frame ")
    frames.close()
    assert stream.getvalue().startswith("first frame ")
    assert stream.getvalue().endswith("frame last")


def test_a_stream_that_is_closed_ends_it() -> None:
    stream = io.StringIO()
    stream.close()
    lines = LineWriter(stream)
    lines.finish("end\n")
    assert lines.broken
