"""`status`, `logs` and `events`, while a run goes on and afterwards."""

from __future__ import annotations

import json
import os
import signal

from tests.acceptance.command_line import Folder, folder

__all__ = ["folder"]

EVENT = ["number", "at", "kind", "task_id", "data"]


def test_status_shows_who_runs_on_what_who_waits_and_what_has_ended(folder: Folder) -> None:
    gate = folder.gate("api")
    folder.write(
        "plan.yaml",
        f"""\
        tasks:
          schema: {{prompt: echo a schema, writes: schema}}
          api: {{prompt: "{gate.prompt}", writes: src/**, after: schema, priority: 1}}
          tests: {{prompt: "true", reads: src/api.py, writes: tests, after: schema}}
        """,
    )
    running = folder.start("run", "plan.yaml")
    gate.reached()
    said = folder.told("status")
    assert "plan.yaml" in said
    assert "3 tasks  ● 1 running  ○ 1 waiting  ✓ 1 succeeded" in said
    assert "Running 1\n ● api" in said
    assert "api holds write src/**" in said
    assert " writes  src/**  api\n" in said
    assert "slots   1 of 4 in use" in said
    assert "CPU" in said
    assert "a schema" in said
    facts = folder.facts("status")
    assert (facts["active"], facts["ended_at"]) == (True, None)
    assert [task["state"] for task in facts["tasks"]] == ["succeeded", "running", "waiting"]
    gate.open()
    assert running.ended().code == 0
    assert "ended" in folder.told("status").splitlines()[0]


def test_watching_needs_a_terminal(folder: Folder) -> None:
    folder.run("run", "true")
    assert "--watch needs a terminal" in folder.refused("status", "--watch")


def test_logs_show_what_an_attempt_has_printed(folder: Folder) -> None:
    folder.write(
        "plan.yaml",
        """\
        tasks:
          twice:
            prompt: |
              if mkdir once 2> /dev/null; then echo first try >&2; exit 1; fi
              printf 'second \\033[31mtry\\033[0m\\nhalf a line'
            attempts: 2
            backoff: 0
            writes: x
        """,
    )
    folder.run("run", "plan.yaml")
    assert folder.told("logs", "twice") == "second try\nhalf a line\n"
    assert folder.told("logs", "twice", "--attempt", "1") == "first try\n"
    assert "no log of attempt 7; it has logs of: 1, 2" in folder.refused(
        "logs", "twice", "--attempt", "7"
    )
    said = folder.refused("logs", "twic")
    assert "has no task 'twic'; did you mean twice?" in said


def test_logs_follow_a_task_through_its_attempts_until_it_has_ended(folder: Folder) -> None:
    one, two = folder.gate("one"), folder.gate("two")
    script = f"""
      echo begins
      if mkdir once 2> /dev/null; then {one.prompt}; echo fails; exit 1; fi
      {two.prompt}; echo ends
    """
    tasks = {"a": {"prompt": script, "attempts": 2, "backoff": 0}, "b": {"prompt": "echo other"}}
    folder.write("plan.yaml", json.dumps({"tasks": tasks}))
    running = folder.start("run", "plan.yaml")
    one.reached()
    logs = folder.start("logs", "a", "-f")
    assert logs.line() == "begins\n"  # before anything has ended
    one.open()
    assert [logs.line(), logs.line()] == ["fails\n", "begins\n"]
    two.reached()
    two.open()
    assert logs.ended() == (0, "ends\n", "")
    assert running.ended().code == 0
    assert folder.ask("logs", "a", "-f").out == "begins\nfails\nbegins\nends\n"


def test_what_a_python_agent_logs_is_its_log(folder: Folder) -> None:
    folder.write("crew.py", "def work(ctx):\n    ctx.log('half way')\n    ctx.log('done')\n")
    folder.write("interlock.yaml", "agents: {work: {python: 'crew:work'}}")
    folder.run("run", "go")
    (task,) = folder.facts("status")["tasks"]
    assert folder.told("logs", task["id"]) == "half way\ndone\n"


def test_events_tell_the_story_in_order(folder: Folder) -> None:
    folder.plan(a="echo hello")
    folder.run("run", "plan.yaml")
    lines = folder.told("events").splitlines()
    told = [json.loads(line) for line in folder.told("events", "--json").splitlines()]
    assert [list(event) for event in told] == [EVENT] * len(lines)
    assert [event["number"] for event in told] == list(range(1, len(lines) + 1))
    for line, event in zip(lines, told, strict=True):
        assert line.split()[0] == str(event["number"])
        assert line.split()[2] == event["kind"]
    kinds = [event["kind"] for event in told]
    story = ["run_started", "submitted", "started", "launched", "ended", "settled", "run_ended"]
    assert [kind for kind in kinds if kind in story] == story
    settled = told[kinds.index("settled")]
    assert (settled["task_id"], settled["data"]["status"]) == ("a", "succeeded")
    assert settled["data"]["result"] == "hello"
    later = folder.told("events", "--json", "--since", "3").splitlines()
    assert [json.loads(line) for line in later] == told[3:]


def test_events_are_followed_until_the_run_has_ended(folder: Folder) -> None:
    gate = folder.gate("a")
    folder.plan(a=gate.prompt)
    running = folder.start("run", "plan.yaml")
    gate.reached()
    events = folder.start("events", "-f", "--json")
    events.line_with('"launched"')
    gate.open()
    done = events.ended()
    assert done.code == 0
    assert json.loads(done.out.splitlines()[-1])["kind"] == "run_ended"
    assert running.ended().code == 0


def test_who_follows_a_run_that_is_killed_does_not_wait_for_ever(folder: Folder) -> None:
    gate = folder.gate("a")
    folder.plan(a=f"echo here; {gate.prompt}")
    running = folder.start("run", "plan.yaml")
    gate.reached()
    following = folder.start("events", "-f"), folder.start("logs", "a", "-f")
    following[0].line_with("launched")
    following[1].line_with("here")
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    assert [each.ended().code for each in following] == [0, 0]


def test_ctrl_c_ends_the_following_and_not_the_run(folder: Folder) -> None:
    gate = folder.gate("a")
    folder.plan(a=f"echo here; {gate.prompt}")
    running = folder.start("run", "plan.yaml")
    gate.reached()
    logs = folder.start("logs", "a", "-f")
    logs.line_with("here")
    logs.signal(signal.SIGINT)
    assert logs.ended() == (130, "", "")
    assert folder.state("a") == "running"
    gate.open()
    assert running.ended().code == 0


def test_a_number_that_no_event_can_have_is_refused(folder: Folder) -> None:
    folder.run("run", "true")
    assert "--since" in folder.refused("events", "--since", str(10**30))
