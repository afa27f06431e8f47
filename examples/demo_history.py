"""What became of each task when, put down from the events of the run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from interlock import Event, Kind, State, Task

PHASES = {
    Kind.BLOCKED: "blocked",
    Kind.WAITING: "waits",
    Kind.STARTED: "runs",
    Kind.RETRYING: "backoff",
}
"""The phase of a task that begins with an event."""


@dataclass
class Lane:
    """The life of one task."""

    task: Task
    phases: list[tuple[float, str]] = field(default_factory=list)
    """When each phase began, in seconds of the run. The last one is how it ended."""
    end: State | None = None
    reason: str = ""
    attempts: int = 0
    doing: str = ""
    """What its agent has last said of itself."""

    def at(self, second: float) -> str:
        """The phase it is in at a time; empty before its first one."""
        return next((name for began, name in reversed(self.phases) if began <= second), "")


class History:
    """A lane for each task. Give `hear` to `rt.listen`."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.lanes = {task.id: Lane(task) for task in tasks}
        self.stopping = False
        self.began = time.time()

    def now(self) -> float:
        """Seconds since the beginning."""
        return time.time() - self.began

    def hear(self, event: Event) -> None:
        """Put down one event."""
        at = event.at - self.began
        if event.kind is Kind.ASKED and type(event.data).__name__ == "Drain":
            self.stopping = True
        lane = self.lanes.get(event.task_id)
        if lane is None:
            return
        if event.kind in PHASES:
            lane.phases.append((at, PHASES[event.kind]))
        if event.kind is Kind.STARTED:
            lane.attempts = event.fields["attempt"]
        elif event.kind is Kind.REPORTED:
            lane.doing = event.fields["message"]
        elif event.kind is Kind.SETTLED:
            lane.end = event.fields["status"]
            lane.reason = event.data.reason
            lane.phases.append((at, lane.end))
