"""Events as lines and as JSON, whatever is in them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock import Task
from interlock.model.claim import write
from interlock.model.event import Event, Kind
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.views.terminal.event_lines import event_json, line_of


async def agent() -> None:
    """Never called."""


class Point(NamedTuple):
    x: int
    y: set[int]


def event(kind: Kind, data: Any = None, task_id: str = "a") -> Event:
    return Event(7, 1_700_000_000.5, kind, task_id, data)


def test_a_line_has_number_kind_task_and_what_matters() -> None:
    submitted = line_of(event(Kind.SUBMITTED, Task("a", agent, claims=[write("src/**")])))
    assert submitted.split()[0] == "7"
    assert submitted.split()[2:] == ["submitted", "a", "write", "src/**"]
    settled: Outcome[None] = Outcome(
        "a", State.FAILED, error=ErrorRecord("crashed", "no line", retryable=True)
    )
    assert "settled         a                     failed" in line_of(event(Kind.SETTLED, settled))
    started = line_of(event(Kind.STARTED, {"task_id": "a", "attempt": 2}))
    assert started.endswith("a                     attempt=2")


def test_a_line_is_not_long_however_much_there_is_to_tell() -> None:
    assert len(line_of(event(Kind.LOGGED, {"line": "x" * 10_000}))) < 300


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (State.FAILED, "failed"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (Point(1, {2}), {"x": 1, "y": [2]}),
        ({1: (2, None, True)}, {"1": [2, None, True]}),
        (Path("a/b"), "a/b"),
        (b"\xff", "b'\\xff'"),
    ],
)
def test_whatever_an_event_carries_is_json(value: Any, plain: Any) -> None:
    found = event_json(event(Kind.LOGGED, {"value": value}))
    assert json.loads(json.dumps(found))["data"] == {"value": plain}


def test_the_names_of_an_event_stay() -> None:
    found = event_json(event(Kind.SETTLED, Outcome("a", State.SUCCEEDED, result={"n": 1})))
    assert list(found) == ["number", "at", "kind", "task_id", "data"]
    assert (found["kind"], found["data"]["status"]) == ("settled", "succeeded")
    assert found["data"]["result"] == {"n": 1}
    assert event_json(event(Kind.RUN_ENDED, None, ""))["data"] == {}
