"""Agents with a role and a blocking step, for real threads and processes."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from interlock import cancelled


class Says:
    """Returns what it was given."""

    def __init__(self, role: str, value: Any = None) -> None:
        self.role = role
        self._value = value

    def run_step(self) -> Any:
        return self.role if self._value is None else self._value


class Fails(Says):
    def run_step(self) -> Any:
        raise LookupError(self.role)


class Where(Says):
    """Tells in which process and thread it runs."""

    def run_step(self) -> tuple[int, str]:
        return os.getpid(), threading.current_thread().name


class Notes(Says):
    """Notes in a file that it ran; the first time it fails if it was told to."""

    def __init__(self, role: str, fails: bool = False) -> None:
        super().__init__(role)
        self._fails = fails

    def run_step(self) -> str:
        with Path("ran.txt").open("a", encoding="utf-8") as ran:
            ran.write(self.role)
        if self._fails:
            raise LookupError(self.role)
        return self.role


class Hangs(Says):
    """Says that it is there, and then nothing any more."""

    def run_step(self) -> None:
        Path("pid.txt").write_text(str(os.getpid()), encoding="ascii")
        threading.Event().wait()


class Waits(Says):
    """Blocks until it is let go; `polls`: or until it is told to stop."""

    def __init__(self, role: str, polls: bool = False) -> None:
        super().__init__(role)
        self.begun = threading.Event()
        self.let_go = threading.Event()
        self.ended = threading.Event()
        self._polls = polls

    def run_step(self) -> str:
        self.begun.set()
        while not self.let_go.wait(0.01 if self._polls else 60):
            assert self._polls, "nobody let it go"
            if cancelled():
                break
        self.ended.set()
        return "too late"
