"""The entry point of the program `interlock`. Everything else is imported when it is needed."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from interlock.version import __version__


def main() -> None:
    """Run the command line."""
    _open_closed_streams()
    if sys.argv[1:] in (["--version"], ["version"]):
        print(f"interlock {__version__}")
        return
    sys.exit(import_module("interlock.views.cli.app").run_app(sys.argv[1:]))


def _open_closed_streams() -> None:
    """Connect a standard stream that is closed (`>&-`) to the null device.

    Otherwise the next file to be opened would get its descriptor, and what agents print.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_RDWR)  # it gets the lowest free descriptor
        os.set_inheritable(opened, True)
        how = "w" if number else "r"
        setattr(sys, name, os.fdopen(opened, how, encoding="utf-8", closefd=False))
