"""Bugs planted on purpose: a judge that misses one of them is not good enough (S20).

Each is a small change inside the real kernel, of the kind that somebody could really make. Its
name says what goes wrong. `plant` makes the change for the length of a `with` block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

from interlock.kernel import kernel as kernel_module
from interlock.kernel import midflight as midflight_module
from interlock.kernel import table as table_module
from interlock.kernel.admission import Admission
from interlock.kernel.instructions import SetTimer, Settle, Stop
from interlock.kernel.kernel import Kernel
from interlock.kernel.meters import Meter
from interlock.kernel.midflight import Midflight
from interlock.kernel.records import Attempt
from interlock.kernel.table import Table
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.why import UnfinishedDependency
from interlock.testing.stories import make_script
from interlock.testing.world import World

Make = Callable[[Any], Any]
BUGS: dict[str, Callable[[], AbstractContextManager[None]]] = {}
_CLUMSY = (AttributeError, TypeError, NameError, UnboundLocalError)
"""What a planted bug that no longer fits the kernel would raise; that would prove nothing."""


def first_seed(name: str, seeds: range) -> int | None:
    """The first of these seeds in whose world the planted bug, and nothing else, is noticed."""
    for seed in seeds:
        script = make_script(seed)
        with BUGS[name]():
            found = World(script).run().violation
        if found is not None and isinstance(found.__cause__, _CLUMSY):
            raise found.__cause__
        if found is not None and World(script).run().violation is None:
            return seed
    return None


@contextmanager
def _changed(owner: Any, name: str, make: Make) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def _plant(sentence: str, owner: Any, name: str) -> Callable[[Make], Make]:
    """Register a bug: the decorated function makes the wrong method out of the right one."""

    def register(make: Make) -> Make:
        BUGS[sentence] = lambda: _changed(owner, name, make)
        return make

    return register


# Claims and what they exclude


@_plant("claims are released when an attempt ends and not when it is gone", Kernel, "_ended")
def _(original: Any) -> Any:
    return lambda self, report: original(self, report._replace(gone=True))


@_plant("a zombie loses its claims as soon as it is told to stop", Kernel, "_stop")
def _(original: Any) -> Any:
    def stop(self: Any, entry: Any, end: State, cause: str) -> None:
        original(self, entry, end, cause)
        if entry.attempt is not None:
            self._release(entry.attempt)

    return stop


@_plant("readers exclude each other", Table, "resolve")
def _(original: Any) -> Any:
    def resolve(self: Any, claims: Any) -> Any:
        needs, amounts = original(self, claims)
        return tuple((place, True) for place, _ in needs), amounts

    return resolve


@_plant("writers let readers in", Table, "resolve")
def _(original: Any) -> Any:
    def resolve(self: Any, claims: Any) -> Any:
        needs, amounts = original(self, claims)
        return tuple((place, writes and len(needs) < 2) for place, writes in needs), amounts

    return resolve


@_plant("only the first claim of a task is looked at", Table, "blocker")
def _(original: Any) -> Any:
    def blocker(self: Any, waiter: Any) -> Any:
        needs = waiter.needs
        waiter.needs = needs[:1]
        try:
            return original(self, waiter)
        finally:
            waiter.needs = needs

    return blocker


@_plant("a child may not touch what its parent holds", Attempt, "ancestry")
def _(original: Any) -> Any:
    return lambda self: ()


@_plant("siblings may touch the same files at once", Attempt, "ancestry")
def _(original: Any) -> Any:
    def ancestry(self: Any) -> Any:
        children = (self.entry.children or {}).values()
        return (*original(self), *(c.attempt.grant for c in children if c.attempt is not None))

    return ancestry


@_plant("a circle of extensions is not denied", midflight_module, "can_all_end")
def _(original: Any) -> Any:
    return lambda *arguments: True


# Limits


@_plant("one more than the capacity fits", Meter, "fits")
def _(original: Any) -> Any:
    return lambda self, amount, kin: original(self, amount - 1 if amount > 1 else amount, kin)


@_plant("there is one slot too many", Kernel, "__init__")
def _(original: Any) -> Any:
    return lambda self, *, slots, **options: original(self, slots=slots + 1, **options)


@_plant("a capacity can only be raised", Kernel, "_set_capacity")
def _(original: Any) -> Any:
    def set_capacity(self: Any, stimulus: Any) -> None:
        if stimulus.capacity > self.table.meters[stimulus.resource].capacity:
            original(self, stimulus)

    return set_capacity


@_plant("a raised capacity wakes nobody", Kernel, "_set_capacity")
def _(original: Any) -> Any:
    def set_capacity(self: Any, stimulus: Any) -> None:
        self.table.meters[stimulus.resource].capacity = stimulus.capacity

    return set_capacity


@_plant("a rate gives back before its window has passed", Meter, "give_back")
def _(original: Any) -> Any:
    return lambda self, now: original(self, now + 0.5 * self.window)


@_plant("a rate that must be left alone is not", Kernel, "_hold_rate")
def _(original: Any) -> Any:
    return lambda self, stimulus: None


@_plant("whoever asks a person keeps the slot", Midflight, "_lend")
def _(original: Any) -> Any:
    def lend(self: Any, attempt: Any) -> None:
        if attempt.entry.state is not State.RUNNING or any(
            request.question for request in attempt.requests.values()
        ):
            return
        original(self, attempt)

    return lend


@_plant("whoever was answered goes on without a slot", Midflight, "_return")
def _(original: Any) -> Any:
    return lambda self, request: self._resume(request)


# Waking


@_plant("a release wakes nobody", Admission, "_released")
def _(original: Any) -> Any:
    return lambda self, point: None


@_plant("a release wakes only one kind of waiter", Admission, "_released")
def _(original: Any) -> Any:
    def released(self: Any, point: Any) -> None:
        if point.shelves:
            self._list_shelf(next(iter(point.shelves.values())))

    return released


@_plant("amounts that come back wake nobody", Admission, "reopen")
def _(original: Any) -> Any:
    return lambda self, meter: original(self, meter) if meter.window is not None else None


@_plant("a task with a new priority is lost", Admission, "rekey")
def _(original: Any) -> Any:
    return lambda self, waiter, key: setattr(waiter, "key", key)


# Order


@_plant("reservations are ignored", table_module, "_closed")
def _(original: Any) -> Any:
    return lambda lines, place, writes, waiter: False


@_plant("nobody ever reserves", Admission, "_close_lines")
def _(original: Any) -> Any:
    return lambda self, waiter: None


@_plant("one who is blocked by a zombie holds everybody back", Admission, "_zombie_blocks")
def _(original: Any) -> Any:
    return lambda self, waiter: False


@_plant("a withdrawn reservation keeps standing", Admission, "_leave")
def _(original: Any) -> Any:
    def leave(self: Any, waiter: Any) -> None:
        self.closers.pop(waiter, None)
        original(self, waiter)

    return leave


@_plant("those whom a reservation held back are forgotten", Admission, "_unpark")
def _(original: Any) -> Any:
    return lambda self, shelf: None


# Attempts and their time


@_plant("the backoff is ignored", Kernel, "_failed")
def _(original: Any) -> Any:
    return lambda self, entry, error, end, wait: original(self, entry, error, end, 0.0)


@_plant("there is one attempt too many", Kernel, "_failed")
def _(original: Any) -> Any:
    def failed(self: Any, entry: Any, error: Any, end: State, wait: float) -> None:
        retry = entry.task.retry
        more = Retry(retry.attempts + 1, retry.backoff, retry.max_backoff, retry.jitter)
        entry.task = entry.task.replace(retry=more)
        original(self, entry, error, end, wait)

    return failed


@_plant("the last attempt is never made", Kernel, "_failed")
def _(original: Any) -> Any:
    def failed(self: Any, entry: Any, error: Any, end: State, wait: float) -> None:
        entry.attempts += 1
        original(self, entry, error, end, wait)
        entry.attempts -= 1

    return failed


@_plant("a further attempt does not wait until the last is gone", Kernel, "_backoff_over")
def _(original: Any) -> Any:
    def backoff_over(self: Any, entry: Any, now: float) -> None:
        entry.retry_timer = None
        self._make_ready(entry)

    return backoff_over


@_plant("the timeout counts the time spent waiting", Kernel, "_start")
def _(original: Any) -> Any:
    def start(self: Any, entry: Any, grant: Any) -> None:
        waited, now = self.now - entry.since, self.now
        self.now -= waited
        try:
            original(self, entry, grant)
        finally:
            self.now = now
        entry.since = now
        if entry.started_at == now - waited:
            entry.started_at = now

    return start


@_plant("a retry forgets the deadline", Kernel, "_failed")
def _(original: Any) -> Any:
    def failed(self: Any, entry: Any, error: Any, end: State, wait: float) -> None:
        self.timers.drop(entry.deadline)
        original(self, entry, error, end, wait)

    return failed


@_plant("an earlier timer is not announced", Kernel, "handle")
def _(original: Any) -> Any:
    def handle(self: Any, stimulus: Any, now: float) -> Any:
        before = self._announced
        told = original(self, stimulus, now)
        late = [i for i in told if isinstance(i, SetTimer) and before is not None and i.at]
        return [i for i in told if i not in late or (i.at or 0.0) > (before or 0.0)]

    return handle


# Outcomes


@_plant("a token is used twice", Kernel, "new_token")
def _(original: Any) -> Any:
    def new_token(self: Any) -> int:
        token = int(original(self))
        self._next_token -= token % 4 == 0
        return token

    return new_token


@_plant("reports with an old token are taken", Kernel, "_alive")
def _(original: Any) -> Any:
    def alive(self: Any, task_id: str, token: int, stimulus: Any) -> Any:
        entry = self.entries.get(task_id)
        attempt = entry.attempt if entry is not None else None
        return original(self, task_id, attempt.token if attempt else token, stimulus)

    return alive


@_plant("dependents of a failure start", Kernel, "_after_settling")
def _(original: Any) -> Any:
    def after_settling(self: Any, entry: Any) -> None:
        state = entry.state
        entry.state = State.SUCCEEDED if state is State.FAILED else state
        original(self, entry)
        entry.state = state

    return after_settling


@_plant("only direct dependents are skipped", Kernel, "_after_settling")
def _(original: Any) -> Any:
    def after_settling(self: Any, entry: Any) -> None:
        if entry.state is State.SKIPPED:
            entry.dependents = None
        original(self, entry)

    return after_settling


@_plant("fail-fast does not notice timeouts", kernel_module, "_FAILURES")
def _(original: Any) -> Any:
    return frozenset({State.FAILED, State.CONFLICTED})


@_plant("children outlive their parent", Kernel, "_close")
def _(original: Any) -> Any:
    def close(self: Any, attempt: Any) -> None:
        attempt.entry.children = {}
        original(self, attempt)

    return close


@_plant("a task is settled twice", Kernel, "handle")
def _(original: Any) -> Any:
    def handle(self: Any, stimulus: Any, now: float) -> Any:
        told = original(self, stimulus, now)
        return told + [i for i in told if isinstance(i, Settle) and i.status is State.CANCELLED]

    return handle


@_plant("a cancelled attempt is not told to stop", Kernel, "handle")
def _(original: Any) -> Any:
    def handle(self: Any, stimulus: Any, now: float) -> Any:
        told = original(self, stimulus, now)
        return [i for i in told if not isinstance(i, Stop) or i.reason != "cancelled"]

    return handle


# Steering and answers


@_plant("a drained run goes on starting", Kernel, "_drain")
def _(original: Any) -> Any:
    def drain(self: Any, stimulus: Any) -> None:
        original(self, stimulus)
        self.admission.halted = False

    return drain


@_plant("unpausing one task unpauses the run", Kernel, "_unpause")
def _(original: Any) -> Any:
    def unpause(self: Any, stimulus: Any) -> None:
        original(self, stimulus)
        self.admission.halted = self.draining_since is not None

    return unpause


@_plant("an unpaused task is forgotten", Kernel, "_unpause")
def _(original: Any) -> Any:
    return lambda self, stimulus: original(self, stimulus) if stimulus.task_id is None else None


@_plant("why does not name dependencies", Kernel, "why")
def _(original: Any) -> Any:
    def why(self: Any, task_id: str) -> Any:
        answer = original(self, task_id)
        kept = tuple(r for r in answer.reasons if not isinstance(r, UnfinishedDependency))
        return SimpleNamespace(reasons=kept)

    return why
