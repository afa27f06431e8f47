"""Runs that are interrupted, killed or closed with failures, and taken up again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from tests.acceptance.command_line import Folder, Gate, Going, folder

__all__ = ["folder"]


def three(folder: Folder, gate: Gate) -> None:
    """One task that is done, one that is held up, one that comes after it."""
    folder.write(
        "plan.yaml",
        f"""\
        tasks:
          done: {{prompt: echo done >> done.txt, writes: done.txt}}
          held: {{prompt: "{gate.prompt}; echo held >> held.txt", writes: held.txt, after: done}}
          last: {{prompt: cat held.txt, writes: last.txt, after: held}}
        """,
    )


def going(folder: Folder, gate: Gate, *words: str) -> Going:
    running = folder.start("run", *words)
    gate.reached()
    return running


def test_the_first_ctrl_c_lets_finish_what_runs_and_the_rest_can_be_resumed(folder: Folder) -> None:
    gate = folder.gate("held")
    three(folder, gate)
    running = going(folder, gate, "plan.yaml")
    running.signal(signal.SIGINT)
    folder.draining()
    gate.open()
    done = running.ended()
    assert done.code == 130
    assert "1 task not finished" in done.out
    assert "interlock run --resume" in done.out
    assert "Traceback" not in done.err
    facts = folder.facts("status")
    assert (facts["active"], facts["ended_at"]) == (False, None)
    assert [task["state"] for task in facts["tasks"]] == ["succeeded", "succeeded", "waiting"]
    resumed = folder.json("run", "--resume")
    assert resumed["run_id"] == facts["run_id"]
    assert [task["output"] for task in resumed["tasks"]] == ["", "", "held"]
    assert (folder.path / "done.txt").read_text() == "done\n"  # not run again
    assert (folder.path / "held.txt").read_text() == "held\n"


def test_the_second_ctrl_c_stops_at_once_and_nothing_is_left_running(folder: Folder) -> None:
    gate = folder.gate("held")
    three(folder, gate)
    running = going(folder, gate, "plan.yaml")
    launched = folder.event("launched", "held").fields
    running.signal(signal.SIGINT)
    folder.draining()
    running.signal(signal.SIGINT)
    done = running.ended()
    assert done.code == 130
    assert "Traceback" not in done.err
    assert not Path(f"/proc/{launched['pid']}").exists()
    assert not (folder.path / "held.txt").exists()
    gate.open()  # for its next attempt
    resumed = folder.json("run", "--resume")
    assert [task["state"] for task in resumed["tasks"]] == ["succeeded"] * 3
    assert (folder.path / "done.txt").read_text() == "done\n"


def test_a_run_whose_process_was_killed_goes_on_where_it_was(folder: Folder) -> None:
    gate = folder.gate("held")
    three(folder, gate)
    running = going(folder, gate, "plan.yaml")
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    said = folder.told("status")
    assert "interrupted; resume it with `interlock run --resume`" in said
    resumed = json.loads(folder.resume(gate, "--json").out)
    assert [task["state"] for task in resumed["tasks"]] == ["succeeded"] * 3
    assert (folder.path / "done.txt").read_text() == "done\n"


def test_a_closed_run_is_resumed_with_what_did_not_succeed(folder: Folder) -> None:
    folder.write(
        "plan.yaml",
        """\
        tasks:
          fine: {prompt: echo ran >> fine.txt, writes: fine.txt}
          flaky: {prompt: test -e mended && echo mended, writes: flaky.txt}
          after: {prompt: "echo {{flaky.output}}", writes: after.txt}
        """,
    )
    first = folder.json("run", "plan.yaml", code=1)
    assert [task["state"] for task in first["tasks"]] == ["succeeded", "failed", "skipped"]
    folder.write("mended", "")
    again = folder.json("run", "--resume")
    assert [task["state"] for task in again["tasks"]] == ["succeeded"] * 3
    assert again["tasks"][2]["output"] == "mended"
    assert (folder.path / "fine.txt").read_text() == "ran\n"
    folder.json("run", "--resume")  # there is nothing left to do
    assert (folder.path / "fine.txt").read_text() == "ran\n"
    folder.json("run", "plan.yaml")  # a new run is a new run
    assert (folder.path / "fine.txt").read_text() == "ran\nran\n"


def test_texts_and_options_are_remembered(folder: Folder) -> None:
    folder.json("run", "-j", "1", "test -e mended", "echo fine", code=1)
    folder.write("mended", "")
    again = folder.json("run", "--resume")
    assert [task["state"] for task in again["tasks"]] == ["succeeded"] * 2
    assert (again["slots"], again["plan"]) == (1, "2 tasks")


def test_variables_and_the_choice_of_tasks_are_remembered(folder: Folder) -> None:
    folder.write(
        "plan.yaml",
        """\
        variables: {who: }
        tasks:
          greet: {prompt: "test -e mended && echo hello {{who}}", writes: a}
          other: {prompt: echo never, writes: b}
        """,
    )
    words = ("run", "plan.yaml", "--only", "greet", "--set", "who=you")
    assert len(folder.json(*words, code=1)["tasks"]) == 1
    folder.write("mended", "")
    (greet,) = folder.json("run", "--resume")["tasks"]
    assert greet["output"] == "hello you"


def test_a_plan_that_was_mended_meanwhile_is_taken_as_it_is_now(folder: Folder) -> None:
    folder.plan(fine="echo ran >> ran.txt", wrong="exit 1")
    folder.run("run", "plan.yaml", code=1)
    folder.plan(fine="echo ran >> ran.txt", wrong="echo right", new="echo new")
    facts = folder.json("run", "plan.yaml", "--resume")
    assert [task["state"] for task in facts["tasks"]] == ["succeeded"] * 3
    assert (folder.path / "ran.txt").read_text() == "ran\n"


def test_there_must_be_something_to_resume(folder: Folder) -> None:
    assert "nothing has run in" in folder.refused("run", "--resume")


def test_resuming_a_run_that_goes_on_is_refused(folder: Folder) -> None:
    gate = folder.gate("held")
    three(folder, gate)
    running = going(folder, gate, "plan.yaml")
    assert "a run is already in progress here" in folder.refused("run", "--resume")
    gate.open()
    assert running.ended().code == 0


def test_a_terminated_run_can_be_resumed_as_well(folder: Folder) -> None:
    gate = folder.gate("held")
    three(folder, gate)
    running = going(folder, gate, "plan.yaml", "--json")
    for _ in range(2):
        running.signal(signal.SIGTERM)
        folder.draining()
    assert running.ended().code == 128 + signal.SIGTERM
    gate.open()
    folder.run("run", "--resume")


def test_who_goes_on_with_a_part_of_a_run_is_told_of_the_rest_which_can_be_gone_on_with(
    folder: Folder,
) -> None:
    gate = folder.gate("held")
    three(folder, gate)
    running = going(folder, gate, "plan.yaml")
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    done = folder.resume(gate, "plan.yaml", "--only", "held")
    assert "stay unfinished: last" in done.err
    assert folder.json("run", "--resume")["progress"]["succeeded"] == 3
