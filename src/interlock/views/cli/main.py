"""The program `interlock`, from its first line. What most of it needs is imported when it does."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from interlock.version import __version__


def main() -> None:
    """Run the command line."""
    _open_what_is_closed()
    if sys.argv[1:] in (["--version"], ["version"]):
        print(f"interlock {__version__}")
        return
    sys.exit(import_module("interlock.views.cli.app").run_app(sys.argv[1:]))


def _open_what_is_closed() -> None:
    """Somebody may have started us without a standard stream (`>&-`): then it leads nowhere.

    Otherwise the next file that is opened would get its number, and what an agent prints.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        os.set_inheritable(opened, True)
        how = "w" if number else "r"
        setattr(sys, name, os.fdopen(opened, how, encoding="utf-8", closefd=False))
