"""docs/commands.md is what the program says of itself, and the program does what it says."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest

from interlock.service.exit_codes import ExitCode
from interlock.views.cli.app import COMMANDS, make_app, run_app
from tests.acceptance import documents
from tools.commands_reference import FILE, RENEW, page
from tools.reference_facts import FILES

TEXT = documents.read(str(FILE))
VIEWS = documents.ROOT / "src" / "interlock" / "views"
NAMES = [name for names in COMMANDS.values() for name in names]


def _section(title: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", TEXT, re.M | re.S)
    assert found is not None, title
    return found[1]


def _rows(text: str) -> list[str]:
    """The names in the first column of its tables."""
    cells = re.findall(r"^\| (.+?) \|", text, re.M)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_page_is_what_the_generator_writes() -> None:
    assert page() == TEXT, f"docs/commands.md is out of date; to renew it: {RENEW}"


def test_every_command_of_the_program_has_a_section() -> None:
    app = make_app()
    found = [
        each.name or (each.callback and each.callback.__name__) for each in app.registered_commands
    ]
    assert found == NAMES
    assert all(_section(name) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_section_has_every_option_that_help_shows(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app([name, "--help"]) == 0
    shown = capsys.readouterr().out.partition("Options:")[2]
    spelled = " ".join(re.findall(r"^  (-.+?)(?:  |$)", shown, re.M))
    options = set(re.findall(r"--?[a-z][a-z-]*", spelled)) - {"-h", "--help"}
    told = set(re.findall(r"--?[a-z][a-z-]*", " ".join(_rows(_section(name)))))
    assert told == {each for each in options if not each.startswith("--no-")}


def test_every_exit_code_is_explained() -> None:
    assert re.findall(r"^\| `(\d+)` \|", _section("Exit codes"), re.M) == [
        str(int(e)) for e in ExitCode
    ]


def test_every_variable_of_ours_is_explained() -> None:
    source = "".join(each.read_text() for each in VIEWS.parent.rglob("*.py"))
    ours = set(re.findall(r"\bINTERLOCK_[A-Z_]+\b", source))
    assert ours
    assert ours == set(re.findall(r"`(INTERLOCK_\w+)`", _section("Variables")))


def test_names_in_json_of_other_commands_are_those_of_the_code() -> None:
    keys = {
        key.value
        for file in VIEWS.rglob("*.py")
        for each in ast.walk(ast.parse(file.read_text()))
        if isinstance(each, ast.Dict)
        for key in each.keys
        if isinstance(key, ast.Constant)
    } | {"one", "other", "about"}
    told = re.findall(r"^\| .+? \| (.+) \|$", _section("Other commands with --json"), re.M)[2:]
    names = {name for cell in told for name in re.findall(r"`(\w+)`", cell)} - {"check"}
    assert len(names) > 20
    assert names - keys == set()


# -- a real run -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which an agent has looked at what was in `.interlock/` while it ran."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "interlock.yaml").write_text("agents: {looker: {command: [find, .interlock]}}\n")
    (folder / "plan.yaml").write_text("tasks: {look: {agent: looker}}\n")
    _interlock(folder, "run", "plan.yaml")
    return folder


def _interlock(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "interlock", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(documents.ROOT / "src")},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    return done.stdout


def test_the_table_of_files_is_what_is_there_during_a_run(project: Path) -> None:
    seen = [
        each.removeprefix(".interlock/") for each in _interlock(project, "logs", "look").split()
    ]
    patterns = {
        name: re.sub(r"[A-Z]{3,}", "*", name) + ("*" if name.endswith(("/", "db", "log")) else "")
        for name in FILES
    }
    folders = {".interlock", "logs", "tmp", "agents"}
    for each in seen:
        known = any(fnmatch(each, pattern) for pattern in patterns.values())
        assert known or each in folders or fnmatch(each, "logs/*"), each
    for name, pattern in patterns.items():
        there = any(fnmatch(each, pattern) for each in seen)
        assert there or name == "agents/", f"{name} was not there"


@pytest.mark.parametrize(
    ("command", "title", "chosen"),
    [
        (("status",), "status --json, run --json", lambda told: told),
        (("why", "look"), "why --json", lambda told: told),
        (("doctor",), "doctor --json", lambda told: told[0]),
    ],
)
def test_the_names_in_json_are_those_the_command_prints(
    project: Path,
    command: tuple[str, ...],
    title: str,
    chosen: Callable[[object], dict[str, object]],
) -> None:
    told = chosen(json.loads(_interlock(project, *command, "--json")))
    table = re.search(r"\| \| \|\n\|---\|---\|\n(.*?)\n\n", _section(title), re.S)
    assert table is not None
    assert sorted(told) == sorted(_rows(table[1]))


def test_the_names_of_events_are_those_the_command_prints(project: Path) -> None:
    lines = _interlock(project, "events", "--json").splitlines()
    assert len(lines) > 5
    names = _rows(_section("events --json"))
    assert {tuple(json.loads(line)) for line in lines} == {tuple(names)}
