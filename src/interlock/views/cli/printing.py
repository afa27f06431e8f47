"""Words and facts: what is said goes to standard output, complaints go to standard error."""

from __future__ import annotations

import json
from typing import Any

from rich.text import Text

from interlock.views.terminal import safe
from interlock.views.terminal.spelling import Spelled
from interlock.views.terminal.terminal import make_console


def say(words: str) -> None:
    """Say something to people."""
    make_console().print(Spelled(Text(safe.line(words))), soft_wrap=True)


def print_json(facts: Any) -> None:
    """Facts for programs: one document, in ASCII, so that a terminal takes nothing for its own."""
    print(json.dumps(facts, indent=2))


def complain(words: str) -> None:
    """Say what went wrong."""
    console = make_console(stderr=True)
    console.print(Text("interlock:", "bold red"), end=" ")
    for line in safe.lines(words):
        console.print(Spelled(Text(line)), soft_wrap=True)
