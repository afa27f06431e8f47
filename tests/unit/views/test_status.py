"""The status: who runs on which files, what waits for what, what is in use, how things ended."""

from __future__ import annotations

from interlock.model.outcome import State
from interlock.views.cli.agents_table import AgentRow, agents
from interlock.views.terminal.status import status
from tests.unit.views.runs import every_state, run, task, text_of, why


def test_running_agents_are_shown_with_their_files() -> None:
    shown = text_of(status(every_state(), why))
    row = next(line for line in shown.splitlines() if "everything" in line)
    assert row.split("  ")[-1] == "writes src/**, reads docs/, uses gpu"
    assert "attempt 2 of 3" in row


def test_queued_tasks_say_what_they_wait_for() -> None:
    asks = task("b", State.NEEDS_YOU, question="Land it?")
    shown = text_of(status(run(task("a"), asks), why))
    assert "Queued 2" in shown
    assert "api holds write src/**" in shown
    assert "Land it?" in shown


def test_active_files_say_who_holds_them() -> None:
    readers = [task(each, State.RUNNING, claims=("reads docs/",)) for each in "ab"]
    lines = text_of(status(run(*readers), why)).splitlines()
    assert " reads  docs/  a, b" in lines


def test_resources_are_shown_as_they_are_given() -> None:
    shown = text_of(status(every_state(), why, resources=[("CPU", "34 %")]))
    assert " slots  2 of 4 in use" in shown
    assert " CPU    34 %" in shown


def test_recent_outcomes_come_newest_first() -> None:
    ended = [task(f"t{number}", State.SUCCEEDED, ended_at=float(number)) for number in range(20)]
    shown = text_of(status(run(*ended), why))
    assert shown.index("t19") < shown.index("t18") < shown.index("t11")
    assert "t10" not in shown


def test_a_run_that_nobody_carries_out_is_not_shown_as_live() -> None:
    shown = text_of(status(run(task("a"), active=False), why))
    assert "interrupted; resume it with `interlock run --resume`" in shown


def test_agents_are_a_table_without_empty_columns() -> None:
    shown = text_of(agents([AgentRow("codex", "codex exec {prompt}", ("src/**",), 2)]))
    assert [line.split() for line in shown.splitlines()] == [
        ["agent", "runs", "owns", "at", "once"],
        ["codex", "codex", "exec", "{prompt}", "src/**", "2"],
    ]
    assert "no agents" in text_of(agents([]))
