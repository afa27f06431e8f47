"""Every start of a program waits for its first code: what that imports is kept small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from interlock.execution.commands import launch

OURS = {
    "interlock",
    "interlock.execution",
    "interlock.execution.commands",
    "interlock.execution.commands.command_child",
    "interlock.execution.processes",
    "interlock.execution.processes.containment",
    "interlock.execution.processes.supervisor",
    "interlock.system",
    "interlock.system.process_table",
}
SLOW = {"asyncio", "collections", "enum", "re", "signal", "socket", "subprocess", "typing"}


def test_the_first_code_of_a_program_imports_little() -> None:
    before, _, call = launch._BOOT.rstrip().rpartition("\n")
    assert call.startswith("main(")
    source = str(Path(launch.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{before}\nprint(*sys.modules)", source],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("interlock")} == OURS
    assert not loaded & SLOW
