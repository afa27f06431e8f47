"""Which terminal there is, and what can be shown in it."""

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
        """Rich would end the program with 1, and a run that went well would seem to have failed."""
        raise BrokenPipeError


def make_console(*, stderr: bool = False) -> Console:
    """A console that takes text as it is: nothing in it is markup, emoji codes or highlighted.

    Colours and NO_COLOR are Rich's business.
    """
    return _Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def replace_unencodable() -> None:
    """What a stream cannot encode must end neither a run nor a look at it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def can_be_live(console: Console, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a live view is of use: somebody may be looking, at a terminal that can be drawn on.

    NO_COLOR asks for no colours, not for no view: nothing in it is said by colour alone.
    """
    return console.file.isatty() and not console.is_dumb_terminal and not environ.get("CI")


@contextlib.contextmanager
def ignore_broken_pipe() -> Iterator[None]:
    """Whoever read our output may have left, or closed the window: what is done goes on."""
    try:
        yield
    except OSError:
        discard_output()


def discard_output() -> None:
    """From now on output goes nowhere. Python would complain about what is left of it at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
