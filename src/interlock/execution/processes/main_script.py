"""The script that was started: a process that runs one of its functions imports it again.

As with multiprocessing, the script sees the name `__mp_main__` then, so that the code under
`if __name__ == "__main__":` does not run again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

AGAIN = "__mp_main__"

UNGUARDED = (
    "the script {path} starts Interlock whenever it is imported, also in the process of an agent "
    'that it defines. Put that code under `if __name__ == "__main__":`, or move the agent to '
    "a module of its own."
)


class MainScript(NamedTuple):
    """Where the running script comes from."""

    path: str
    package: str


def find() -> MainScript | None:
    """Return the script that this process was started with; None in a notebook or at a prompt."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or not os.path.isfile(path):
        return None
    return MainScript(os.path.abspath(path), getattr(main, "__package__", None) or "")


_refuse: Callable[[], None] | None = None
"""Set while the script is being imported again."""


def import_again(script: MainScript, refuse: Callable[[str], None]) -> None:
    """Import the script in the process of an agent; `refuse` ends that process, with a reason."""
    global _refuse  # noqa: PLW0603 - the module is the state: a process has one script
    module = ModuleType(AGAIN)
    module.__file__ = script.path
    module.__package__ = script.package
    if script.package:
        import_module(script.package)
    # Its functions were sent as those of `__main__`.
    sys.modules[AGAIN] = sys.modules["__main__"] = module
    with open(script.path, "rb") as file:
        code = compile(file.read(), script.path, "exec")
    _refuse = partial(refuse, UNGUARDED.format(path=script.path))
    try:
        exec(code, module.__dict__)
    finally:
        _refuse = None


def refuse_to_start_again() -> None:
    """End this process if its script is only being imported: it would start itself for ever."""
    if _refuse is not None:
        _refuse()
