"""Commands from another terminal that change a run: each is durable when it has answered."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.acceptance.command_line import Folder, Gate, Going, folder

__all__ = ["folder"]


@pytest.fixture
def gate(folder: Folder) -> Gate:
    return folder.gate("held")


def going(folder: Folder, gate: Gate, *words: str, **tasks: object) -> Going:
    """A run that goes on until the gate is opened, with some more tasks."""
    held = {"held": {"prompt": gate.prompt, "writes": "held"}}
    folder.write("plan.yaml", json.dumps({"tasks": held | tasks}))
    running = folder.start("run", "plan.yaml", "--json", *words)
    gate.reached()
    return running


def outcomes(running: Going, code: int = 0) -> dict[str, str]:
    done = running.ended()
    assert done.code == code, done
    return {task["id"]: task["state"] for task in json.loads(done.out)["tasks"]}


def test_tasks_are_cancelled_by_name_all_of_those_named_or_none(folder: Folder, gate: Gate) -> None:
    other = folder.gate("other")
    tasks = {
        "other": {"prompt": other.prompt, "writes": "other"},
        "next": {"prompt": "true", "writes": "next", "after": "held"},
        "apart": {"prompt": "true", "writes": "held", "priority": -1},
    }
    running = going(folder, gate, **tasks)
    other.reached()
    assert "nobody" in folder.refused("cancel", "held", "nobody")
    assert folder.state("held") == "running"
    assert folder.told("cancel", "held") == "Cancelled: held.\n"
    assert folder.facts("cancel", "held") == {"cancelled": []}
    assert folder.told("cancel", "held") == "All of them had already ended.\n"
    other.open()
    assert outcomes(running, 1) == {
        "held": "cancelled",
        "other": "succeeded",
        "next": "skipped",
        "apart": "succeeded",
    }


def test_everything_is_cancelled_at_once(folder: Folder, gate: Gate) -> None:
    running = going(folder, gate, b={"prompt": "true", "writes": "held"})
    assert "name the tasks to cancel, or use --all" in folder.refused("cancel")
    assert "name the tasks to cancel, or use --all" in folder.refused("cancel", "b", "--all")
    assert folder.facts("cancel", "--all") == {"cancelled": ["held", "b"]}
    assert outcomes(running, 1) == {"held": "cancelled", "b": "cancelled"}


def test_a_task_that_failed_is_done_again_with_what_was_skipped(folder: Folder, gate: Gate) -> None:
    tasks = {
        "flaky": {"prompt": "test -e mended && echo fine", "writes": "flaky"},
        "after": {"prompt": "echo is {{flaky.output}}", "writes": "after"},
        "last": {"prompt": "echo then {{after.output}}", "writes": "last"},
        "well": {"prompt": "true", "writes": "well"},
    }
    running = going(folder, gate, **tasks)
    folder.event("settled", "last")
    folder.event("settled", "well")
    assert "held has not ended; it is running" in folder.refused("retry", "held")
    assert "well succeeded" in folder.refused("retry", "well")
    assert "no task of this run has the id 'nobody'" in folder.refused("retry", "nobody")
    folder.write("mended", "")
    again = {"flaky": "flaky~2", "after": "after~2", "last": "last~2"}
    assert folder.facts("retry", "flaky") == {"submitted": again}
    folder.event("settled", "last~2")
    gate.open()
    done = running.ended()
    tasks_ = {task["id"]: task for task in json.loads(done.out)["tasks"]}
    assert tasks_["last~2"]["output"] == "then is fine"
    assert tasks_["flaky~2"]["retry_of"] == "flaky"
    assert set(tasks_) == {"held", "flaky~2", "after~2", "last~2", "well"}
    assert done.code == 0  # what a person had done again counts as it was done last
    settled = folder.json("why", "flaky")
    assert (settled["task_id"], settled["state"]) == ("flaky~2", "succeeded")


def test_a_run_waits_for_what_is_submitted_late(folder: Folder, gate: Gate) -> None:
    late = folder.gate("late")
    tasks = {"a": {"prompt": f"mkdir once && exit 1; {late.prompt}; echo late", "writes": "a"}}
    running = going(folder, gate, **tasks)
    folder.event("settled", "a")
    assert folder.told("retry", "a") == "Submitted a again as a~2.\n"
    late.reached()
    gate.open()
    folder.event("settled", "held")
    assert folder.state("a~2") == "running"
    late.open()
    assert outcomes(running, 0)["a~2"] == "succeeded"


def test_a_retry_that_was_cut_off_does_not_keep_the_run_from_its_end(
    folder: Folder, gate: Gate
) -> None:
    late = folder.gate("late")
    script = f"mkdir once && exit 1; test -e mended && exit 0; {late.prompt}"
    after = {"prompt": "echo after {{a.status}}", "writes": "b"}
    running = going(folder, gate, a={"prompt": script, "writes": "a"}, b=after)
    folder.event("settled", "b")
    folder.ask("retry", "a")
    late.reached()
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    folder.write("mended", "")
    facts = json.loads(folder.resume(gate, "--json", code=1).out)
    assert facts["ended_at"] is not None
    assert {task["id"]: task["state"] for task in facts["tasks"]} == {
        "held": "succeeded",
        "a": "failed",
        "b": "skipped",
        "a~2": "succeeded",
        "b~2": "succeeded",
    }


def test_a_pause_lets_nothing_start_until_it_is_over(folder: Folder, gate: Gate) -> None:
    tasks = {
        "b": {"prompt": "true", "writes": "held"},
        "c": {"prompt": "true", "writes": "held", "priority": -1},
    }
    running = going(folder, gate, **tasks)
    assert folder.facts("pause") == {"paused": "everything"}
    assert folder.told("pause", "c") == "Paused c. Resume with `interlock resume c`.\n"
    gate.open()
    folder.event("settled", "held")
    assert [folder.state("b"), folder.state("c")] == ["waiting", "waiting"]
    assert folder.facts("status")["paused"] is True
    assert folder.told("resume") == "Resumed the run.\n"
    folder.event("settled", "b")
    assert folder.state("c") == "waiting"
    assert folder.facts("resume", "c") == {"resumed": "c"}
    assert set(outcomes(running).values()) == {"succeeded"}


def test_a_priority_is_a_number_or_a_name(folder: Folder, gate: Gate) -> None:
    script = "echo $INTERLOCK_TASK >> order"
    names = {name: {"prompt": script, "writes": "held"} for name in ("b", "c", "d")}
    running = going(folder, gate, **names)
    assert folder.told("prioritize", "d", "7") == "d now has priority 7.\n"
    assert folder.facts("prioritize", "c", "high") == {"task": "c", "priority": 10}
    said = folder.refused("prioritize", "b", "soon")
    assert (
        "'soon' is not a valid priority; use a whole number, or one of: low, normal, high" in said
    )
    assert "nobody" in folder.refused("prioritize", "nobody", "1")
    gate.open()
    outcomes(running)
    assert (folder.path / "order").read_text().split() == ["c", "d", "b"]


def test_an_answer_lets_go_on_who_asked_and_no_ends_it(folder: Folder, gate: Gate) -> None:
    tasks = {
        "deploy": {"prompt": "echo gone out", "writes": "a", "ask": "Deploy now?"},
        "delete": {"prompt": "touch deleted", "writes": "b", "ask": "Really?"},
    }
    running = going(folder, gate, **tasks)
    folder.event("needs_you", "deploy?")
    folder.event("needs_you", "delete?")
    assert "Deploy now?" in folder.told("status")
    assert folder.state("deploy?") == "needs_you"
    assert "held" in folder.refused("answer", "held", "yes")
    assert folder.told("answer", "deploy?", "yes") == "Answered deploy?: yes\n"
    assert folder.facts("answer", "delete?", "no") == {"task": "delete?", "answer": "no"}
    gate.open()
    assert outcomes(running, 1) == {
        "held": "succeeded",
        "deploy?": "succeeded",
        "deploy": "succeeded",
        "delete?": "failed",
        "delete": "skipped",
    }
    assert not (folder.path / "deleted").exists()


def test_what_was_asked_for_is_durable_when_it_is_answered(folder: Folder, gate: Gate) -> None:
    running = going(folder, gate, b={"prompt": "true", "writes": "held"})
    folder.ask("cancel", "b")
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    assert folder.state("b") == "cancelled"


@pytest.mark.parametrize(
    "words",
    ["cancel a", "cancel --all", "retry a", "pause", "resume", "prioritize a 1", "answer a yes"],
)
def test_where_no_run_goes_on_there_is_nothing_to_steer(words: str, folder: Folder) -> None:
    said = folder.refused(*words.split())
    assert f"no run is in progress in {folder.path}" in said
