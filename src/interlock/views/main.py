"""The program `interlock`, from its first line. What most of it needs is imported when it does."""

from __future__ import annotations

import sys
from importlib import import_module

from interlock.version import __version__


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["version"]):
        print(f"interlock {__version__}")
        return
    sys.exit(import_module("interlock.views.app").run_app(sys.argv[1:]))
