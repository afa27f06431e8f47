"""What the journal remembers of tasks that a program brings again."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.errors import ChangedTask
from interlock.journal.state.run_state import RunState
from interlock.kernel import stimuli as s
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.runtime.recovery.known_tasks import EarlierSuccess, KnownTasks, fold_run

DONE: Outcome[Any] = Outcome("a", State.SUCCEEDED, result=1)


def _same(task: Task) -> str:
    return f"{task.id} {task.prompt}"


def _past(*tasks: Task, outcome: Outcome[Any] | None = None) -> RunState:
    events = [Event(n, 0.0, Kind.SUBMITTED, task.id, task) for n, task in enumerate(tasks)]
    past = fold_run(0.0, events)
    for known in past.tasks.values():
        known.fingerprint, known.outcome = _same(known.submission), outcome
    return past


def test_what_nobody_knows_is_new() -> None:
    assert KnownTasks(_same).find(Task("a")) is None


def test_what_ended_has_its_outcome_once() -> None:
    remembered = KnownTasks(_same, _past(Task("a"), outcome=DONE))
    assert remembered.find(Task("a")) is DONE
    remembered.bring("a")
    assert remembered.find(Task("a")) is None  # the kernel has the error for a second one


def test_what_was_unfinished_has_a_past() -> None:
    remembered = KnownTasks(_same, _past(Task("a")))
    assert isinstance(remembered.find(Task("a")), s.Past)
    assert remembered.unbound == ("a",)
    remembered.bring("a")
    assert not remembered.unbound


def test_a_changed_task_is_refused_unless_it_may_run() -> None:
    changed = Task("a", prompt="another")
    with pytest.raises(ChangedTask, match="prompt changed; it had not finished"):
        KnownTasks(_same, _past(Task("a"))).find(changed)
    assert KnownTasks(_same, _past(Task("a")), when_changed="rerun").find(changed) is None
    ended = _past(Task("a"), outcome=DONE)
    with pytest.raises(ChangedTask, match="it had ended"):
        KnownTasks(_same, ended, when_changed="rerun").find(changed)


def test_a_success_is_inherited_by_the_same_task_only() -> None:
    remembered = KnownTasks(_same, inherited={"a": EarlierSuccess(_same(Task("a")), DONE)})
    assert remembered.find(Task("a", prompt="another")) is None
    assert remembered.find(Task("a")) is DONE


def test_a_key_brings_its_success_whatever_the_task_is_called() -> None:
    remembered = KnownTasks(_same, by_key={"k": DONE}.get)
    assert remembered.find(Task("b", key="k")) is DONE
    assert remembered.find(Task("b", key="other")) is None


def test_a_key_names_the_task_that_has_it() -> None:
    remembered = KnownTasks(_same, _past(Task("a", key="k")))
    assert remembered.as_known(Task("b", key="k")).id == "a"
    remembered.bring("a")
    assert remembered.as_known(Task("b", key="k")).id == "b"


def test_only_what_was_cut_off_is_asked_about_and_only_until_the_answer() -> None:
    past = _past(Task("a"), Task("b"))
    remembered = KnownTasks(_same, past, asks=True)
    assert not remembered.asks_about("a")
    past.tasks["a"].cut()
    assert remembered.asks_about("a")
    assert not remembered.asks_about("b")
    found = remembered.find(Task("a"))
    assert isinstance(found, s.Past)
    assert found.paused
    past.tasks["a"].may_run_again = True
    assert not remembered.asks_about("a")


def test_the_time_of_a_group_is_that_which_was_said_first() -> None:
    past = _past(Task("a"), Task("b"))
    remembered = KnownTasks(_same, past)
    assert remembered.group_until([Task("a"), Task("new")]) is None
    past.tasks["a"].group_until, past.tasks["b"].group_until = 20.0, 10.0
    assert remembered.group_until([Task("a"), Task("b"), Task("new")]) == 10.0
