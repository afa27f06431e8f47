"""Doing something as an ordinary user would, whom permissions hold back, also in tests of root."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import interlock

SOURCE = str(Path(interlock.__file__).parents[1])
_PR_CAPBSET_DROP = 24
_libc = ctypes.CDLL(None)


def ordinarily(script: str, **env: str) -> str:
    """What a Python script prints, in an empty folder of its own."""
    is_root = sys.platform == "linux" and os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": folder, **env},
            preexec_fn=_give_up_power if is_root else None,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _give_up_power() -> None:
    """Root without capabilities is the owner of root's files, and no more than that."""
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
