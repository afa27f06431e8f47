"""A run in lines: one for each event that matters, written at once."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.kernel.stimuli import Drain
from interlock.model.event import Event, Kind
from interlock.model.outcome import State
from interlock.views.terminal.line_view import LineView, event_text
from tests.unit.views.runs import HOSTILE, NOW, run, task

CASES = [
    (Kind.STARTED, task("a", State.RUNNING, claims=("writes x",)), "started with codex: writes x"),
    (
        Kind.STARTED,
        task("a", State.RUNNING, attempt=2, attempts=3),
        "started with codex, attempt 2 of 3",
    ),
    pytest.param(
        Kind.RETRYING,
        task("a", State.RETRYING, attempt=1, attempts=3, error="boom", error_type="OSError"),
        "attempt 1 of 3 failed: OSError: boom",
        id="retrying-about2-attempt 1 of 3 came to nothing: OSError: boom",
    ),
    (Kind.NEEDS_YOU, task("a", State.NEEDS_YOU, question="Land it?"), "needs you: Land it?"),
    (Kind.SETTLED, task("a", State.SUCCEEDED), "succeeded in 25 s"),
    pytest.param(
        Kind.SETTLED,
        task("a", State.FAILED, error="boom", error_type="OSError", log="x.log"),
        "failed after 25 s: OSError: boom (log: x.log)",
        id="settled-about5-failed in 25 s: OSError: boom (log: x.log)",
    ),
    (Kind.SETTLED, task("a", State.SKIPPED, cause="b", error="b"), "skipped: b did not succeed"),
    (Kind.REPORTED, task("a", State.RUNNING), ""),
    (Kind.WAITING, task("a"), ""),
    (Kind.RUN_STARTED, None, "started"),
    (Kind.REPORTED, None, ""),
]


class Stream(io.StringIO):
    """Knows what has been flushed."""

    flushed = ""

    def flush(self) -> None:
        self.flushed = self.getvalue()


@pytest.mark.parametrize(("kind", "about", "said"), CASES)
def test_events_that_matter_have_a_line(kind: Kind, about: TaskFacts | None, said: str) -> None:
    assert event_text(Event(1, NOW, kind, about.id if about else ""), about) == said


def test_stopping_is_told_of_the_run() -> None:
    assert (
        event_text(Event(1, NOW, Kind.COMMAND, "", Drain()), None)
        == "stopping: running tasks may finish"
    )


def test_a_line_has_the_time_and_the_task_and_is_written_at_once() -> None:
    stream = Stream()
    view = LineView(stream, run)
    view.tell(Event(1, NOW, Kind.SETTLED, "api"), task("api", State.SUCCEEDED), NOW - 65)
    assert stream.flushed == "   1:05  api                       succeeded in 25 s\n"


def test_nothing_in_a_text_can_make_a_line_of_its_own() -> None:
    stream = Stream()
    view = LineView(stream, run)
    asks = task(HOSTILE, State.NEEDS_YOU, question=HOSTILE)
    view.tell(Event(1, NOW, Kind.NEEDS_YOU, HOSTILE), asks, NOW)
    assert stream.flushed.count("\n") == 1
    assert stream.flushed[:-1].replace("\ufffd", "").isprintable()


def test_after_a_silent_minute_the_counts_are_told() -> None:
    stream = Stream()
    facts = run(task("a", State.RUNNING, estimate=500.0), task("b", estimate=500.0))
    moments: list[RunFacts] = [replace(facts, at=NOW + later) for later in (0, 59, 61, 100)]
    view = LineView(stream, lambda: moments.pop(0))
    view.refresh()
    view.refresh()
    assert stream.flushed == ""
    view.refresh()
    view.refresh()
    assert stream.flushed.count("\n") == 1
    assert "1 waiting, 1 running; about 8 min left" in stream.flushed
