"""The tutorial is followed literally: a new user with two terminals, in a fresh folder."""

from __future__ import annotations

import re
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.acceptance import documents
from tests.acceptance.session import Step, Terminal, steps

STEPS = list(steps(documents.read("docs/tutorial.md")))
PROGRAMS = ("sh", "sleep", "mkdir", "uname", "git")
"""All that the reader has besides Python: no coding agent, whatever this machine has."""


def _environment(folder: Path) -> dict[str, str]:
    programs = folder / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        if found is not None:
            (programs / name).symlink_to(found)
    (programs / "python3").symlink_to(sys.executable)
    return {
        "PATH": str(programs),
        "HOME": str(folder),
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        # What Interlock needs is here already: no index is asked, and nothing is downloaded.
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # so it is spelled: the variable says what the option sets
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _stable(shown: str) -> str:
    """Without names of runs, times, load and breaks of lines, which are different every time."""
    shown = documents.timeless(shown)
    shown = re.sub(r"\b\d+:\d\d\b", "0:00", shown)
    shown = re.sub(r"CPU +(\d+ %|unknown)", "CPU 0 %", shown)
    shown = re.sub(r"memory +[\d.]+ of [\d.]+ GB", "memory 0 of 0 GB", shown)
    shown = re.sub(r" +expected to clear in .*", "", shown)  # unless that was some time ago
    shown = re.sub(r"  ·  .* as fast as one after another", "", shown)
    return " ".join(shown.split())


@pytest.mark.timeout(300)
def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "interlock").symlink_to(documents.ROOT)
    environ = _environment(tmp_path)
    guide = tmp_path / "guide"
    with Terminal(tmp_path, environ) as first, Terminal(tmp_path, environ) as second:
        for number, step in enumerate(STEPS):
            if step.kind == "yaml":
                name, _, text = step.text.removeprefix("# ").partition("\n")
                (guide / name).write_text(text)
            elif step.kind == "keys":
                _press(first, step)
            elif step.is_second:
                second.type(f"cd {guide}")
                second.left()
                for task in re.findall(r"^interlock logs (\w+)$", step.text, re.M):
                    _wait_for_its_first_line(second, task)
                _type(second, step.text, step)
            elif number + 1 < len(STEPS) and STEPS[number + 1].is_second:
                first.type(step.text)
                first.see("2 running")
            else:
                _type(first, step.text, step)


def _type(terminal: Terminal, text: str, step: Step) -> None:
    terminal.type(text)
    shown, code = terminal.left()
    assert code == 0, f"{step.text}\n{shown}"
    assert _stable(shown) == _stable(step.shown or ""), shown


def _wait_for_its_first_line(terminal: Terminal, task: str) -> None:
    terminal.type(f"interlock logs -f {task}")
    terminal.see("\n")
    terminal.press_ctrl_c()
    terminal.left()


def _press(terminal: Terminal, step: Step) -> None:
    terminal.press_ctrl_c()
    for _ in range(step.text.count("^C") - 1):
        terminal.see("running tasks may finish")
        terminal.press_ctrl_c()
    shown, code = terminal.left()
    assert code == 130
    assert _stable(shown).endswith(_stable(step.shown or "")), shown


def test_it_shows_what_a_new_user_needs() -> None:
    typed = "".join(step.text for step in STEPS)
    for command in ("init", 'run "', "run plan.yaml", "status", "why", "logs", "run --resume"):
        assert f"interlock {command}" in typed
    assert [step.text for step in STEPS if step.kind == "keys"] == ["^C\n^C\n"]
    plan = next(step.text for step in STEPS if step.text.startswith("# plan.yaml"))
    assert len(plan.splitlines()) - 1 == 10
