"""Planted bugs: attempts that wait in mid-flight, also for several things at once."""

from __future__ import annotations

from typing import Any

from interlock.kernel import midflight as midflight_module
from interlock.kernel.admission import Admission
from interlock.kernel.midflight import Midflight
from interlock.model.outcome import State
from interlock.testing.planting import plant


@plant("a circle of extensions is not denied", midflight_module, "who_hangs")
def _(original: Any) -> Any:
    return lambda *arguments: frozenset()


@plant("a wait for an ancestor is not denied", midflight_module, "outlived")
def _(original: Any) -> Any:
    return lambda *arguments: False


@plant("only parents hear that a task they wait for has ended", Midflight, "task_ended")
def _(original: Any) -> Any:
    def task_ended(self: Any, task_id: str) -> None:
        waits = self.awaited.get(task_id, ())
        for request in [r for r in waits if task_id not in (r.attempt.entry.extras.children or {})]:
            del waits[request], request.tasks[task_id]
        original(self, task_id)

    return task_ended


@plant("what is waited for is held back like anything else", Admission, "let_pass")
def _(original: Any) -> Any:
    return lambda self, waiter: None


@plant("a wait for several tasks is over with the first of them", Midflight, "task_ended")
def _(original: Any) -> Any:
    def task_ended(self: Any, task_id: str) -> None:
        for request in self.awaited.get(task_id, ()):
            for other in [name for name in request.tasks if name != task_id]:
                del request.tasks[other], self.awaited[other][request]
        original(self, task_id)

    return task_ended


@plant("whoever asks a person keeps the slot", Midflight, "_lend")
def _(original: Any) -> Any:
    def lend(self: Any, attempt: Any) -> None:
        if attempt.entry.state is not State.RUNNING or any(
            request.question for request in attempt.requests.values()
        ):
            return
        original(self, attempt)

    return lend


@plant("whoever was answered goes on without a slot", Midflight, "_return")
def _(original: Any) -> Any:
    return lambda self, request: self._resume(request)


@plant("two waits of one attempt take two slots", Midflight, "granted")
def _(original: Any) -> Any:
    def granted(self: Any, request: Any) -> None:
        self._run.admission.slots.used += len(request.attempt.requests) > 1
        original(self, request)

    return granted


@plant("the waits of an attempt do not hear what became of its slot", Midflight, "_reseat")
def _(original: Any) -> Any:
    return lambda self, attempt: None


@plant("the end of an attempt leaves one of its waits in line", Midflight, "abandon")
def _(original: Any) -> Any:
    def abandon(self: Any, attempt: Any) -> None:
        if len(attempt.requests) > 1:
            attempt.requests.popitem()
        original(self, attempt)

    return abandon
