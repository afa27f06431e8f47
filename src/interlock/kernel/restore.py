"""Restoring what a run had before it was resumed: ends, attempts, deadlines, spent rates.

A resumed run gets a fresh kernel. Ends come as `Recall`, spent rates as `Spend`, and what a task
had behind it as `Past` with its submission.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from interlock.errors import BlankId, DuplicateId, InvalidOption, UnknownResource
from interlock.kernel import stimuli as s
from interlock.kernel.meters import Spent
from interlock.kernel.records import Entry
from interlock.model.outcome import State

if TYPE_CHECKING:
    from interlock.kernel.run import KernelRun


class Restorer:
    """Puts a fresh kernel into the state that a run was in."""

    def __init__(self, run: KernelRun) -> None:
        self._run = run

    def recall(self, stimulus: s.Recall) -> None:
        """Take in tasks that had ended: others can come after them, and their ids are taken."""
        run = self._run
        for task_id, state in stimulus.ends:
            if not isinstance(task_id, str) or not task_id.strip():
                raise BlankId(f"a task needs an id that is not blank, not {task_id!r}")
            if task_id in run.entries or task_id in run.ends or task_id in run.external_holds:
                raise DuplicateId(f"there is already a task with the id {task_id!r}")
            if state not in State or not State(state).is_end:
                raise InvalidOption(f"task {task_id!r} cannot have ended as {state!r}")
        for task_id, state in stimulus.ends:
            run.ends[task_id] = State(state)
            run.ended_at[task_id] = run.now
            run.counts[State(state).value] += 1
            if run.max_ended is not None:
                run.remember_end(task_id)

    def spend(self, stimulus: s.Spend) -> None:
        """Take in what a rate had given out; it comes back when the window has passed."""
        run = self._run
        meter = run.table.meters.get(stimulus.resource)
        if meter is None or meter.window is None:
            raise UnknownResource(f"{stimulus.resource!r} is not a rate of this run")
        if not isinstance(stimulus.amount, int) or stimulus.amount < 0:
            raise InvalidOption(f"{stimulus.amount!r} of {stimulus.resource!r} cannot be spent")
        if (meter.spent and stimulus.at < meter.spent[-1].at) or not stimulus.at <= run.now:
            raise InvalidOption(f"amounts spent of {stimulus.resource!r} must come oldest first")
        if stimulus.at + meter.window > run.now:
            meter.spent.append(Spent(stimulus.at, stimulus.amount, None))
            meter.used += stimulus.amount

    def check(self, stimulus: s.Submit) -> set[str]:
        """Raise for an impossible past; return the ids of the tasks that have one."""
        if len(stimulus.past) not in (0, len(stimulus.tasks)):
            raise InvalidOption("past must have an entry for each task, or none at all")
        found = set()
        for task, past in zip(stimulus.tasks, stimulus.past, strict=False):
            if past is None:
                continue
            if not 0 <= past.attempts < task.retry.attempts and past.attempts:
                raise InvalidOption(f"task {task.id!r} cannot have had {past.attempts} attempts")
            for time in (past.started_at, past.retry_at, past.deadline_at):
                if time is not None and not math.isfinite(time):
                    raise InvalidOption(
                        f"task {task.id!r}: {time!r} is not a valid time in its past"
                    )
            found.add(task.id)
        return found

    def restore_tasks(self, stimulus: s.Submit, batch: Mapping[str, Entry]) -> None:
        """Give tasks back what they had."""
        for entry, past in zip(batch.values(), stimulus.past, strict=False):
            if past is None:
                continue
            entry.attempts = past.attempts
            entry.own.started_at = past.started_at
            if past.paused:
                entry.own.paused_since = self._run.now
            if past.error is not None:
                entry.own.error = past.error
            if past.retry_at is not None:
                entry.own.retry_at = past.retry_at
            if past.deadline_at is not None:
                timers = self._run.timers
                timers.drop(entry.extras.deadline)
                passed = partial(self._run.deadline_passed, entry)
                entry.own.deadline = timers.set(max(past.deadline_at, self._run.now), passed)
