"""What an earlier process of a scheduler left in the run that is resumed."""

from __future__ import annotations

import math

from interlock.errors import InterlockError
from interlock.model.stable_names import stable_name
from interlock.model.task import Task
from interlock.patterns.cron.clock import SET_BACK
from interlock.patterns.cron.firings import firing_of, record_of
from interlock.patterns.cron.job_state import JobStates, moment_of_text
from interlock.runtime.runtime import Runtime


def restore(runtime: Runtime, states: JobStates, now: float) -> None:
    """Add to the job states what only the run knows: they are stored a moment after it.

    Firings of a clock that was far ahead are left out: jobs do not wait for it to come again.
    """
    for task_id in (*(each.task_id for each in runtime.outcomes), *runtime.unsubmitted):
        firing = firing_of(task_id)
        if firing is not None and firing.due is not None and firing.due <= now + SET_BACK:
            state = states.of(firing.job_id)
            state.since = None if state.since is None else max(state.since, firing.due)
    for outcome in runtime.outcomes:
        firing = firing_of(outcome.task_id)
        if firing is None:
            continue
        state = states.of(firing.job_id)
        last = state.last_scheduled if firing.trigger == "schedule" else state.last_manual
        ended = math.inf if outcome.ended_at is None else outcome.ended_at.timestamp()
        if last is None or (moment_of_text(last["ended_at"]) or 0.0) < ended:
            states.changed(firing.job_id).add_ended(record_of(firing, outcome))


def cancel_unclaimed(runtime: Runtime) -> None:
    """Cancel unfinished firings whose jobs this process has not added: the run is to be closed."""
    for task_id in runtime.unsubmitted:
        try:
            runtime.submit(Task(task_id, _missing_agent)).cancel("its job was not added again")
        except InterlockError:
            return  # the run takes no more tasks, as after a signal: it stays open


@stable_name("cron.missing_agent")
def _missing_agent() -> None:
    """Stands for an agent that the program no longer has; never called."""
