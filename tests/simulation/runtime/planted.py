"""Bugs planted in the runtime: a judge of runs that misses one of them is not good enough (S20).

Each is a small change inside the real runtime, such as a contributor could make by mistake; some
were made. Its name says what goes wrong.
"""

from __future__ import annotations

import asyncio
from typing import Any

from interlock.execution.callables.coroutines import Coroutines
from interlock.kernel import stimuli as s
from interlock.runtime import lifecycle as life
from interlock.runtime.attempts import Attempts
from interlock.runtime.event_stream import EventStream
from interlock.runtime.lifecycle import Lifecycle
from interlock.runtime.requests import AttemptRequests
from interlock.runtime.run_clock import KernelTimer
from interlock.runtime.shell import Shell
from interlock.runtime.submission import submitting
from interlock.runtime.turn import Turn
from tests.simulation.planting import Bugs

BUGS = Bugs()


# Journal and events


@BUGS.plant("effects do not wait for the journal", Shell, "_commit")
def _(original: Any) -> Any:
    def commit(self: Any) -> None:
        turn = self.events.take()
        todo, self._todo = self._todo, []
        pending = self.events.append(turn) if turn else None
        if pending is not None:
            self.loop.create_task(pending)
        self._perform(turn, todo)

    return commit


@BUGS.plant("events are numbered twice", EventStream, "take")
def _(original: Any) -> Any:
    def take(self: Any) -> Any:
        turn = original(self)
        self.turn = Turn(max(1, turn.last), self._epoch)
        return turn

    return take


@BUGS.plant("a listener that raises ends the run", EventStream, "publish")
def _(original: Any) -> Any:
    def publish(self: Any, events: Any) -> None:
        for listener in tuple(self._listeners):
            for event in events:
                listener(event)
        self._wake()

    return publish


# Attempts


@BUGS.plant("claims are released when an attempt is told to stop", Attempts, "stop")
def _(original: Any) -> Any:
    def stop(self: Any, stop: Any) -> None:
        original(self, stop)
        self._run.report(s.Gone(stop.task_id, stop.token))

    return stop


@BUGS.plant("who waits in mid-flight is not told to stop", Attempts, "stop")
def _(original: Any) -> Any:
    def stop(self: Any, stop: Any) -> None:
        context = self.alive.get(stop.token)
        if context is not None:
            context._backend.cancel(stop.token, self.grace)

    return stop


@BUGS.plant("an attempt that was called off begins all the same", Attempts, "close")
def _(original: Any) -> Any:
    return lambda self, token: original(self, token) if token in self.alive else None


@BUGS.plant("the number of attempts starts anew", Attempts, "start")
def _(original: Any) -> Any:
    return lambda self, start: original(self, start._replace(attempt=1))


@BUGS.plant("an attempt that is cancelled before its first step is never gone",
       Coroutines, "_report_unstarted")  # fmt: skip
def _(original: Any) -> Any:
    return lambda self, job, task: None


@BUGS.plant("who swallows a cancellation is not told again", Coroutines, "cancel")
def _(original: Any) -> Any:
    def cancel(self: Any, token: int, grace: float) -> None:
        if token in self._tasks:
            self._tasks[token].cancel()

    return cancel


@BUGS.plant("of several reports in one turn only the last counts", Shell, "report")
def _(original: Any) -> Any:
    def report(self: Any, report: Any) -> None:
        self._reports.clear()
        original(self, report)

    return report


@BUGS.plant("an earlier timer does not replace a later one", KernelTimer, "set")
def _(original: Any) -> Any:
    def set_timer(self: Any, at: float | None) -> None:
        before = self._timer
        clock = self._clock
        late = before is not None and not before.cancelled() and before.when() > clock.loop.time()
        if not (late and at is not None and clock._zero + at < before.when()):
            original(self, at)

    return set_timer


# AttemptRequests


@BUGS.plant("a slot is kept while waiting for other tasks", Shell, "ends")
def _(original: Any) -> Any:
    async def ends(self: Any, handles: Any) -> None:
        for handle in list(handles):
            await handle.settled()

    return ends


@BUGS.plant("who gives up waiting goes on without a slot", AttemptRequests, "_withdraw")
def _(original: Any) -> Any:
    async def withdraw(self: Any, context: Any, number: int) -> None:
        return None

    return withdraw


@BUGS.plant("a denied wait is never answered", AttemptRequests, "deny")
def _(original: Any) -> Any:
    return lambda self, token, number, task_id, reason: None


@BUGS.plant("questions of one task get each other's answers", AttemptRequests, "answer")
def _(original: Any) -> Any:
    def answer(self: Any, task_id: str, answer: str) -> None:
        original(self, self.questions()[0].task_id if self.questions() else task_id, answer)

    return answer


# The end of a run


@BUGS.plant("a cancellation interrupts the exit", Lifecycle, "_wait")
def _(original: Any) -> Any:
    async def wait(self: Any, condition: Any, most: float | None, **how: Any) -> None:
        if not condition():
            await asyncio.wait([self.shell.conditions.once(condition)], timeout=most)

    return wait


@BUGS.plant("leaving by an exception does not stop what runs", Lifecycle, "_stop_everything")
def _(original: Any) -> Any:
    return lambda self: None


@BUGS.plant("what is left of an earlier run holds nothing", life, "orphans_in")
def _(original: Any) -> Any:
    return lambda workspace: ()


@BUGS.plant("leaving does not wait for who is being killed", Attempts, "none_killable")
def _(original: Any) -> Any:
    return lambda self: True


@BUGS.plant("a run goes on when its caller has gone", submitting, "_run")
def _(original: Any) -> Any:
    async def run(*arguments: Any) -> Any:
        work = asyncio.ensure_future(original(*arguments))
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(work)

    return run
