"""`interlock run` and `delegate`: what they do, what they say, what they end with."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.command_line import (
    PATIENCE,
    PROGRAM,
    SHELL,
    Folder,
    empty,
    environment,
    folder,
)

__all__ = ["empty", "folder"]

CHAIN = """\
tasks:
  schema: {prompt: echo the schema, writes: schema}
  api: {prompt: "echo built by {{schema.output}}", writes: api, after: schema}
  docs: {prompt: echo written, writes: docs}
"""
RUN = [
    "run_id", "plan", "at", "started_at", "ended_at", "duration", "active", "paused", "draining",
    "slots", "last_event", "progress", "one_by_one", "saved", "cost", "tokens", "tasks",
]  # fmt: skip
TASK = [
    "id", "state", "since", "agent", "prompt", "claims", "after", "priority", "attempt", "attempts",
    "submitted_at", "started_at", "ended_at", "duration", "estimate", "fraction", "message",
    "tokens", "cost", "error", "error_type", "cause", "ended_by", "retry_of", "question",
    "stopping", "output", "log",
]  # fmt: skip


def states(facts: dict[str, object]) -> dict[str, str]:
    tasks = facts["tasks"]
    assert isinstance(tasks, list)
    return {task["id"]: task["state"] for task in tasks}


def test_a_plan_that_succeeds_ends_with_0_and_says_how_everything_came_out(folder: Folder) -> None:
    folder.write("plan.yaml", CHAIN)
    done = folder.run("run", "plan.yaml")
    assert done.err == ""
    assert "\x1b" not in done.out
    assert "plan.yaml  all 3 succeeded" in done.out
    lines = done.out.splitlines()
    started = [line.split()[1] for line in lines if " started with sh" in line]
    assert sorted(started) == ["api", "docs", "schema"]
    assert started.index("schema") < started.index("api")
    assert any("✓ api" in line and "built by the schema" in line for line in lines)


def test_the_facts_of_a_run_have_names_that_stay(folder: Folder) -> None:
    folder.write("plan.yaml", CHAIN)
    facts = folder.json("run", "plan.yaml")
    assert list(facts) == RUN
    assert [list(task) for task in facts["tasks"]] == [TASK] * 3
    assert (facts["plan"], facts["slots"], facts["active"]) == ("plan.yaml", 4, False)
    assert (facts["draining"], facts["paused"]) == (False, False)
    assert facts["progress"]["succeeded"] == facts["progress"]["total"] == 3
    api = facts["tasks"][1]
    assert (api["id"], api["state"], api["agent"]) == ("api", "succeeded", "sh")
    assert (api["output"], api["claims"]) == ("built by the schema", ["writes api"])
    assert (folder.path / api["log"]).read_text() == "built by the schema\n"
    later = folder.facts("status")  # the journal says the same as the run itself
    assert [*later] == RUN
    assert later["tasks"] == facts["tasks"]


def test_a_task_that_fails_ends_with_1_and_what_needs_it_is_skipped(folder: Folder) -> None:
    plan = CHAIN.replace("echo the schema", "echo no idea >&2; exit 3")
    folder.write("plan.yaml", plan)
    done = folder.run("run", "plan.yaml", code=1)
    assert "1 of 3 succeeded" in done.out
    assert "no idea" in done.out
    assert "schema did not succeed" in done.out
    assert "interlock logs schema" in done.out
    assert "interlock run --resume" in done.out
    facts = folder.json("run", "plan.yaml", code=1)
    assert states(facts) == {"schema": "failed", "api": "skipped", "docs": "succeeded"}
    schema, api, _ = facts["tasks"]
    assert "no idea" in schema["error"]
    assert api["cause"] == "schema"


def test_texts_are_tasks_for_the_only_agent_or_the_one_that_is_named(folder: Folder) -> None:
    facts = folder.json("run", "echo one", "echo two")
    assert [task["output"] for task in facts["tasks"]] == ["one", "two"]
    assert facts["plan"] == "2 tasks"
    folder.write(
        "interlock.yaml",
        """\
        agents:
          sh: {command: [sh, -c, "{prompt}"]}
          echo: {command: [echo, said, "{prompt}"], owns: said/}
        """,
    )
    said = folder.refused("run", "echo one")
    assert "which agent? Use -a with one of: sh, echo" in said
    (task,) = folder.json("run", "-a", "echo", "one")["tasks"]
    assert (task["output"], task["claims"]) == ("said one", ["writes said/"])
    assert "no agent 'ehco'" in folder.refused("run", "-a", "ehco", "one")


def test_nothing_to_run_is_an_error_of_use(empty: Folder) -> None:
    assert "nothing to run; give a plan file" in empty.refused("run")
    said = empty.refused("run", "fix the login test")
    assert "no agent is configured here; `interlock init`" in said
    assert "no such file" in empty.refused("run", "plans/missing.yaml").lower()
    assert not (empty.path / ".interlock").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--max-parallel", "0", "plan.yaml"],
        ["run", "--max-paralel", "2", "plan.yaml"],
        ["run", "--deadline", "soon", "plan.yaml"],
        ["run", "--set", "novalue", "plan.yaml"],
        ["run", "--only", "nobody", "plan.yaml"],
        ["run", "-a", "sh", "plan.yaml"],
        ["ruin"],
    ],
    ids=" ".join,
)
def test_a_wrong_word_ends_with_2_and_starts_nothing(words: list[str], folder: Folder) -> None:
    folder.plan(a="touch started")
    said = folder.refused(*words)
    assert len(said) > 20
    assert not (folder.path / ".interlock").exists()
    assert not (folder.path / "started").exists()


def test_a_dry_run_says_what_would_happen_and_starts_nothing(folder: Folder) -> None:
    folder.write(
        "plan.yaml",
        """\
        tasks:
          one: {prompt: touch one, writes: src/**}
          two: {prompt: touch two, writes: src/two.py}
          three: {prompt: touch three, writes: three, after: one}
        """,
    )
    said = folder.say("run", "plan.yaml", "--dry-run")
    assert (
        "one and two take turns: writes src/** and writes src/two.py both match src/two.py" in said
    )
    assert "3 tasks. Nothing was started." in said
    facts = folder.json("run", "plan.yaml", "--dry-run")
    assert list(facts) == ["plan", "tasks", "conflicts"]
    assert [task["after"] for task in facts["tasks"]] == [[], [], ["one"]]
    assert facts["conflicts"] == [
        {
            "one": "one",
            "other": "two",
            "about": "writes src/** and writes src/two.py both match src/two.py",
        }
    ]
    assert not (folder.path / ".interlock").exists()
    assert not (folder.path / "one").exists()


def test_only_runs_a_task_and_what_it_comes_after(folder: Folder) -> None:
    folder.write("plan.yaml", CHAIN)
    facts = folder.json("run", "plan.yaml", "--only", "api")
    assert states(facts) == {"schema": "succeeded", "api": "succeeded"}
    facts = folder.json("run", "plan.yaml", "--only", "schema", "--only", "docs")
    assert states(facts) == {"schema": "succeeded", "docs": "succeeded"}


def test_set_gives_variables_their_values(folder: Folder) -> None:
    folder.write(
        "plan.yaml",
        """\
        variables: {who: world, pages: [intro]}
        tasks:
          greet: {prompt: "echo hello {{who}}", writes: []}
          page-{{item}}: {for_each: pages, prompt: "echo {{item}}", writes: "{{item}}.md"}
        """,
    )
    facts = folder.json("run", "plan.yaml", "--set", "who=you=me", "--set", "pages=a,b")
    assert [task["output"] for task in facts["tasks"]] == ["hello you=me", "a", "b"]
    assert "whom" in folder.refused("run", "plan.yaml", "--set", "whom=you")


def test_fail_fast_cancels_the_rest(folder: Folder) -> None:
    gate = folder.gate("rest")
    folder.write(
        "plan.yaml",
        f"""\
        tasks:
          rest: {{prompt: "{gate.prompt}", writes: rest}}
          fails: {{prompt: "read it < fails.go; exit 1", writes: fails}}
        """,
    )
    fails = folder.gate("fails")
    running = folder.start("run", "plan.yaml", "--fail-fast", "--json")
    gate.reached()
    fails.open()
    done = running.ended()
    assert done.code == 1
    facts = json.loads(done.out)
    assert states(facts) == {"rest": "cancelled", "fails": "failed"}


def test_max_parallel_is_how_many_run_at_once(folder: Folder) -> None:
    script = "mkdir alone && rmdir alone"
    folder.plan(a=script, b=script, c=script)
    facts = folder.json("run", "plan.yaml", "--max-parallel", "1")
    assert facts["slots"] == 1
    assert facts["progress"]["succeeded"] == 3


@pytest.mark.parametrize("where", ["option", "plan"])
def test_a_deadline_that_is_reached_ends_with_3(where: str, folder: Folder) -> None:
    gate = folder.gate("slow")
    plan = {"tasks": {"slow": {"prompt": gate.prompt, "writes": "x"}, "next": {"prompt": "true"}}}
    if where == "plan":
        folder.write("plan.yaml", json.dumps({"deadline": "0.5s", **plan}))
        facts = folder.json("run", "plan.yaml", code=3)
    else:
        folder.write("plan.yaml", json.dumps(plan))
        facts = folder.json("run", "plan.yaml", "--deadline", "0.5s", code=3)
    assert states(facts) == {"slow": "timed_out", "next": "timed_out"}


def test_a_task_that_times_out_by_itself_is_a_failure(folder: Folder) -> None:
    gate = folder.gate("slow")
    plan = {"tasks": {"slow": {"prompt": gate.prompt, "timeout": 0.3}}}
    folder.write("plan.yaml", json.dumps(plan))
    facts = folder.json("run", "plan.yaml", "--deadline", "10m", code=1)
    assert states(facts) == {"slow": "timed_out"}


def test_headless_tells_the_same_in_lines(folder: Folder) -> None:
    folder.write("plan.yaml", CHAIN)
    done = folder.run("run", "plan.yaml", "--headless", "--max-parallel", "1")
    assert "  schema                    started with sh: writes schema\n" in done.out
    assert "all 3 succeeded" in done.out


def test_debug_shows_where_an_error_comes_from(folder: Folder) -> None:
    folder.write("plan.yaml", "tasks: {a: {promt: x}}")
    assert "Traceback" not in folder.run("run", "plan.yaml", code=2).err
    assert "Traceback" in folder.run("run", "plan.yaml", "--debug", code=2).err


def test_a_python_agent_runs_in_a_plan(folder: Folder) -> None:
    folder.write("crew.py", "def shout(ctx, times=1):\n    return ctx.prompt.upper() * times\n")
    folder.write("interlock.yaml", "agents: {shout: {python: 'crew:shout'}}")
    folder.write("plan.yaml", "tasks: {a: {prompt: hey, with: {times: 2}}}")
    (task,) = folder.json("run", "plan.yaml")["tasks"]
    assert (task["output"], task["agent"]) == ("HEYHEY", "shout")


def test_a_plan_is_found_from_a_folder_below(folder: Folder) -> None:
    folder.write("plan.yaml", CHAIN)
    below = Folder(folder.path / "below")
    below.path.mkdir()
    assert below.json("run", "../plan.yaml")["progress"]["succeeded"] == 3
    assert below.facts("status")["progress"]["succeeded"] == 3
    assert folder.facts("status")["progress"]["succeeded"] == 3
    assert not (below.path / ".interlock").exists()


def test_a_second_run_in_the_same_project_is_told_of_the_first(folder: Folder) -> None:
    gate = folder.gate("first")
    folder.plan(first=gate.prompt)
    first = folder.start("run", "plan.yaml")
    gate.reached()
    below = Folder(folder.path / "below")
    below.path.mkdir()
    for each in (folder, below):
        said = each.refused("run", "echo second")
        assert f"a run is already in progress here, in process {first.process.pid}" in said
    assert folder.state("first") == "running"
    gate.open()
    assert first.ended().code == 0
    assert folder.run("run", "echo second").code == 0


@pytest.mark.parametrize(("end", "how"), [(0, []), (1, []), (1, ["--json"])], ids=str)
def test_who_stops_reading_does_not_change_how_the_run_ends(
    end: int, how: list[str], folder: Folder
) -> None:
    gate = folder.gate("late")
    folder.plan(late=f"{gate.prompt}; exit {end}")
    running = folder.start("run", "plan.yaml", *how)
    gate.reached()
    assert running.process.stdout is not None
    running.process.stdout.close()
    gate.open()
    assert running.process.wait() == end
    assert running.process.stderr is not None
    assert running.process.stderr.read() == ""


def test_what_interlock_keeps_is_for_its_owner_and_out_of_gits_sight(folder: Folder) -> None:
    folder.run("run", "echo hello")
    kept = folder.path / ".interlock"
    assert kept.stat().st_mode & 0o777 == 0o700
    assert "*" in (kept / ".gitignore").read_text().splitlines()
    (log,) = kept.glob("logs/*/*/1.log")
    assert log.stat().st_mode & 0o777 == 0o600
    assert not (kept / "control.sock").exists()


class TestDelegate:
    """`delegate "agent: text"`."""

    TEAM = """\
    agents:
      sh: {command: [sh, -c, "{prompt}"], owns: src/}
      echo: {command: [echo, "{prompt}"], owns: docs/}
    defaults: {agent: sh}
    """

    @pytest.fixture(autouse=True)
    def _team(self, folder: Folder) -> None:
        folder.write("interlock.yaml", self.TEAM)

    def test_the_part_before_the_colon_is_an_agent_only_if_it_is_one(self, folder: Folder) -> None:
        facts = folder.json("delegate", "echo: a: b", ": note: no agent; echo done", "echo  : c")
        told = [(task["agent"], task["output"]) for task in facts["tasks"]]
        assert told == [("echo", "a: b"), ("sh", "done"), ("echo", "c")]
        facts = folder.json("delegate", "-a", "echo", "ehco: text", "sh: echo mine")
        told = [(task["agent"], task["output"]) for task in facts["tasks"]]
        assert told == [("echo", "ehco: text"), ("sh", "mine")]

    def test_it_says_first_who_takes_turns_and_last_what_it_took(self, folder: Folder) -> None:
        said = folder.say("delegate", "sh: echo one", "sh: echo two", "echo: three")
        lines = said.splitlines()
        assert "take turns: writes src/ and writes src/ both match src" in lines[0]
        assert lines[-1].startswith("Took ")
        assert "; one after another it would have taken " in lines[-1]
        said = folder.say("delegate", "sh: echo one", "echo: three")
        assert said.startswith("No two of these tasks conflict.\n")

    def test_it_ends_as_a_run_does(self, folder: Folder) -> None:
        folder.run("delegate", "sh: exit 4", "echo: fine", code=1)
        gate = folder.gate("slow")
        slow = f"sh: {gate.prompt}"
        folder.run("delegate", slow, "--deadline", "0.3s", code=3)
        facts = folder.json("delegate", "sh: exit 1", "sh: echo never", "--fail-fast", code=1)
        assert sorted(states(facts).values()) == ["cancelled", "failed"]


def test_every_path_that_is_told_is_relative_to_the_project(folder: Folder) -> None:
    facts = folder.json("run", "exit 1", code=1)
    (task,) = facts["tasks"]
    assert not Path(task["log"]).is_absolute()
    assert str(folder.path) not in json.dumps(facts)


def test_a_run_whose_folder_is_cleaned_by_an_agent_ends_and_meanwhile_none_begins(
    folder: Folder,
) -> None:
    gate, after = folder.gate("gate"), folder.gate("after")
    folder.plan(clean=f"trap '' TERM; {gate.prompt}; rm -rf .interlock; {after.prompt}")
    running = folder.start("run", "plan.yaml")
    gate.reached()
    gate.open()
    after.reached()
    assert "a run is already in progress here" in folder.refused("run", "echo second")
    after.open()
    done = running.ended()
    assert done.code == 1
    assert ".interlock/journal.db was deleted or replaced" in done.err
    assert "`git clean -fdx` spares it with `-e .interlock`" in done.err
    assert "1 succeeded" in folder.say("run", "echo third")


def test_a_run_that_cannot_begin_leaves_none_behind(folder: Folder) -> None:
    folder.write(".interlock/control.sock/file", "")
    assert "the control socket" in folder.refused("run", "echo first")
    assert "nothing has run" in folder.refused("status")


def test_a_run_goes_on_while_nobody_reads_and_two_signals_end_it(folder: Folder) -> None:
    """What it prints fills a pipe, so that nothing more can be written before its end."""
    gate = folder.gate("gate")
    folder.write("interlock.yaml", SHELL + "grace: 1s\n")
    tasks = {f"{number:03}{'n' * 190}": {"prompt": "true", "writes": "a"} for number in range(9)}
    last = {"last": {"prompt": gate.prompt, "writes": "b", "after": list(tasks)}}
    folder.write("plan.yaml", json.dumps({"tasks": tasks | last}))
    there, here = os.pipe()
    fcntl.fcntl(here, fcntl.F_SETPIPE_SZ, 4096)
    os.write(here, b"." * 4096)
    running = folder.start("run", "plan.yaml", stdout=here)
    os.close(here)
    gate.reached()
    running.signal(signal.SIGINT)
    folder.draining()
    running.signal(signal.SIGINT)
    assert running.process.wait(PATIENCE) == 130
    os.close(there)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_it_runs_without_standard_streams(folder: Folder, closed: str) -> None:
    folder.plan(one="echo done; echo more >&2; cat")
    program = f"{shlex.join(PROGRAM)} run plan.yaml {closed}"
    done = subprocess.run(
        ["sh", "-c", program],
        cwd=folder.path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert folder.state("one") == "succeeded"


def test_names_that_the_terminal_cannot_spell_end_nothing(folder: Folder) -> None:
    folder.write("plan.yaml", "tasks: {日本: {prompt: echo ünï 日本, writes: a}}\n")
    assert folder.run("run", "plan.yaml", PYTHONIOENCODING="ascii").err == ""
    assert " ?? " in folder.say("events", PYTHONIOENCODING="latin-1")
    assert folder.say("logs", "日本", PYTHONIOENCODING="ascii") == "?n? ??\n"


def test_a_folder_may_have_a_name_that_is_no_text(empty: Folder) -> None:
    odd = Folder(Path(os.fsdecode(os.fsencode(empty.path) + b"/\xff")))
    odd.write("interlock.yaml", SHELL)
    assert "1 succeeded" in odd.say("run", "echo done")
    assert "1 succeeded" in odd.say("status")
    odd.close()
