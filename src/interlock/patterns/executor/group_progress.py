"""Counts of a group as it goes on; they add up whenever anybody sees them."""

from __future__ import annotations

import logging

from interlock.patterns.executor.events import PARALLEL_PROGRESS_UPDATE, tell
from interlock.patterns.executor.models import ParallelProgress, ProgressCallback


class GroupCounts:
    """How many of a group have begun and ended."""

    def __init__(self, group_id: str, total: int, callback: ProgressCallback | None) -> None:
        self._group_id = group_id
        self._total = total
        self._callback = callback
        self._running = 0
        self.succeeded = 0
        self.failed = 0

    @property
    def all_ended(self) -> bool:
        """Whether nothing is pending or in progress."""
        return self.succeeded + self.failed == self._total

    def began(self) -> None:
        """One that was pending has begun."""
        self._running += 1
        self._tell()

    def ended(self, *, success: bool, had_begun: bool) -> None:
        """One has its outcome; it may have been pending until then."""
        self._running -= had_begun
        self.succeeded += success
        self.failed += not success
        self._tell()

    def _tell(self) -> None:
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
        except Exception as raised:  # noqa: BLE001 - whoever only looks must not hurt a group
            error = raised
        tell(
            PARALLEL_PROGRESS_UPDATE,
            level=None if error is None else logging.ERROR,
            caused_by=error,
            **progress.model_dump(),
        )
