"""How long a run will still take."""

from __future__ import annotations

import pytest

from interlock.model.outcome import State
from interlock.views.forecast import seconds_left
from tests.unit.views.runs import NOW, run, task


def test_all_work_is_spread_over_the_slots() -> None:
    assert seconds_left(run(*(task(each, estimate=40.0) for each in "abcdefgh"))) == 80.0


def test_no_number_of_slots_shortens_a_chain() -> None:
    a, b = task("a", estimate=40.0), task("b", State.BLOCKED, estimate=50.0, after=("a",))
    assert seconds_left(run(a, b)) == 90.0


def test_a_running_task_is_believed_how_far_it_is() -> None:
    assert seconds_left(run(task("a", State.RUNNING, fraction=0.25, estimate=5.0))) == 90.0


def test_of_an_estimate_what_is_over_is_over() -> None:
    assert seconds_left(run(task("a", State.RUNNING, estimate=40.0))) == 10.0


def test_what_has_outrun_its_estimate_is_not_about_to_end_for_ever() -> None:
    assert seconds_left(run(task("a", State.RUNNING, estimate=10.0))) == pytest.approx(3.0)


def test_without_an_estimate_a_task_takes_as_long_as_its_agent_took_before() -> None:
    ended = task("a", State.SUCCEEDED, duration=12.0, agent="x")
    other = task("b", State.SUCCEEDED, duration=30.0, agent="y")
    assert seconds_left(run(ended, other, task("c", agent="x"))) == 12.0
    assert seconds_left(run(ended, other, task("c", agent="z"))) == 21.0


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert seconds_left(run(task("a"), task("b", estimate=1.0))) is None
    assert seconds_left(run(task("a", State.SUCCEEDED))) == 0.0
    assert seconds_left(run(task("a", State.RUNNING, started_at=NOW, fraction=0.01))) is None
