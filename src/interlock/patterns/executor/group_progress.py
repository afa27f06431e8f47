"""Count the assignments of a running group; the counts add up in every report."""

from __future__ import annotations

import logging

from interlock.patterns.executor.events import PARALLEL_PROGRESS_UPDATE, log_event
from interlock.patterns.executor.models import ParallelProgress, ProgressCallback


class GroupCounts:
    """How many assignments of a group have started and ended."""

    def __init__(self, group_id: str, total: int, callback: ProgressCallback | None) -> None:
        self._group_id = group_id
        self._total = total
        self._callback = callback
        self._running = 0
        self.succeeded = 0
        self.failed = 0

    @property
    def is_complete(self) -> bool:
        """Whether no assignment is pending or in progress."""
        return self.succeeded + self.failed == self._total

    def record_start(self) -> None:
        """Count a pending assignment as in progress."""
        self._running += 1
        self._report()

    def record_end(self, *, success: bool, had_started: bool) -> None:
        """Count an outcome; an assignment may end while it is still pending."""
        self._running -= had_started
        self.succeeded += success
        self.failed += not success
        self._report()

    def _report(self) -> None:
        if self._callback is None:
            return
        progress = ParallelProgress(
            group_id=self._group_id,
            total=self._total,
            completed=self.succeeded + self.failed,
            in_progress=self._running,
            succeeded=self.succeeded,
            failed=self.failed,
        )
        error = None
        try:
            self._callback(progress)
        except Exception as raised:  # noqa: BLE001 - an observer must not fail the group
            error = raised
        log_event(
            PARALLEL_PROGRESS_UPDATE,
            level=None if error is None else logging.ERROR,
            caused_by=error,
            **progress.model_dump(),
        )
