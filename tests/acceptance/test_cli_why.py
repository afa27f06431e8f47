"""`interlock why` from another terminal, for each kind of waiting there is: words and facts."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
from pathlib import Path
from typing import Any

from interlock.model.why import REASONS
from tests.acceptance.command_line import SHELL, Folder, Going, folder

__all__ = ["folder"]

_SPANS = re.compile(r"\b\d[\d.]*\s?(?:ms|s|min|h|d|%)(?:\s\d+\s?(?:s|min|h))?(?!\w)")
_NAMES = ["task_id", "state", "at", "since", "reasons", "clears_at", "suggestions"]
_NAMES += ["error", "error_type", "cause", "log"]
KINDS = [reason.kind for reason in REASONS]


def timeless(text: str) -> str:
    return _SPANS.sub("T", text).replace("CPU not measured yet", "CPU at T")


def asked(folder: Folder, task_id: str) -> dict[str, dict[str, Any]]:
    """The reasons by their kinds, after the words were found to say the same as the facts."""
    facts = folder.facts("why", task_id)
    assert list(facts) == _NAMES
    assert facts["task_id"] == task_id
    said = timeless(folder.told("why", task_id))
    state = facts["state"].replace("needs_you", "needed you").replace("_", " ")
    assert re.match(rf"\S+ {re.escape(task_id)} (has (been )?)?{state}\b", said), said
    for reason in facts["reasons"]:
        assert timeless(reason["text"]) in said
        assert reason["kind"] in KINDS
    for each in facts["suggestions"]:
        assert each in said
    assert said.count("–") == len(facts["reasons"])
    assert said.count("→") == len(facts["suggestions"])
    assert ("expected to clear" in said) == (
        facts["clears_at"] is not None and facts["reasons"] != []
    )
    return {reason["kind"]: reason for reason in facts["reasons"]}


def plan(folder: Folder, tasks: dict[str, Any], project: str = "") -> Going:
    """A run of these tasks, in a project with this in its file."""
    folder.write(
        "interlock.yaml", SHELL.replace("max_parallel: 4\n", project or "max_parallel: 4\n")
    )
    folder.write("plan.yaml", json.dumps({"tasks": tasks}))
    return folder.start("run", "plan.yaml")


def end(folder: Folder, running: Going) -> None:
    """All that was held up has been let go: nothing else may be in the way."""
    assert running.ended().code == 0


def test_what_it_comes_after_and_who_holds_what_it_claims(folder: Folder) -> None:
    gate = folder.gate("a")
    tasks = {
        "a": {"prompt": gate.prompt, "writes": "src/**", "estimate": "1h"},
        "b": {"prompt": "true", "writes": "src/b.py"},
        "c": {"prompt": "true", "writes": "c", "after": "a"},
    }
    running = plan(folder, tasks)
    gate.reached()
    held = asked(folder, "b")
    assert list(held) == ["held_claim"]
    assert held["held_claim"]["holder"] == "a"
    assert held["held_claim"]["witness"] == "src/b.py"
    assert held["held_claim"]["claim"]["resource"] == "src/b.py"
    after = asked(folder, "c")
    assert list(after) == ["unfinished_dependency"]
    assert after["unfinished_dependency"]["task_id"] == "a"
    assert asked(folder, "a") == {}
    assert "did you mean" in folder.refused("why", "A")
    gate.open()
    end(folder, running)
    assert asked(folder, "c") == {}


def test_no_slot_no_capacity_and_a_spent_rate(folder: Folder) -> None:
    project = """\
