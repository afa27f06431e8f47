"""The progress of a run: counts that always add up."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.model.stable_names import stable_name


@stable_name("data.progress")
@dataclass(frozen=True, slots=True)
class Progress:
    """How many tasks are in each state, at one moment."""

    blocked: int = 0
    waiting: int = 0
    running: int = 0
    retrying: int = 0
    needs_you: int = 0
    succeeded: int = 0
    failed: int = 0
    timed_out: int = 0
    cancelled: int = 0
    skipped: int = 0
    conflicted: int = 0
    zombies: int = 0
    """Attempts (not tasks) that were told to stop, or have ended, and have not exited yet."""

    def __str__(self) -> str:
        counts = ((name, getattr(self, name)) for name in self.__dataclass_fields__)
        said = [f"{count} {name.replace('_', ' ')}" for name, count in counts if count]
        return ", ".join(said) or "nothing to do"

    @property
    def ended(self) -> int:
        """Tasks that have their outcome."""
        return (
            self.succeeded
            + self.failed
            + self.timed_out
            + self.cancelled
            + self.skipped
            + self.conflicted
        )

    @property
    def pending(self) -> int:
        """Tasks that have not started, or wait for their next attempt."""
        return self.blocked + self.waiting + self.retrying

    @property
    def total(self) -> int:
        """All tasks of the run."""
        return self.pending + self.running + self.needs_you + self.ended
