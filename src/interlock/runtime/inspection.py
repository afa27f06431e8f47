"""Looking at a run: which attempts are alive, and why a task is not running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from interlock.kernel.kernel import Kernel
from interlock.model.claim import Claim
from interlock.model.why import Explanation, StuckJournal
from interlock.runtime.attempts import Attempts
from interlock.runtime.handle import Running
from interlock.runtime.limits.slots import SlotControl
from interlock.runtime.log import Log
from interlock.runtime.task_table import TaskTable


class JournalTrouble:
    """Whether the journal can be written. While it cannot, nothing is carried out."""

    def __init__(self, log: Log, now: Callable[[], float]) -> None:
        self._log = log
        self._now = now
        self._found: tuple[float, Exception] | None = None

    def __bool__(self) -> bool:
        return self._found is not None

    def report(self, error: Exception | None) -> None:
        """The journal cannot be written; None: it can be again."""
        if error is None:
            self._found = None
        elif self._found is None:
            self._found = (self._now(), error)  # it is since the first error that nothing starts
        self._log.trouble(error)

    def reasons(self) -> tuple[StuckJournal, ...]:
        """The reason why nothing starts, if this is one."""
        if self._found is None:
            return ()
        since, error = self._found
        return (StuckJournal(str(error), since),)


class Inspection:
    """Combines what the kernel knows of a task with what only the runtime knows."""

    def __init__(
        self,
        kernel: Kernel,
        tasks: TaskTable,
        attempts: Attempts,
        slots: SlotControl,
        trouble: JournalTrouble,
        now: Callable[[], float],
    ) -> None:
        self._kernel = kernel
        self._tasks = tasks
        self._attempts = attempts
        self._slots = slots
        self._trouble = trouble
        self._now = now

    def running(self) -> tuple[Running, ...]:
        """The attempts that are alive, oldest first."""
        found = []
        for each in self._kernel.alive():
            context = self._attempts.context_of(each.token)
            claims = self._tasks.named(each.task_id).task.claims
            claims += () if context is None else context.extra
            found.append(Running(each.task_id, claims, each.since, each.zombie))
        return tuple(found)

    def holders(self) -> list[tuple[str, tuple[Claim, ...]]]:
        """Everything that a new task may have to wait for, with its claims."""
        found = [(each.task_id, each.task.claims) for each in self._tasks if each.outcome is None]
        # Attempts besides tasks: they may hold more than their task claims, and outlive its end.
        found += [(each.task_id, each.claims) for each in self.running()]
        return [*found, *self._kernel.external_holds()]

    def why(self, task_id: str) -> Explanation:
        """Every reason why a task is not running, as of now."""
        found = self._slots.refreshed(self._kernel.why(task_id, self._now()))
        reasons = self._trouble.reasons()
        # First, because as long as the journal is stuck no other reason matters.
        return replace(found, reasons=(*reasons, *found.reasons)) if reasons else found