max_parallel: 3
capacity: {gpu: 2}
limits: {calls: {requests: 1/h}}
"""
    gates = [folder.gate(name) for name in "abc"]
    a, b, c = (gate.prompt for gate in gates)
    tasks = {
        "a": {"prompt": a, "writes": "a", "uses": "gpu=2"},
        "b": {"prompt": b, "writes": "b", "uses": "calls"},
        "gpu": {"prompt": "true", "writes": "gpu", "uses": "gpu"},
        "c": {"prompt": c, "writes": "c"},
        "slot": {"prompt": "true", "writes": "slot"},
        "rate": {"prompt": "true", "writes": "rate", "uses": "calls"},
    }
    running = plan(folder, tasks, project)
    for gate in gates:
        gate.reached()
    lacking = asked(folder, "slot")
    assert list(lacking) == ["no_capacity"]
    assert lacking["no_capacity"]["resource"] == "slots"
    assert {each["task_id"] for each in lacking["no_capacity"]["holders"]} == {"a", "b", "c"}
    reasons = folder.facts("why", "gpu")["reasons"]
    assert [each["resource"] for each in reasons] == ["gpu", "slots"]
    assert reasons[0]["holders"][0] | {"since": 0} == {"task_id": "a", "amount": 2, "since": 0}
    gates[2].open()
    folder.event("settled", "slot")
    spent = asked(folder, "rate")
    assert spent["rate_limited"]["resource"].startswith("calls")
    assert spent["rate_limited"]["until"] > spent["rate_limited"]["since"]
    folder.ask("cancel", "rate")
    gates[0].open()
    gates[1].open()
    assert running.ended().code == 1


def test_an_open_and_a_half_open_breaker(folder: Folder) -> None:
    project = "limits: {line: {failures: 1, cool_down: 1h}, quick: {failures: 1, cool_down: 1ms}}\n"
    gate = folder.gate("probe")
    tasks = {
        "fails": {"prompt": "echo no line; exit 1", "writes": "x", "uses": ["line", "quick"]},
        "open": {"prompt": "true", "reads": "x", "writes": "a", "uses": "line"},
        "probe": {"prompt": gate.prompt, "reads": "x", "writes": "b", "uses": "quick"},
        "half": {"prompt": "true", "reads": "x", "writes": "c", "uses": "quick", "priority": -1},
    }
    running = plan(folder, tasks, project)
    gate.reached()
    reasons = asked(folder, "open")
    assert reasons["open_breaker"]["resource"].startswith("line")
    assert "no line" in reasons["open_breaker"]["last"]
    assert reasons["open_breaker"]["until"] is not None
    half = asked(folder, "half")
    assert half["open_breaker"]["until"] is None
    folder.ask("cancel", "open")
    gate.open()
    assert running.ended().code == 1


def test_a_closed_gate(folder: Folder) -> None:
    gate = folder.gate("a")
    tasks = {"a": {"prompt": gate.prompt, "writes": "a"}, "b": {"prompt": "true", "writes": "b"}}
    running = plan(folder, tasks, "gate: {memory: 0.001}\n")
    gate.reached()
    reasons = asked(folder, "b")
    assert reasons["closed_gate"]["memory"] == 0.001
    assert reasons["closed_gate"]["load"]["memory"] > 0.001
    gate.open()
    end(folder, running)


def test_a_machine_under_load(folder: Folder) -> None:
    gate = folder.gate("a")
    tasks = {"a": {"prompt": gate.prompt, "writes": "a"}, "b": {"prompt": "true", "writes": "b"}}
    running = plan(folder, tasks, "max_parallel: {least: 1, most: 4, memory: 0.001}\n")
    gate.reached()
    reasons = asked(folder, "b")
    assert (reasons["loaded_machine"]["slots"], reasons["loaded_machine"]["most"]) == (1, 4)
    gate.open()
    end(folder, running)


def test_a_pause_of_a_task_and_of_everything(folder: Folder) -> None:
    gate = folder.gate("a")
    tasks = {
        "a": {"prompt": gate.prompt, "writes": "a"},
        "b": {"prompt": "true", "writes": "b", "after": "a"},
    }
    running = plan(folder, tasks)
    gate.reached()
    folder.ask("pause", "b")
    folder.ask("pause")
    gate.open()
    folder.event("waiting", "b")
    reasons = folder.facts("why", "b")["reasons"]
    assert [(each["kind"], each["everything"]) for each in reasons] == [
        ("paused", False),
        ("paused", True),
    ]
    assert "paused" in asked(folder, "b")
    assert "interlock resume" in folder.told("status")
    folder.ask("resume", "b")
    folder.ask("resume")
    end(folder, running)


def test_a_run_that_drains(folder: Folder) -> None:
    gate = folder.gate("a")
    tasks = {"a": {"prompt": gate.prompt, "writes": "x"}, "b": {"prompt": "true", "writes": "x"}}
    running = plan(folder, tasks)
    gate.reached()
    running.signal(signal.SIGINT)
    folder.draining()
    reasons = asked(folder, "b")
    assert sorted(reasons) == ["draining", "held_claim"]
    assert folder.facts("status")["draining"] is True
    gate.open()
    assert running.ended().code == 130
    assert list(asked(folder, "b")) == ["no_coordinator"]


def test_a_backoff_and_an_unanswered_question(folder: Folder) -> None:
    tasks = {
        "fails": {"prompt": "exit 1", "writes": "a", "attempts": 2, "backoff": "1h"},
        "asks": {"prompt": "true", "writes": "b", "ask": "May I?"},
    }
    running = plan(folder, tasks)
    running.line_with("failed")
    reasons = asked(folder, "fails")
    assert list(reasons) == ["backoff"]
    assert reasons["backoff"]["attempts"] == 1
    assert folder.facts("why", "fails")["state"] == "retrying"
    folder.event("needs_you", "asks?")
    reasons = asked(folder, "asks?")
    assert list(reasons) == ["unanswered_question"]
    assert reasons["unanswered_question"]["question"] == "May I?"
    assert list(asked(folder, "asks")) == ["unfinished_dependency"]
    folder.ask("answer", "asks?", "yes")
    folder.ask("cancel", "fails")
    assert running.ended().code == 1


def test_an_attempt_that_was_told_to_stop_and_is_not_gone(folder: Folder) -> None:
    gate, again = folder.gate("a"), folder.gate("again")
    stubborn = f"trap '' TERM; if mkdir once; then {gate.prompt}; else {again.prompt}; fi"
    tasks = {
        "a": {"prompt": stubborn, "writes": "x", "attempts": 2, "timeout": "2s", "backoff": "1ms"},
        "b": {"prompt": "true", "writes": "x"},
    }
    running = plan(folder, tasks)
    gate.reached()
    folder.event("stop_requested", "a")
    folder.event("retrying", "a")
    assert "previous_attempt_alive" in asked(folder, "a")
    held = asked(folder, "b")["held_claim"]
    assert (held["holder"], held["stopping"]) == ("a", True)
    folder.ask("cancel", "a")
    gate.open()
    assert running.ended().code == 1


def test_a_claim_that_is_kept_for_somebody_who_was_overtaken(folder: Folder) -> None:
    first, late = folder.gate("first"), folder.gate("late")
    tasks: dict[str, Any] = {
        "holder": {"prompt": late.prompt, "writes": "p", "priority": 1},
        "old": {"prompt": "true", "writes": ["p", "q"]},
        "first": {"prompt": first.prompt, "writes": "r", "priority": 1},
    }
    for number in range(6):
        tasks[f"young{number}"] = {"prompt": "true", "writes": "q", "after": "first"}
    running = plan(folder, tasks, "max_parallel: 2\n")
    late.reached()
    first.reached()
    first.open()
    for number in range(4):  # so many may pass: twice the slots
        folder.event("settled", f"young{number}")
    reasons = asked(folder, "young5")
    assert reasons["reserved_claim"]["older"] == "old"
    assert reasons["reserved_claim"]["overtaken"] == 4
    late.open()
    end(folder, running)


def test_a_task_that_waits_for_another_one_in_mid_flight(folder: Folder) -> None:
    gate = folder.gate("child")
    folder.write(
        "parents.py",
        f"""\
        from interlock import command

        async def parent(ctx):
            child = command(["sh", "-c", {gate.prompt!r}], name="child")
            return str((await ctx.submit(child, id="child", writes="child")).status)
        """,
    )
    folder.write("interlock.yaml", "agents: {parent: {python: 'parents:parent'}}")
    folder.write("plan.yaml", "tasks: {parent: {prompt: go}}")
    running = folder.start("run", "plan.yaml")
    gate.reached()
    reasons = asked(folder, "parent")
    assert list(reasons) == ["unfinished_task"]
    assert reasons["unfinished_task"]["state"] == "running"
    gate.open()
    end(folder, running)


def test_a_journal_that_cannot_be_written(folder: Folder) -> None:
    gate = folder.gate("a")
    tasks = {"a": {"prompt": gate.prompt, "writes": "x"}, "b": {"prompt": "true", "writes": "x"}}
    running = plan(folder, tasks)
    gate.reached()
    folder.event("launched", "a")
    size = (folder.path / ".interlock/journal.db-wal").stat().st_size
    before = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (size, -1))
    gate.open()
    log = folder.path / ".interlock/interlock.log"
    while "journal_stuck" not in log.read_text():
        assert running.process.poll() is None
    reasons = asked(folder, "b")
    assert "stuck_journal" in reasons
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, before)
    end(folder, running)


def test_a_run_that_nobody_carries_out(folder: Folder) -> None:
    gate = folder.gate("a")
    tasks = {
        "a": {"prompt": gate.prompt, "writes": "x"},
        "b": {"prompt": "true", "writes": "y", "after": "a"},
    }
    running = plan(folder, tasks)
    gate.reached()
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    reasons = asked(folder, "b")
    assert list(reasons) == ["unfinished_dependency", "no_coordinator"]
    assert reasons["no_coordinator"]["run_id"] == folder.facts("status")["run_id"]
    assert list(asked(folder, "a")) == ["no_coordinator"]
    assert folder.facts("why", "a")["suggestions"] == ["interlock run --resume"]
    assert "has no task 'nobody'" in folder.refused("why", "nobody")


def test_where_nothing_has_run_nothing_can_be_asked(folder: Folder) -> None:
    for words in (["status"], ["why", "a"], ["logs", "a"], ["events"]):
        assert "nothing has run in" in folder.refused(*words)


def test_no_kind_of_waiting_is_forgotten_here() -> None:
    told = Path(__file__).read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f'"{kind}"' not in told] == []
