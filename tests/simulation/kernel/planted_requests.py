"""Planted bugs: requests in mid-flight, several of them at once included."""

from __future__ import annotations

from typing import Any

from interlock.kernel import requests as requests_module
from interlock.kernel.admission import Admission
from interlock.kernel.records import WaitKind
from interlock.kernel.requests import Requests
from interlock.model.outcome import State
from tests.simulation.planting import Bugs

BUGS = Bugs()


@BUGS.plant("a circle of extensions is not denied", requests_module, "find_deadlocked")
def _(original: Any) -> Any:
    return lambda *arguments: frozenset()


@BUGS.plant("a wait for an ancestor is not denied", requests_module, "would_outlive")
def _(original: Any) -> Any:
    return lambda *arguments: False


@BUGS.plant("only parents hear that a task they wait for has ended", Requests, "task_ended")
def _(original: Any) -> Any:
    def task_ended(self: Any, task_id: str) -> None:
        waits = self.awaited.get(task_id, ())
        for request in [r for r in waits if task_id not in (r.attempt.entry.extras.children or {})]:
            del waits[request], request.tasks[task_id]
        original(self, task_id)

    return task_ended


@BUGS.plant("what is waited for is held back like anything else", Admission, "make_exempt")
def _(original: Any) -> Any:
    return lambda self, waiter: None


@BUGS.plant("a wait for several tasks is over with the first of them", Requests, "task_ended")
def _(original: Any) -> Any:
    def task_ended(self: Any, task_id: str) -> None:
        for request in self.awaited.get(task_id, ()):
            for other in [name for name in request.tasks if name != task_id]:
                del request.tasks[other], self.awaited[other][request]
        original(self, task_id)

    return task_ended


@BUGS.plant("whoever asks a person keeps the slot", Requests, "_lend")
def _(original: Any) -> Any:
    def lend(self: Any, attempt: Any) -> None:
        if attempt.entry.state is not State.RUNNING or any(
            request.question for request in attempt.requests.values()
        ):
            return
        original(self, attempt)

    return lend


@BUGS.plant("whoever was answered goes on without a slot", Requests, "_return")
def _(original: Any) -> Any:
    return lambda self, request: self._resume(request)


@BUGS.plant("two waits of one attempt take two slots", Requests, "granted")
def _(original: Any) -> Any:
    def granted(self: Any, request: Any) -> None:
        self._run.admission.slots.used += len(request.attempt.requests) > 1
        original(self, request)

    return granted


@BUGS.plant("the waits of an attempt do not hear what became of its slot", Requests, "_reseat")
def _(original: Any) -> Any:
    return lambda self, attempt: None


@BUGS.plant("the end of an attempt leaves one of its waits in line", Requests, "abandon")
def _(original: Any) -> Any:
    def abandon(self: Any, attempt: Any) -> None:
        if len(attempt.requests) > 1:
            attempt.requests.popitem()
        original(self, attempt)

    return abandon


@BUGS.plant("whoever withdraws a wait goes on without a slot", Requests, "_return")
def _(original: Any) -> Any:
    def go_on(self: Any, request: Any) -> None:
        if request.waits_for is WaitKind.SLOT:
            self._resume(request)
        else:
            original(self, request)

    return go_on


@BUGS.plant("claims that were withdrawn are granted all the same", Requests, "withdraw")
def _(original: Any) -> Any:
    def withdraw(self: Any, stimulus: Any) -> None:
        waits = [r for r in self.waiting if r.is_it(stimulus.token, stimulus.request)]
        if not any(request.waits_for is WaitKind.CLAIMS for request in waits):
            original(self, stimulus)

    return withdraw


@BUGS.plant("a withdrawn extension is said to be granted", Requests, "withdraw")
def _(original: Any) -> Any:
    def withdraw(self: Any, stimulus: Any) -> None:
        waits = [r for r in self.waiting if r.is_it(stimulus.token, stimulus.request)]
        claims = [
            (request, request.claims) for request in waits if request.waits_for is WaitKind.CLAIMS
        ]
        original(self, stimulus)
        for request, asked in claims:
            request.waits_for, request.claims = WaitKind.CLAIMS, asked

    return withdraw


@BUGS.plant("a question that was withdrawn still needs somebody", Requests, "_leave_needs_you")
def _(original: Any) -> Any:
    def ask_no_more(self: Any, attempt: Any, why: str) -> None:
        if why != "withdrawn":
            original(self, attempt, why)

    return ask_no_more


@BUGS.plant("who withdraws what was just answered hears nothing", Requests, "withdraw")
def _(original: Any) -> Any:
    def withdraw(self: Any, stimulus: Any) -> None:
        if any(request.is_it(stimulus.token, stimulus.request) for request in self.waiting):
            original(self, stimulus)

    return withdraw
