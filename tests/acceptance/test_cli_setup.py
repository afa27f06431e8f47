"""`init`, `agents`, `doctor`, `completion`, `version` and `multi-run`."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from interlock.version import __version__
from tests.acceptance.command_line import PROGRAM, Folder, empty, environment, folder

__all__ = ["empty", "folder"]

COMMANDS = [
    "agents", "answer", "cancel", "check", "completion", "delegate", "doctor", "events", "graph",
    "init", "logs", "multi-run", "pause", "prioritize", "resume", "retry", "run", "status",
    "version", "why",
]  # fmt: skip


def only(path: Path, *names: str) -> str:
    """A PATH on which there are these programs and what a shell needs, but no coding agent."""
    folder = path / "bin"
    folder.mkdir()
    for name in ("sh", "git", *names):
        found = next(p for p in ("/bin", "/usr/bin") if os.path.exists(f"{p}/{name}"))
        (folder / name).symlink_to(f"{found}/{name}")
    return str(folder)


class TestInit:
    """An empty folder, two commands, a run."""

    def test_the_first_plan_runs_as_it_is_written(
        self, empty: Folder, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        path = only(tmp_path_factory.mktemp("path"))
        said = empty.say("init", PATH=path)
        assert "Found no coding agent; `hello` is a placeholder for one." in said
        assert "Next: interlock check plan.yaml; interlock run plan.yaml" in said
        assert "plan.yaml is valid: 3 tasks" in empty.told("check", "plan.yaml")
        facts = empty.json("run", "plan.yaml")
        assert facts["progress"]["succeeded"] == 3
        assert "I was asked to: Write an outline" in facts["tasks"][2]["output"]
        for name in ("interlock.yaml", "plan.yaml"):
            assert "#" in (empty.path / name).read_text()

    def test_it_writes_over_nothing_unless_it_is_forced(self, empty: Folder) -> None:
        empty.write("plan.yaml", "mine")
        said = empty.refused("init")
        assert "plan.yaml already exists; use --force to overwrite" in said
        assert (empty.path / "plan.yaml").read_text() == "mine"
        assert not (empty.path / "interlock.yaml").exists()
        empty.run("init", "--force")
        assert (empty.path / "plan.yaml").read_text() != "mine"

    def test_it_finds_coding_agents_and_the_env_file(
        self, empty: Folder, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        path = tmp_path_factory.mktemp("path")
        found = only(path)
        (path / "bin/codex").write_text("#!/bin/sh\necho codex was given: $#\n")
        (path / "bin/codex").chmod(0o755)
        empty.write(".env", "OPENAI_API_KEY=x\n")
        assert "Found codex." in empty.say("init", PATH=found)
        assert "or .env" in (empty.path / "interlock.yaml").read_text()
        (agent,) = empty.json("agents", PATH=found)
        assert (agent["name"], agent["installed"]) == ("codex", True)
        facts = empty.json("run", "plan.yaml", PATH=found)
        assert facts["tasks"][0]["output"].startswith("codex was given: ")


def test_agents_are_listed_with_what_they_own_and_whether_they_are_there(folder: Folder) -> None:
    folder.write(
        "interlock.yaml",
        """\
        agents:
          coder: {command: [no-such-program, "{prompt}"], owns: src/, instances: 2, timeout: 5m}
          helper: {python: "tools:help", description: helps}
        """,
    )
    said = folder.told("agents")
    assert "no-such-program '{prompt}'" in said
    assert "not installed" in said
    coder, helper = folder.facts("agents")
    assert coder == {
        "name": "coder",
        "kind": "command",
        "runs": "no-such-program '{prompt}'",
        "installed": False,
        "owns": ["src/"],
        "instances": 2,
        "uses": ["agent:coder"],
        "timeout": 300.0,
        "attempts": 1,
        "workspace": "shared",
        "guard": "none",
        "description": "",
    }
    assert (helper["kind"], helper["runs"]) == ("python", "tools:help")


def test_agents_need_a_project(empty: Folder) -> None:
    assert "no agent is configured here" in empty.refused("agents")


def test_doctor_finds_what_would_stand_in_the_way(folder: Folder) -> None:
    found = {each["what"]: each for each in folder.json("doctor")}
    assert list(found["Python"]) == ["what", "fine", "said", "help"]
    assert all(each["fine"] for each in found.values())
    assert found["journal"]["said"] == "none yet"
    assert found["project file"]["said"] == "interlock.yaml, 1 agent"
    folder.write(
        "interlock.yaml",
        """\
        agents:
          missing: {command: no-such-program, secrets: MY_TOKEN}
          broken: {python: "nowhere:main"}
        """,
    )
    said = folder.say("doctor", code=1)
    assert "✗ agent missing: no-such-program not found" in said
    assert "Install no-such-program, or correct the command of missing." in said
    assert "✗ agent broken: nowhere:main: nowhere cannot be imported" in said
    assert "✗ secret MY_TOKEN: is not set" in said
    found = {each["what"]: each for each in folder.json("doctor", code=1, MY_TOKEN="x")}
    assert found["secret MY_TOKEN"]["fine"] is True


def test_doctor_goes_on_where_something_is_wrong(empty: Folder) -> None:
    assert "`interlock init` writes one." in empty.say("doctor", code=1)
    empty.write("interlock.yaml", "agnets: {}")
    assert "✗ project file: " in empty.say("doctor", code=1)
    empty.write(".interlock/journal.db", "no journal")
    assert "✗ journal: " in empty.say("doctor", code=1)


def completed(folder: Folder, line: str, tmp_path: Path) -> list[str]:
    """What bash offers when somebody presses the tab key at the end of this line."""
    program = tmp_path / "bin" / "interlock"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
        program.chmod(0o755)
    words = line.split(" ")
    script = f"""
        eval "$(interlock completion bash)"
        COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1} COMP_LINE='{line}'
        COMP_POINT={len(line)}
        complete -p interlock | grep -q _interlock_completion || exit 1
        _interlock_completion interlock "${{COMP_WORDS[COMP_CWORD]}}" x
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{program.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder.path,
        env=environment(PATH=path),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stderr == ""
    return sorted(done.stdout.split())


def test_bash_completes_commands_and_options(
    folder: Folder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    assert completed(folder, "interlock re", scratch) == ["resume", "retry"]
    assert completed(folder, "interlock run --dead", scratch) == ["--deadline"]
    assert completed(folder, "interlock graph --as m", scratch) == ["mermaid"]


def test_other_shells_get_a_script_as_well(empty: Folder) -> None:
    assert "compdef" in empty.say("completion", "zsh")
    assert "complete " in empty.say("completion", "fish")
    assert "bash" in empty.refused("completion", "csh")


def test_the_version_is_told_in_three_ways(empty: Folder) -> None:
    assert empty.say("version") == empty.say("--version") == f"interlock {__version__}\n"
    assert empty.json("version") == {"version": __version__, "python": platform.python_version()}


def test_help_names_every_command_and_exit_code(empty: Folder) -> None:
    said = empty.say("--help")
    for name in COMMANDS:
        assert f"  {name} " in said
    assert "130 interrupted" in said
    assert "--max-parallel" in empty.say("run", "-h")


class TestMultiRun:
    """The blocking agents of a project, side by side."""

    @pytest.fixture(autouse=True)
    def _agents(self, folder: Folder) -> None:
        folder.write(
            "crew.py",
            """\
            class Writer:
                def run_step(self):
                    return {"pages": 3}

            class Broken:
                def run_step(self):
                    raise ValueError("no ink")

            def function(ctx):
                return "never"
            """,
        )
        folder.write(
            "interlock.yaml",
            """\
            agents:
              writer: {python: "crew:Writer", owns: docs/}
              broken: {python: "crew:Broken", owns: src/}
              function: {python: "crew:function"}
              sh: {command: "true"}
            """,
        )

    def test_what_succeeds_is_told_by_name(self, folder: Folder) -> None:
        assert folder.say("multi-run", "writer") == 'writer: {"pages": 3}\n'
        assert folder.json("multi-run", "writer") == [
            {"agent": "writer", "status": "succeeded", "result": '{"pages": 3}', "error": None}
        ]

    def test_a_failure_ends_with_1_and_leaves_the_others_alone_if_isolated(
        self, folder: Folder
    ) -> None:
        writer, broken = folder.json("multi-run", "--isolate", code=1)
        assert writer["status"] == "succeeded"
        assert broken == {
            "agent": "broken",
            "status": "failed",
            "result": None,
            "error": "ValueError: no ink",
        }
        done = folder.run("multi-run", code=1)
        assert "ValueError: no ink" in done.err
        assert "the log is " in done.err
        assert "Traceback" not in done.err
        assert "Traceback" in folder.run("multi-run", "--debug", code=1).err

    def test_who_has_no_run_step_is_refused(self, folder: Folder) -> None:
        assert "function has no blocking run_step()" in folder.refused("multi-run", "function")
        assert "there is no agent 'nobody'" in folder.refused("multi-run", "nobody")
        folder.write("interlock.yaml", "agents: {sh: {command: 'true'}}")
        assert "name one with `python: module:Class`" in folder.refused("multi-run")
