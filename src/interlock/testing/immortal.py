"""Keeps what must never be finalised, not even at the end of the interpreter.

To let go of a suspended coroutine is to run it: Python throws `GeneratorExit` into it, and its
`finally` blocks run. A coroutine of a crashed loop or of a killed process is dead: nothing of it
may run again. To keep a reference is not enough, because the interpreter drops all references when
it ends. By then the modules are half dismantled, and each such coroutine prints a traceback.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any


def immortal_list() -> list[Any]:
    """A list that is never freed, and so never lets go of what is put into it."""
    made: list[Any] = []
    if sys.implementation.name == "cpython":
        # With one reference too many, neither reference counting nor the collector frees it.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made
