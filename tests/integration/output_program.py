"""A coordinator whose memory is measured. Its arguments: a script of the agent's, patterns.

Prints, as JSON, how the task ended and how much memory the coordinator has had.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import interlock
from interlock import Task, command


def main(script: str, *patterns: str) -> None:
    agent = command(["sh", "-c", script], errors={"model_error": patterns})
    (outcome,) = interlock.run([Task("a", agent)], secrets=["hunter2222"])
    ran = {
        "status": outcome.status,
        "reason": outcome.reason,
        "result": outcome.result,
        "megabytes": _most_memory() // 1024,
    }
    print(json.dumps(ran))


def _most_memory() -> int:
    """In kB, of this program alone; `ru_maxrss` begins with that of whoever started us."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise AssertionError("the system does not tell")


if __name__ == "__main__":
    main(*sys.argv[1:])
