"""The end of a run says how it came out and what to do next."""

from __future__ import annotations

from interlock.model.outcome import State
from interlock.views.terminal.summary import summary
from tests.unit.views.runs import NOW, every_state, run, task, text_of


def test_a_run_that_went_well_says_so_and_asks_for_nothing() -> None:
    shown = text_of(summary(run(task("a", State.SUCCEEDED), task("b", State.SUCCEEDED, cost=2.5))))
    assert "all 2 succeeded in 1 min" in shown
    assert "about $2.50" in shown
    assert "next" not in shown


def test_a_failure_is_told_with_its_error_and_its_log() -> None:
    failed = task("lint", State.FAILED, attempt=3, error="exit 1\nE501", error_type="CommandFailed",
                  log=".interlock/logs/7f3a/lint/3.log")  # fmt: skip
    shown = text_of(summary(run(failed, task("a", State.SUCCEEDED))))
    assert "1 of 2 succeeded" in shown
    assert "✗ lint failed after 3 attempts" in shown
    assert "     CommandFailed: exit 1\n     E501\n" in shown
    assert "log: .interlock/logs/7f3a/lint/3.log" in shown
    assert "interlock logs lint" in shown


def test_what_is_not_finished_can_be_taken_up() -> None:
    shown = text_of(summary(run(task("a", State.SUCCEEDED), task("b"), active=False)))
    assert "1 task not finished" in shown
    assert "interlock run --resume" in shown


def test_a_command_can_be_typed_whatever_the_id() -> None:
    shown = text_of(summary(run(task("$(rm -rf x); y", State.FAILED))))
    assert "interlock logs '$(rm -rf x); y'" in shown


def test_every_outcome_is_listed_with_its_word() -> None:
    shown = text_of(summary(every_state()))
    for word in ("succeeded", "failed", "timed out", "cancelled", "skipped", "conflicted"):
        assert word in shown
    assert "13 tasks" not in shown


def test_of_a_large_run_what_succeeded_is_only_counted() -> None:
    shown = text_of(
        summary(
            run(
                *(task(f"ok-{number}", State.SUCCEEDED) for number in range(60)),
                *(task(f"bad-{number}", State.FAILED) for number in range(40)),
                ended_at=NOW,
            )
        )
    )
    assert "✓ 60 succeeded" in shown
    assert "ok-1" not in shown
    assert "bad-29 " in shown
    assert "and 10 more" in shown


def test_time_saved_is_said_against_one_by_one() -> None:
    slow = [task(each, State.SUCCEEDED, duration=60.0) for each in "abc"]
    assert "2 min saved, 3.0 × as fast as one after another" in text_of(summary(run(*slow)))
    assert "saved" not in text_of(summary(run(task("a", State.SUCCEEDED))))


def test_a_run_without_tasks_has_an_end_too() -> None:
    assert "no tasks" in text_of(summary(run()))
