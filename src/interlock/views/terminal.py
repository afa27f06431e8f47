"""Which terminal there is, and what can be shown in it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping

from rich.console import Console


def make_console(*, stderr: bool = False) -> Console:
    """A console that takes text as it is: nothing in it is markup, emoji codes or highlighted.

    Colours and NO_COLOR are Rich's business. What a stream cannot encode must not end a run.
    """
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def can_be_live(console: Console, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a live view is of use: somebody may be looking, at a terminal that can be drawn on.

    NO_COLOR asks for no colours, not for no view: nothing in it is said by colour alone.
    """
    return console.file.isatty() and not console.is_dumb_terminal and not environ.get("CI")
