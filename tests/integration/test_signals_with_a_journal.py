"""SIGTERM and SIGINT to a program with a journal: it starts nothing more, ends, and can go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.journal.reader import Reader
from interlock.journal.schema.codec import Codec
from interlock.kernel import stimuli as s
from interlock.model.event import Kind
from interlock.model.outcome import State
from interlock.runtime.recorded_types import RECORDED_TYPES
from interlock.testing.replay import replay
from tests.integration import signalled
from tests.integration.signalled import GRACE

ROOT = Path(__file__).parents[2]
SLACK = 1.0
"""What a busy machine may add to the times that are promised, in seconds."""


class Life:
    """One process of the program."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, signalled.__file__, str(folder), *options],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, line: str) -> None:
        assert self._process.stdout is not None
        while (found := self._process.stdout.readline().strip()) != line:
            assert found, self._process.communicate()[1]

    def signal(self, number: int) -> float:
        self._process.send_signal(number)
        return time.monotonic()

    def end(self) -> tuple[int, str]:
        """Its status, and what it said since."""
        out, _ = self._process.communicate(timeout=60)
        return self._process.returncode, out

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path)
    life.until("ready")
    yield life
    life.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_within_the_grace_and_all_can_go_on(
    begun: Life, tmp_path: Path, number: signal.Signals
) -> None:
    at = begun.signal(number)
    status, said = begun.end()
    assert time.monotonic() - at < GRACE + 2 + SLACK
    assert status == (128 + number if number == signal.SIGTERM else -signal.SIGINT)
    assert "ran" not in said, "something started after the signal"
    with Reader(tmp_path / "j.db", Codec(RECORDED_TYPES)) as reader:
        (run,) = reader.runs()
        assert run.is_open
        states = {row.task_id: row.state for row in reader.tasks(run)}
        events = list(reader.all_events(run))
    assert states["finishing"] is State.SUCCEEDED  # it was let finish
    drained = next(event.number for event in events if isinstance(event.data, s.Drain))
    assert not [e for e in events if e.kind is Kind.STARTED and e.number > drained]
    assert not replay(tmp_path / "j.db")

    (tmp_path / "over").touch()
    again = Life(tmp_path, "resume")
    status, said = again.end()
    assert status == 0
    assert "ran quick-0" not in said
    assert "ran finishing" not in said
    assert {"ran endless", "told endless succeeded", "told later succeeded", "closed"} <= set(
        said.splitlines()
    )


def test_a_second_signal_ends_it_at_once(begun: Life, tmp_path: Path) -> None:
    begun.signal(signal.SIGTERM)
    at = begun.signal(signal.SIGTERM)
    begun.end()
    assert time.monotonic() - at < 1 + SLACK
    with Reader(tmp_path / "j.db") as reader:
        assert reader.runs()[0].is_open
    (tmp_path / "over").touch()
    status, said = Life(tmp_path, "resume").end()
    assert (status, said.splitlines()[-1]) == (0, "closed")


def test_a_thread_that_will_not_stop_does_not_hold_it_up(tmp_path: Path) -> None:
    life = Life(tmp_path, "stubborn")
    try:
        life.until("ready")
        at = life.signal(signal.SIGTERM)
        status, _ = life.end()
        assert time.monotonic() - at < GRACE + 2 + SLACK
        assert status != 0
    finally:
        life.stop()
    (tmp_path / "over").touch()
    status, said = Life(tmp_path, "resume", "stubborn").end()
    assert (status, said.splitlines()[-1]) == (0, "closed")


def test_signals_are_not_held_against_what_they_cut_off(tmp_path: Path) -> None:
    options: list[str] = []
    for _ in range(4):
        life = Life(tmp_path, *options)
        try:
            life.until("ran endless")
            life.signal(signal.SIGTERM)
            life.signal(signal.SIGTERM)
            life.end()
        finally:
            life.stop()
        options = ["resume"]
    (tmp_path / "over").touch()
    status, said = Life(tmp_path, "resume").end()
    assert status == 0
    assert "told endless succeeded" in said
