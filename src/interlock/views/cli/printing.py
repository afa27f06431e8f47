"""Output of commands: text and JSON to standard output, complaints to standard error."""

from __future__ import annotations

import json
from typing import Any

from rich.text import Text

from interlock.views.terminal import safe_text
from interlock.views.terminal.ascii_fallback import AsciiFallback
from interlock.views.terminal.console import make_console


def say(words: str) -> None:
    """Print a line for people."""
    make_console().print(AsciiFallback(Text(safe_text.line(words))), soft_wrap=True)


def print_json(facts: Any) -> None:
    """Print one JSON document, in ASCII: it cannot contain control sequences of a terminal."""
    print(json.dumps(facts, indent=2))


def complain(words: str) -> None:
    """Print what went wrong."""
    console = make_console(stderr=True)
    console.print(Text("interlock:", "bold red"), end=" ")
    for line in safe_text.lines(words):
        console.print(AsciiFallback(Text(line)), soft_wrap=True)
