"""A coordinator whose memory is measured. Its arguments: a script of the agent's, patterns.

Prints, as JSON, how the task ended and how much memory the coordinator has had.
"""

from __future__ import annotations

import json
import resource
import sys

import interlock
from interlock import Task, command


def main(script: str, *patterns: str) -> None:
    agent = command(["sh", "-c", script], errors={"model_error": patterns})
    (outcome,) = interlock.run([Task("a", agent)], secrets=["hunter2222"])
    ran = {
        "status": outcome.status,
        "reason": outcome.reason,
        "result": outcome.result,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(ran))


if __name__ == "__main__":
    main(*sys.argv[1:])
