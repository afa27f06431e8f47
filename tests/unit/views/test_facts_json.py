"""Facts as JSON: all there is, under names that stay."""

from __future__ import annotations

import json
from dataclasses import fields

from interlock.journal.state.run_facts import TaskFacts
from interlock.model.outcome import State
from interlock.views.cli.facts_json import progress_json, run_json, task_json
from tests.unit.views.runs import every_state, hostile, task


def list_of(names: str) -> list[str]:
    return names.split()


# Whoever reads the JSON relies on these names: they do not change.
TASK = list_of(
    "id state since agent prompt claims after priority attempt attempts submitted_at started_at "
    "ended_at duration estimate fraction message tokens cost error error_type cause ended_by "
    "retry_of question stopping output log"
)
RUN = list_of(
    "run_id plan at started_at ended_at duration active paused draining slots last_event progress "
    "one_by_one saved cost tokens tasks"
)


def test_the_names_stay() -> None:
    made = run_json(every_state())
    assert list(made) == RUN
    assert list(made["tasks"][0]) == TASK
    assert [each.name for each in fields(TaskFacts)] == TASK


def test_everything_a_task_knows_is_in_its_json() -> None:
    known = task("a", State.RUNNING, fraction=0.5, claims=("writes x",), question="Really?")
    made = json.loads(json.dumps(task_json(known), allow_nan=False))
    for each in fields(TaskFacts):
        value = getattr(known, each.name)
        assert made[each.name] == (list(value) if isinstance(value, tuple) else value)


def test_the_states_add_up_to_the_total() -> None:
    made = progress_json(every_state().progress)
    assert sum(made[state] for state in State) == made["total"] == 13
    assert made["ended"] == 7
    assert made["zombies"] == 1


def test_json_is_harmless_in_a_terminal_as_it_is() -> None:
    written = json.dumps(run_json(hostile(every_state())))
    assert written.isascii()
    assert written.isprintable()
