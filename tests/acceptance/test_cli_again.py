"""Going on with the right run, and doing again what did not succeed: nothing is done twice."""

from __future__ import annotations

import json
import os
import signal

from tests.acceptance.command_line import Folder, folder

__all__ = ["folder"]


def _plan(folder: Folder, name: str = "plan.yaml", **tasks: object) -> None:
    folder.write(name, json.dumps({"tasks": tasks}))


def _states(facts: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {task["id"]: task["state"] for task in facts["tasks"]}


def test_another_run_since_does_not_make_an_interrupted_one_unreachable(folder: Folder) -> None:
    gate = folder.gate("held")
    _plan(
        folder,
        a={"prompt": "echo a >> ran", "writes": "a"},
        b={"prompt": gate.prompt, "writes": "b", "after": "a"},
    )
    running = folder.start("run", "plan.yaml")
    gate.reached()
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    said = folder.say("run", "echo other")
    assert "was interrupted" in said
    going_on = folder.start("run", "--resume", "--json")
    gate.reached()
    gate.open()
    done = going_on.ended()
    assert done.code == 0
    assert _states(json.loads(done.out)) == {"a": "succeeded", "b": "succeeded"}
    assert (folder.path / "ran").read_text() == "a\n"
    assert "nothing is left to do" in folder.refused("run", "--resume")


def test_the_last_run_of_a_plan_is_resumed_when_the_plan_is_named(folder: Folder) -> None:
    _plan(folder, one={"prompt": "echo one >> ran", "writes": "a"}, two={"prompt": "exit 1"})
    folder.run("run", "plan.yaml", code=1)
    _plan(folder, "other.yaml", three={"prompt": "exit 1"})
    folder.run("run", "other.yaml", code=1)
    assert _states(folder.json("run", "plan.yaml", "--resume", code=1)) == {
        "one": "succeeded",
        "two": "failed",
    }
    assert (folder.path / "ran").read_text() == "one\n"


def test_variables_of_the_first_call_hold_when_a_run_goes_on(folder: Folder) -> None:
    plan = {
        "variables": {"x": "default", "y": "default"},
        "tasks": {
            "one": {"prompt": "echo one {{x}} >> ran", "writes": "a"},
            "two": {"prompt": "echo two {{y}} >> ran; test {{y}} = 3", "writes": "b"},
        },
    }
    folder.write("plan.yaml", json.dumps(plan))
    folder.run("run", "plan.yaml", "--set", "x=1", "--set", "y=2", code=1)
    folder.run("run", "--resume", "--set", "y=3")
    ran = sorted((folder.path / "ran").read_text().splitlines())
    assert ran == ["one 1", "two 2", "two 3"]


def test_a_plan_is_found_again_from_any_folder_of_the_project(folder: Folder) -> None:
    _plan(folder, wrong={"prompt": "echo wrong >> ran", "writes": "a"})
    _plan(folder, "sub/plan.yaml", right={"prompt": "echo right >> ran; exit 1", "writes": "a"})
    below = Folder(folder.path / "sub")
    below.run("run", "plan.yaml", code=1)
    folder.run("run", "--resume", code=1)
    assert (folder.path / "ran").read_text() == "right\nright\n"


def test_the_value_of_a_declared_secret_is_refused_in_texts_and_variables(folder: Folder) -> None:
    project = (folder.path / "interlock.yaml").read_text()
    folder.write("interlock.yaml", project + "\nsecrets: [TOKEN]\n")
    folder.write(".env", "TOKEN=hunter2-and-more\n")
    folder.write("plan.yaml", json.dumps({"tasks": {"a": {"prompt": "echo {{v}}", "writes": "a"}}}))
    for words in (["echo hunter2-and-more"], ["plan.yaml", "--set", "v=hunter2-and-more"]):
        said = folder.refused("run", *words)
        assert "the secret TOKEN" in said
        assert "hunter2" not in said
    assert not (folder.path / ".interlock" / "journal.db").exists()


def test_a_task_is_done_again_once_at_a_time(folder: Folder) -> None:
    gate, again = folder.gate("held"), folder.gate("again")
    _plan(
        folder,
        held={"prompt": gate.prompt, "writes": "held"},
        a={"prompt": f"mkdir once && exit 1; {again.prompt}", "writes": "a"},
    )
    running = folder.start("run", "plan.yaml", "--json")
    gate.reached()
    folder.event("settled", "a")
    folder.run("retry", "a")
    again.reached()
    assert "a has been retried as a~2" in folder.refused("retry", "a")
    assert "a~2 has not ended" in folder.refused("retry", "a~2")
    assert sorted(folder.json("cancel", "--all")["cancelled"]) == ["a~2", "held"]
    assert _states(json.loads(running.ended().out)) == {"held": "cancelled", "a~2": "cancelled"}


def test_two_failed_dependencies_are_done_again_one_after_the_other(folder: Folder) -> None:
    gate = folder.gate("held")
    _plan(
        folder,
        held={"prompt": gate.prompt, "writes": "held"},
        a={"prompt": "mkdir a-once && exit 1; true", "writes": "a"},
        z={"prompt": "mkdir z-once && exit 1; true", "writes": "z"},
        b={"prompt": "true", "writes": "b", "after": ["a", "z"]},
    )
    running = folder.start("run", "plan.yaml", "--json")
    gate.reached()
    folder.event("settled", "b")
    folder.event("settled", "z")
    folder.event("settled", "a")
    folder.run("retry", "z")
    folder.event("settled", "b~2")
    assert folder.json("retry", "a")["submitted"] == {"a": "a~2", "b~2": "b~3"}
    folder.event("settled", "b~3")
    gate.open()
    done = running.ended()
    assert done.code == 0
    assert set(_states(json.loads(done.out))) == {"held", "a~2", "z~2", "b~3"}
    assert _states(folder.json("run", "plan.yaml", "--resume")) == {
        "held": "succeeded",
        "a": "succeeded",
        "z": "succeeded",
        "b": "succeeded",
    }  # what was done again counts for what it did again


def test_a_question_is_answered_under_the_name_of_its_task(folder: Folder) -> None:
    _plan(folder, release={"prompt": "true", "writes": "a", "ask": "Release it?"})
    running = folder.start("run", "plan.yaml")
    running.line_with("needs you: Release it?")
    assert "tasks with an open question: release?" in folder.refused("answer", "nobody", "yes")
    folder.run("answer", "release", "yes")
    assert running.ended().code == 0
