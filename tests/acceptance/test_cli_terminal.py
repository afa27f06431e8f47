"""A run in a real terminal: the live view, its keys, and a window that is closed."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from rich.cells import cell_len

from tests.acceptance.command_line import Folder, Gate, folder
from tests.acceptance.window import Window

__all__ = ["folder"]

LONG = "refactor-" + "a-very-long-name-" * 11 + "end"


@pytest.fixture
def gate(folder: Folder) -> Gate:
    return folder.gate("held")


def plan(folder: Folder, gate: Gate, **tasks: Any) -> None:
    """One task that is held up, one that waits for it, and others."""
    held = {
        "held": {"prompt": f"echo begun; {gate.prompt}; echo finished", "writes": "src/**"},
        "next": {"prompt": "true", "writes": "src/next.py", "priority": -1},
    }
    folder.write("plan.yaml", json.dumps({"tasks": held | tasks}))


def assert_fits(lines: list[str], columns: int, rows: int) -> None:
    assert len(lines) == rows
    assert all(cell_len(line) <= columns for line in lines)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50)])
def test_the_live_view_shows_lanes_reasons_progress_and_leaves_a_summary(
    columns: int, rows: int, folder: Folder, gate: Gate
) -> None:
    last = {"prompt": "true", "writes": "last", "after": "next"}
    plan(folder, gate, last=last, **{LONG: {"prompt": "true", "writes": "src/x"}})
    with Window(folder, columns, rows, "run", "plan.yaml") as window:
        gate.reached()
        lines = window.frame(lambda lines: "● 1 running" in "\n".join(lines))
        assert_fits(lines, columns, rows)
        assert lines[0].startswith(" plan.yaml")
        text = "\n".join(lines)
        assert "held holds write src/**" in text
        assert "1 blocked by next" in text
        assert "4 tasks" in text
        assert "Ctrl-C" in lines[-1]
        assert any("refactor-" in line and "end" in line for line in lines)  # without its middle
        gate.open()
        code, left = window.end()
        assert code == 0
        assert window.is_given_back
        assert "plan.yaml  all 4 succeeded" in left
        assert "Traceback" not in left


def test_the_view_follows_the_window_when_it_is_resized(folder: Folder, gate: Gate) -> None:
    plan(folder, gate)
    with Window(folder, 80, 24, "run", "plan.yaml") as window:
        gate.reached()
        window.frame_with("running")
        for columns, rows in ((200, 50), (40, 12), (100, 30)):
            window.resize(columns, rows)
            window.process.send_signal(signal.SIGWINCH)
            # A frame of the old size may be on its way; the last line says which one it is.
            lines = window.frame(lambda lines: " 0:" in lines[-1])
            assert_fits(lines, columns, rows)
        gate.open()
        assert window.end()[0] == 0


def test_two_hundred_tasks_fit_on_a_small_screen(folder: Folder, gate: Gate) -> None:
    many = {f"task-{n}": {"prompt": "true", "writes": "src/**"} for n in range(200)}
    plan(folder, gate, **many)
    with Window(folder, 80, 24, "run", "plan.yaml") as window:
        gate.reached()
        lines = window.frame_with("202 tasks  ● 1 running  ○ 201 waiting")
        assert_fits(lines, 80, 24)
        assert lines[3].startswith(" ● held ")
        assert any("task-0 " in line and "held holds write src/**" in line for line in lines)
        window.press("\x03")
        window.frame_with("Ctrl-C again")
        window.press("\x03")
        code, left = window.end()
        assert code == 130
        assert "202 tasks not finished" in left
        assert left.count("\n") < 60


def test_the_first_ctrl_c_drains_and_says_so(folder: Folder, gate: Gate) -> None:
    plan(folder, gate)
    with Window(folder, 100, 30, "run", "plan.yaml") as window:
        gate.reached()
        window.frame_with("Ctrl-C: let running tasks finish (up to 30 s), then stop")
        window.press("\x03")
        window.frame_with("Ctrl-C again: stop at once")
        gate.open()
        code, left = window.end()
        assert code == 130
        assert window.is_given_back
        assert "held  succeeded" in left
        assert "1 task not finished" in left
        assert "interlock run --resume" in left
    assert folder.told("logs", "held") == "begun\nfinished\n"  # the agent did not get the Ctrl-C
    assert folder.json("run", "--resume")["progress"]["succeeded"] == 2


def test_the_second_ctrl_c_stops_at_once(folder: Folder, gate: Gate) -> None:
    plan(folder, gate)
    with Window(folder, 100, 30, "run", "plan.yaml") as window:
        gate.reached()
        window.frame_with("Ctrl-C: let running tasks finish")
        window.press("\x03")
        window.frame_with("Ctrl-C again")
        window.press("\x03")
        code, left = window.end()
        assert code == 130
        assert window.is_given_back
        assert "2 tasks not finished" in left
        assert "Traceback" not in left
    gate.open()
    assert folder.json("run", "--resume")["progress"]["succeeded"] == 2


@pytest.mark.parametrize("how", [[], ["--headless"]], ids=["live", "headless"])
def test_a_closed_window_leaves_the_run_resumable(
    how: list[str], folder: Folder, gate: Gate
) -> None:
    plan(folder, gate)
    with Window(folder, 80, 24, "run", "plan.yaml", *how) as window:
        gate.reached()
        if not how:
            window.frame_with("running")
        window.close()
        folder.draining()
        gate.open()
        assert window.process.wait() == 128 + signal.SIGHUP
    facts = folder.facts("status")
    assert [task["state"] for task in facts["tasks"]] == ["succeeded", "waiting"]
    assert facts["active"] is False
    resumed = folder.json("run", "--resume")
    assert resumed["run_id"] == facts["run_id"]
    assert resumed["progress"]["succeeded"] == 2


def test_status_is_watched_until_the_run_has_ended(folder: Folder, gate: Gate) -> None:
    plan(folder, gate)
    running = folder.start("run", "plan.yaml")
    gate.reached()
    with Window(folder, 100, 30, "status", "--watch") as window:
        lines = window.frame_with("held holds write src/**")
        assert "Ctrl-C: stop watching; the run continues" in lines[-1]
        gate.open()
        code, left = window.end()
        assert code == 0
        assert window.is_given_back
        assert "2 succeeded" in left
    assert running.ended().code == 0


def test_ctrl_c_ends_the_watching_and_not_the_run(folder: Folder, gate: Gate) -> None:
    plan(folder, gate)
    running = folder.start("run", "plan.yaml")
    gate.reached()
    with Window(folder, 100, 30, "status", "--watch") as window:
        window.frame_with("held")
        window.press("\x03")
        window.end()
        assert window.is_given_back
    assert folder.state("held") == "running"
    gate.open()
    assert running.ended().code == 0


def test_there_is_no_live_view_where_it_is_not_wanted(folder: Folder) -> None:
    for words in (["--headless"], ["--json"]):
        with Window(folder, 80, 24, "run", "echo hello", *words) as window:
            code, left = window.end()
            assert code == 0
            assert window.picture.modes == {}
            assert "hello" in left
