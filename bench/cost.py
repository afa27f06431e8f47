"""What handling a queue of no-op tasks costs in the kernel, per task."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Sequence
from time import perf_counter

from interlock.kernel.instructions import Start
from interlock.kernel.kernel import Kernel
from interlock.kernel.stimuli import Ended, Submit
from interlock.model.task import Task

BATCH = 1_000
"""Tasks per submission."""


def cost_per_task(tasks: Sequence[Task], slots: int) -> float:
    """Microseconds per task to submit them all and then to run them to their end.

    Everything is queued before the first one ends; each no-op ends in the order of starts.
    """
    gc.collect()
    began = perf_counter()
    kernel = Kernel(slots=slots)
    running: deque[Start] = deque()
    for first in range(0, len(tasks), BATCH):
        out = kernel.handle(Submit(tuple(tasks[first : first + BATCH])), 0.0)
        running.extend(each for each in out if isinstance(each, Start))
    ended = 0
    while running:
        start = running.popleft()
        for each in kernel.handle(Ended(start.task_id, start.token), 0.0):
            if isinstance(each, Start):
                running.append(each)
        ended += 1
    spent = perf_counter() - began
    assert ended == len(tasks), f"only {ended} of {len(tasks)} tasks ran"
    return 1e6 * spent / ended
