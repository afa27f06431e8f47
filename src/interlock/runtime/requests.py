"""Requests of running attempts: more claims, a rate, the end of tasks, an answer, a pause.

An attempt that asks for something while it runs gets a future. The kernel decides when the request
is granted; its instruction `Resume` or `Deny` resolves the future, once it is in the journal. An
attempt that waits lends out its slot (except for a rate), and gets it back before it goes on.

Each request has a number. Futures are found by the attempt's fencing token and that number, so an
answer to an attempt that is over finds nothing and has no effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

from interlock.errors import AttemptOver, UnknownTask, WouldDeadlock
from interlock.kernel import stimuli as s
from interlock.model.claim import Claim, uses
from interlock.model.stable_names import stable_name
from interlock.model.task import Task
from interlock.runtime.claim_paths import WorkspacePaths
from interlock.runtime.kernel_driver import KernelDriver
from interlock.runtime.limits.rates import Rates
from interlock.runtime.loop_thread import LoopThread
from interlock.runtime.recovery.known_tasks import KnownTasks


@stable_name("data.question")
class Question(NamedTuple):
    """What a task asks a person; answer it with `rt.answer(task_id, text)`."""

    task_id: str
    question: str
    number: int


class Requester(Protocol):
    """The attempt that makes a request."""

    @property
    def task(self) -> Task: ...
    @property
    def token(self) -> int: ...

    def check_open(self) -> None:
        """Raise AttemptOver if the attempt may have no more effects."""

    def cancelled(self) -> bool:
        """Whether the attempt was told to stop."""


class RequestRun(KernelDriver, Protocol):
    """What requests need of the run."""

    @property
    def loop_thread(self) -> LoopThread: ...
    @property
    def workspace(self) -> WorkspacePaths: ...
    @property
    def rates(self) -> Rates: ...
    @property
    def known_tasks(self) -> KnownTasks | None: ...


class RateUse:
    """An amount that was taken from a rate; `used()` corrects it."""

    __slots__ = ("_rate", "_request", "_requester", "_run")

    def __init__(self, requester: Requester, run: RequestRun, request: int, rate: str) -> None:
        self._requester = requester
        self._run = run
        self._request = request
        self._rate = rate

    def used(self, *, requests: int | None = None, tokens: int | None = None) -> None:
        """Replace the amount that was taken by the amount that was really used."""
        self._requester.check_open()
        for resource, amount in ((self._rate, requests), (f"{self._rate}.tokens", tokens)):
            if amount is not None:
                task_id, token = self._requester.task.id, self._requester.token
                stimulus = s.Used(task_id, token, self._request, resource, amount)
                self._run.loop_thread.call(self._run.take_in, stimulus)


class AttemptRequests:
    """The open requests of all attempts of a run."""

    def __init__(self, run: RequestRun) -> None:
        self._run = run
        self._numbers = 0
        self._open: dict[int, dict[int, asyncio.Future[None]]] = {}
        """By token of the attempt, then by number of the request."""
        self._questions: dict[int, Question] = {}
        self._answers: dict[int, str] = {}
        self._unheard: WeakKeyDictionary[Requester, list[tuple[str, str]]] = WeakKeyDictionary()
        """Questions and answers that came when the attempt had just stopped waiting for them."""
        self._reruns: set[int] = set()
        """Questions about tasks that were interrupted."""

    async def request(self, requester: Requester, make: Callable[[int], s.Stimulus]) -> int:
        """Ask the kernel for something and wait until it is granted; returns the request's number.

        An attempt that stops waiting (a timeout around the `await`) goes on only once it has its
        slot back: an attempt never works without one.
        """
        requester.check_open()
        number = self._number()
        granted = self._add(requester, number)
        try:
            # The future exists before the kernel decides: it may grant the request at once.
            self._run.take_in(make(number))
            await granted
        except asyncio.CancelledError:
            await self._withdraw(requester, number)
            raise
        finally:
            self._drop(requester, number)
        return number

    async def _withdraw(self, requester: Requester, number: int) -> None:
        if requester.cancelled() or self._is_over(requester, number):
            return
        returned = self._add(requester, number)
        self._run.take_in(s.Withdraw(requester.task.id, requester.token, number))
        while not returned.done():
            try:
                await asyncio.shield(returned)
            except asyncio.CancelledError:
                # Cancelled once more while it waits for its slot. It goes on waiting, unless it
                # was the attempt itself that was told to stop: that one needs no slot.
                if requester.cancelled():
                    return
            except AttemptOver:
                return

    def _is_over(self, requester: Requester, number: int) -> bool:
        """Whether the request was granted at the moment at which the wait was given up."""
        request = self._open.get(requester.token, {}).get(number)
        return request is None or (request.done() and not request.cancelled())

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _add(self, requester: Requester, number: int) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open.setdefault(requester.token, {})[number] = future
        return future

    def _drop(self, requester: Requester, number: int) -> None:
        self._questions.pop(number, None)
        requests = self._open.get(requester.token)
        if requests is not None:
            requests.pop(number, None)
            if not requests:
                del self._open[requester.token]

    # -- decisions of the kernel ------------------------------------------------------------

    def resume(self, token: int, number: int) -> None:
        """The request was granted."""
        request = self._open.get(token, {}).get(number)
        if request is not None and not request.done():
            request.set_result(None)

    def deny(self, token: int, number: int, task_id: str, reason: str) -> None:
        """The request can never be granted."""
        self._fail(token, number, WouldDeadlock(f"task {task_id!r} may not wait: {reason}"))

    def end(self, token: int, over: Exception) -> None:
        """An attempt was told to stop: its requests are void."""
        for number in list(self._open.get(token, ())):
            self._fail(token, number, over)

    def fail_all(self, error: BaseException) -> None:
        """The run decides nothing more: no request will be answered."""
        for token, requests in list(self._open.items()):
            for number in list(requests):
                self._fail(token, number, error)

    def _fail(self, token: int, number: int, error: BaseException) -> None:
        request = self._open.get(token, {}).get(number)
        if request is not None and not request.done():
            request.set_exception(error)
            # If the waiting code was cancelled meanwhile it will not look at the exception, and
            # asyncio would log it as never retrieved.
            request.exception()

    # -- claims, rates, tasks, time ---------------------------------------------------------

    async def extend(self, requester: Requester, claims: tuple[Claim, ...]) -> None:
        """Wait for more claims."""
        task_id, token = requester.task.id, requester.token
        # Resolved now, not when the task was submitted: links and folders come and go.
        wanted = self._run.workspace.resolve(task_id, claims, {})
        await self.request(requester, lambda number: s.Extend(task_id, token, number, wanted))

    async def take(self, requester: Requester, rate: str, requests: int, tokens: int) -> RateUse:
        """Wait until a rate has enough left."""
        limit = self._run.rates.named(rate)
        wanted = []
        if limit.requests is not None and requests:
            wanted.append(uses(rate, requests))
        if limit.tokens is not None and tokens:
            wanted.append(uses(f"{rate}.tokens", tokens))
        task_id, token, claims = requester.task.id, requester.token, tuple(wanted)
        number = await self.request(
            requester, lambda number: s.Take(task_id, token, number, claims)
        )
        return RateUse(requester, self._run, number, rate)

    async def tasks_end(self, requester: Requester, task_ids: tuple[str, ...]) -> None:
        """Wait until all of these tasks have ended."""
        task_id, token = requester.task.id, requester.token
        await self.request(requester, lambda number: s.AwaitTasks(task_id, token, number, task_ids))

    async def sleep(self, requester: Requester, duration: float) -> None:
        """Wait some time, or until the attempt is told to stop. The kernel need not know."""
        requester.check_open()
        number = self._number()
        passed = self._add(requester, number)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(duration, self.resume, requester.token, number)
        try:
            await passed
        finally:
            timer.cancel()
            self._drop(requester, number)

    # -- questions to people ----------------------------------------------------------------

    async def ask(self, requester: Requester, question: str) -> str:
        """Wait for the answer of a person."""
        requester.check_open()
        answered = self._answered_before(requester, question)
        if answered is not None:
            return answered

        request = 0

        def asked(number: int) -> s.Stimulus:
            nonlocal request
            request = number
            self._questions[number] = Question(requester.task.id, question, number)
            return s.Ask(requester.task.id, requester.token, number, question)

        try:
            await self.request(requester, asked)
        except BaseException:
            # The answer may have come at the very moment at which the agent stopped waiting, and
            # the person was told that it arrived. It is kept for the next time the attempt asks.
            if request in self._answers:
                unheard = self._unheard.setdefault(requester, [])
                unheard.append((question, self._answers.pop(request)))
            raise
        return self._answers.pop(request)

    def _answered_before(self, requester: Requester, question: str) -> str | None:
        """An answer that was given already: to an attempt that was interrupted and asked the same.

        Or to this attempt, when it had just stopped waiting.
        """
        remembered = self._run.known_tasks
        before = [] if remembered is None else remembered.answers(requester.task.id)
        for answers in (before, self._unheard.get(requester, [])):
            for index, (asked, answer) in enumerate(answers):
                if asked == question:
                    del answers[index]
                    return answer
        return None

    def ask_to_rerun(self, task_id: str) -> None:
        """Ask a person whether an interrupted task may run again; it is paused meanwhile."""
        number = self._number()
        self._questions[number] = Question(task_id, "It was interrupted. Run it again?", number)
        self._reruns.add(number)

    def questions(self) -> tuple[Question, ...]:
        """Questions that have no answer yet, oldest first."""
        return tuple(each for each in self._questions.values() if each.number not in self._answers)

    def answer(self, task_id: str, answer: str) -> None:
        """Answer the oldest open question of a task."""
        for question in self.questions():
            if question.task_id == task_id:
                self._answer(question, answer)
                return
        raise UnknownTask(f"task {task_id!r} has no open question")

    def _answer(self, question: Question, answer: str) -> None:
        task_id, number = question.task_id, question.number
        if number not in self._reruns:
            # First the kernel: if it refuses, the question stays open.
            self._run.take_in(s.Answer(task_id, number, answer))
            self._answers[number] = answer
            return
        if answer.strip().lower() in ("y", "yes"):
            self._run.take_in(s.Unpause(task_id))
        else:
            self._run.take_in(
                s.Cancel(task_id, f"it was interrupted, and is not to run again: {answer}")
            )
        self._reruns.remove(number)
        del self._questions[number]
