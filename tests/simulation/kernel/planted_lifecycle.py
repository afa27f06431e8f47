"""Planted bugs: attempts, outcomes, steering, answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from interlock.kernel import run as run_module
from interlock.kernel.controls import Controls
from interlock.kernel.instructions import SetTimer, Settle, Stop
from interlock.kernel.kernel import Kernel
from interlock.kernel.run import KernelRun
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.why import UnfinishedDependency
from tests.simulation.planting import Bugs

BUGS = Bugs()

# Attempts and their time


@BUGS.plant("the backoff is ignored", KernelRun, "_failed")
def _(original: Any) -> Any:
    return lambda self, entry, error, end, wait: original(self, entry, error, end, 0.0)


@BUGS.plant("there is one attempt too many", KernelRun, "_failed")
def _(original: Any) -> Any:
    def failed(self: Any, entry: Any, error: Any, end: State, wait: float) -> None:
        retry = entry.task.retry
        more = Retry(retry.attempts + 1, retry.backoff, retry.max_backoff, retry.jitter)
        entry.task = entry.task.replace(retry=more)
        original(self, entry, error, end, wait)

    return failed


@BUGS.plant("the last attempt is never made", KernelRun, "_failed")
def _(original: Any) -> Any:
    def failed(self: Any, entry: Any, error: Any, end: State, wait: float) -> None:
        entry.attempts += 1
        original(self, entry, error, end, wait)
        entry.attempts -= 1

    return failed


@BUGS.plant("a further attempt does not wait until the last is gone", KernelRun, "_backoff_over")
def _(original: Any) -> Any:
    def backoff_over(self: Any, entry: Any, now: float) -> None:
        entry.own.retry_timer = None
        self._make_ready(entry)

    return backoff_over


@BUGS.plant("the timeout counts the time spent waiting", KernelRun, "start")
def _(original: Any) -> Any:
    def start(self: Any, waiter: Any) -> None:
        entry = waiter.owner
        waited, now = self.now - entry.since, self.now
        self.now -= waited
        try:
            original(self, waiter)
        finally:
            self.now = now
        entry.since = entry.attempt.since = now

    return start


@BUGS.plant("a retry forgets the deadline", KernelRun, "_failed")
def _(original: Any) -> Any:
    def failed(self: Any, entry: Any, error: Any, end: State, wait: float) -> None:
        self.timers.drop(entry.extras.deadline)
        original(self, entry, error, end, wait)

    return failed


@BUGS.plant("an earlier timer is not announced", Kernel, "handle")
def _(original: Any) -> Any:
    def handle(self: Any, stimulus: Any, now: float) -> Any:
        before = self._announced
        told = original(self, stimulus, now)
        late = [i for i in told if isinstance(i, SetTimer) and before is not None and i.at]
        return [i for i in told if i not in late or (i.at or 0.0) > (before or 0.0)]

    return handle


# Outcomes


@BUGS.plant("a token is used twice", KernelRun, "new_token")
def _(original: Any) -> Any:
    def new_token(self: Any) -> int:
        token = int(original(self))
        self._next_token -= token % 4 == 0
        return token

    return new_token


@BUGS.plant("reports with an old token are taken", KernelRun, "_alive")
def _(original: Any) -> Any:
    def alive(self: Any, task_id: str, token: int, stimulus: Any) -> Any:
        entry = self.entries.get(task_id)
        attempt = entry.attempt if entry is not None else None
        return original(self, task_id, attempt.token if attempt else token, stimulus)

    return alive


@BUGS.plant("dependents of a failure start", KernelRun, "_after_settling")
def _(original: Any) -> Any:
    def after_settling(self: Any, entry: Any) -> None:
        state = entry.state
        entry.state = State.SUCCEEDED if state is State.FAILED else state
        original(self, entry)
        entry.state = state

    return after_settling


@BUGS.plant("only direct dependents are skipped", KernelRun, "_after_settling")
def _(original: Any) -> Any:
    def after_settling(self: Any, entry: Any) -> None:
        if entry.state is State.SKIPPED:
            entry.own.dependents = None
        original(self, entry)

    return after_settling


@BUGS.plant("fail-fast does not notice timeouts", run_module, "_FAILURES")
def _(original: Any) -> Any:
    return frozenset({State.FAILED, State.CONFLICTED})


@BUGS.plant("fail-fast counts only for those it was asked for", KernelRun, "_group")
def _(original: Any) -> Any:
    def group(self: Any, stimulus: Any) -> Any:
        known = stimulus.group in self.groups
        return original(self, stimulus._replace(fail_fast=stimulus.fail_fast and not known))

    return group


@BUGS.plant("a group keeps its first deadline", KernelRun, "_group")
def _(original: Any) -> Any:
    def group(self: Any, stimulus: Any) -> Any:
        known = self.groups.get(stimulus.group)
        first = known is None or known.deadline is None
        return original(self, stimulus if first else stimulus._replace(deadline=None))

    return group


@BUGS.plant("children outlive their parent", KernelRun, "_close")
def _(original: Any) -> Any:
    def close(self: Any, attempt: Any) -> None:
        attempt.entry.own.children = {}
        original(self, attempt)

    return close


@BUGS.plant("a task is settled twice", Kernel, "handle")
def _(original: Any) -> Any:
    def handle(self: Any, stimulus: Any, now: float) -> Any:
        told = original(self, stimulus, now)
        return told + [i for i in told if isinstance(i, Settle) and i.status is State.CANCELLED]

    return handle


@BUGS.plant("a cancelled attempt is not told to stop", Kernel, "handle")
def _(original: Any) -> Any:
    def handle(self: Any, stimulus: Any, now: float) -> Any:
        told = original(self, stimulus, now)
        return [i for i in told if not isinstance(i, Stop) or i.reason != "cancelled"]

    return handle


# Controls and answers


@BUGS.plant("a drained run goes on starting", Controls, "drain")
def _(original: Any) -> Any:
    def drain(self: Any, stimulus: Any) -> None:
        original(self, stimulus)
        self._run.admission.draining = False

    return drain


@BUGS.plant("unpausing one task unpauses the run", Controls, "resume")
def _(original: Any) -> Any:
    def resume(self: Any, stimulus: Any) -> None:
        original(self, stimulus)
        self._run.admission.resume()

    return resume


@BUGS.plant("an unpaused task is forgotten", Controls, "resume")
def _(original: Any) -> Any:
    return lambda self, stimulus: original(self, stimulus) if stimulus.task_id is None else None


@BUGS.plant("why does not name dependencies", Kernel, "why")
def _(original: Any) -> Any:
    def why(self: Any, task_id: str) -> Any:
        answer = original(self, task_id)
        kept = tuple(r for r in answer.reasons if not isinstance(r, UnfinishedDependency))
        return SimpleNamespace(reasons=kept)

    return why
