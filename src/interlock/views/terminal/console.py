"""The console: what kind of terminal it is, and what happens when it goes away."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from typing import NoReturn

from rich.console import Console


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Rich would exit with code 1, and a successful run would seem to have failed."""
        raise BrokenPipeError


def make_console(*, stderr: bool = False) -> Console:
    """A console that prints text as it is: no markup, no emoji codes, no highlighting.

    Rich handles colours and NO_COLOR.
    """
    return _Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def replace_unencodable() -> None:
    """Let standard streams replace what they cannot encode, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def can_be_live(console: Console, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a live view makes sense: the output is a terminal that can be drawn on, and not CI.

    NO_COLOR does not disable it: no information is given by colour alone.
    """
    return console.file.isatty() and not console.is_dumb_terminal and not environ.get("CI")


@contextlib.contextmanager
def ignore_broken_pipe() -> Iterator[None]:
    """Continue if the reader of the output has left or the window was closed."""
    try:
        yield
    except OSError:
        discard_output()


def discard_output() -> None:
    """Discard all further output. Otherwise Python complains at exit about what is left of it."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
