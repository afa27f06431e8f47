"""The command line as people use it: real processes, in a folder that belongs to the test."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from interlock.journal.follow import follow
from interlock.model.event import Event
from interlock.service.project_folder import ProjectFolder
from interlock.views.cli.app import run_app
from interlock.views.cli.last_run import facts_of, task_of

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "interlock")
PATIENCE = 30
"""Seconds after which a test says that it waits in vain. Nothing is measured with it."""
NOTHING: Mapping[str, str] = {}
SHELL = """\
max_parallel: 4
agents:
  sh: {command: [sh, -c, "{prompt}"]}
"""
"""A project whose agent does literally what the prompt says."""


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


class Gate:
    """Holds up a stand-in agent: it says that it has come, and waits until it may go on."""

    def __init__(self, folder: Path, name: str) -> None:
        self._up, self._go = folder / f"{name}.up", folder / f"{name}.go"
        os.mkfifo(self._up)
        os.mkfifo(self._go)
        # Both ends stay open here, so that nobody waits for the other to come.
        self._arrivals = os.open(self._up, os.O_RDWR | os.O_NONBLOCK)
        self._key = os.open(self._go, os.O_RDWR)
        self.prompt = f"echo > {name}.up; read it < {name}.go"
        """What a shell has to do to be held up."""

    def reached(self) -> None:
        """Wait until an agent has come."""
        assert select.select([self._arrivals], [], [], PATIENCE)[0], f"nobody came to {self._up}"
        os.read(self._arrivals, 1)

    def open(self) -> None:
        """Let one agent go on."""
        os.write(self._key, b"\n")

    def close(self) -> None:
        os.close(self._arrivals)
        os.close(self._key)


class Going:
    """A command that goes on beside the test."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def line(self) -> str:
        """The next line it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def line_with(self, text: str) -> str:
        """The next line that has this in it; what comes before is read over."""
        while line := self.line():
            if text in line:
                return line
        raise AssertionError(f"it ended without {text!r}: {self.ended()}")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self) -> Done:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return Done(self.process.returncode, out, err)


class Folder:
    """A project folder, and commands in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open = contextlib.ExitStack()

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def plan(self, **prompts: str) -> None:
        """A plan of independent tasks, each a line of shell that writes a file of its own."""
        tasks = {name: {"prompt": text, "writes": name} for name, text in prompts.items()}
        self.write("plan.yaml", json.dumps({"tasks": tasks}))

    def gate(self, name: str) -> Gate:
        gate = Gate(self.path, name)
        self._open.callback(gate.close)
        return gate

    def run(self, *words: str, code: int = 0, **environ: str) -> Done:
        """A command to its end, which has to be this one."""
        done = self.start(*words, environ=environ).ended()
        assert done.code == code, f"{words} ended with {done.code}:\n{done.out}\n{done.err}"
        return done

    def say(self, *words: str, code: int = 0, **environ: str) -> str:
        """What a command prints."""
        return self.run(*words, code=code, **environ).out

    def json(self, *words: str, code: int = 0, **environ: str) -> Any:
        """The facts that a command prints."""
        return json.loads(self.say(*words, "--json", code=code, **environ))

    def ask(self, *words: str, code: int = 0) -> Done:
        """A command that looks, steers or is refused, in this process: there are many of them.

        Whoever carries out the run is another process, as for anybody who types the command.
        """
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.path),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.dict(os.environ, environment(), clear=True),
        ):
            ended = run_app(words)
        done = Done(ended, out.getvalue(), err.getvalue())
        assert done.code == code, f"{words} ended with {done.code}:\n{done.out}\n{done.err}"
        return done

    def told(self, *words: str) -> str:
        """What a command prints that looks or steers."""
        return self.ask(*words).out

    def facts(self, *words: str) -> Any:
        """The facts that a command prints that looks or steers."""
        return json.loads(self.told(*words, "--json"))

    def refused(self, *words: str) -> str:
        """What a command says that is refused; it has nothing to say otherwise."""
        done = self.ask(*words, code=2)
        assert done.out == ""
        assert done.err.startswith("interlock: ")
        assert "Traceback" not in done.err
        return done.err

    def start(
        self, *words: str, stdout: int = subprocess.PIPE, environ: Mapping[str, str] = NOTHING
    ) -> Going:
        """A command that goes on beside the test, at the latest until its end."""
        process = subprocess.Popen(
            [*PROGRAM, *words],
            cwd=self.path,
            env=environment(**environ),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self._open.callback(_finish, process)
        return Going(process)

    def resume(self, gate: Gate, *words: str, code: int = 0) -> Done:
        """Go on with a run whose process was killed, past the gate at which an agent was held up.

        It may be opened only for the next attempt: the one that was cut off dies in a moment.
        """
        going = self.start("run", "--resume", *words)
        gate.reached()
        gate.open()
        done = going.ended()
        assert done.code == code, done
        return done

    def event(self, kind: str, task_id: str = "") -> Event:
        """The first event of this kind in the last run, when it has come."""
        with ProjectFolder(self.path).reader() as reader:
            run = reader.last_run()
            assert run is not None
            for event in follow(reader, run):
                if event.kind == kind and event.task_id == task_id:
                    return event
        raise AssertionError(f"the run ended without {kind} {task_id}")

    def draining(self) -> None:
        """Wait until the last run starts nothing any more."""
        with ProjectFolder(self.path).reader() as reader:
            run = reader.last_run()
            assert run is not None
            for event in follow(reader, run):
                if event.kind == "command" and event.fields["command"] == "drain":
                    return
        raise AssertionError("the run ended without draining")

    def state(self, task_id: str) -> str:
        """Where a task of the last run stands. `interlock status` says it as well, and slower."""
        return str(task_of(facts_of(ProjectFolder(self.path)), task_id).state)

    def close(self) -> None:
        self._open.close()


def environment(**more: str) -> dict[str, str]:
    """What a user's shell gives a command: no colours, lines as long as they are."""
    plain = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    paths = {"PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "error"}
    return {**plain, "LANG": "C.UTF-8", "COLUMNS": "1000", **paths, **more}


def _finish(process: subprocess.Popen[str]) -> None:
    """End a command that still goes on; what it has started goes with it."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A project with one agent, a shell."""
    made = Folder(tmp_path)
    made.write("interlock.yaml", SHELL)
    yield made
    made.close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Folder]:
    """A folder with nothing in it."""
    made = Folder(tmp_path)
    yield made
    made.close()
