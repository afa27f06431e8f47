"""Requests of running attempts: more claims, a rate, the end of tasks, an answer, a pause."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from interlock.errors import AttemptOver, UnknownTask, WouldDeadlock
from interlock.kernel import stimuli as s
from interlock.model.claim import Claim, uses
from interlock.runtime.context import CURRENT, TaskContext

if TYPE_CHECKING:
    from interlock.runtime.handle import Handle
    from interlock.runtime.shell import Shell


class Question(NamedTuple):
    """What a task asks a person; answer it with `rt.answer(task_id, text)`."""

    task_id: str
    question: str
    number: int


class RateUse:
    """What was taken from a rate."""

    __slots__ = ("_context", "_rate", "_request", "_shell")

    def __init__(self, context: TaskContext, shell: Shell, request: int, rate: str) -> None:
        self._context = context
        self._shell = shell
        self._request = request
        self._rate = rate

    def used(self, *, requests: int | None = None, tokens: int | None = None) -> None:
        """Replace what was taken by what was really used."""
        self._context.check_open()
        for resource, amount in ((self._rate, requests), (f"{self._rate}.tokens", tokens)):
            if amount is not None:
                task_id, token = self._context.task.id, self._context.token
                stimulus = s.Used(task_id, token, self._request, resource, amount)
                self._shell.loop_thread.call(self._shell.take_in, stimulus)


class AttemptRequests:
    """Who waits for what; each wait is a future that the shell's instructions resolve."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._numbers = 0
        self._open: dict[int, dict[int, asyncio.Future[None]]] = {}
        """By token of the attempt, then by number of the request."""
        self._questions: dict[int, Question] = {}
        self._answers: dict[int, str] = {}
        self._unheard: WeakKeyDictionary[TaskContext, list[tuple[str, str]]] = WeakKeyDictionary()
        """Questions and answers that came when the attempt did not wait for them any more."""
        self._reruns: set[int] = set()
        """Questions about tasks that were cut off."""

    async def request(self, context: TaskContext, make: Callable[[int], s.Stimulus]) -> int:
        """Ask the kernel for something and wait until it is there; the number of the request.

        Whoever gives up waiting (a timeout around the `await`) goes on only when it has its slot
        back: an attempt never works without one.
        """
        context.check_open()
        number = self._number()
        granted = self._add(context, number)
        try:
            self._shell.take_in(make(number))
            await granted
        except asyncio.CancelledError:
            await self._withdraw(context, number)
            raise
        finally:
            self._drop(context, number)
        return number

    async def _withdraw(self, context: TaskContext, number: int) -> None:
        if context.cancelled() or self._is_over(context, number):
            return
        returned = self._add(context, number)
        self._shell.take_in(s.Withdraw(context.task.id, context.token, number))
        while not returned.done():
            try:
                await asyncio.shield(returned)
            except asyncio.CancelledError:
                if context.cancelled():
                    return
            except AttemptOver:
                return

    def _is_over(self, context: TaskContext, number: int) -> bool:
        """Whether what was asked for came at the moment the wait was given up."""
        wait = self._open.get(context.token, {}).get(number)
        return wait is None or (wait.done() and not wait.cancelled())

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _add(self, context: TaskContext, number: int) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._shell.loop.create_future()
        self._open.setdefault(context.token, {})[number] = future
        return future

    def _drop(self, context: TaskContext, number: int) -> None:
        self._questions.pop(number, None)
        waits = self._open.get(context.token)
        if waits is not None:
            waits.pop(number, None)
            if not waits:
                del self._open[context.token]

    # -- answers ----------------------------------------------------------------------------

    def resume(self, token: int, number: int) -> None:
        """What was asked for is there."""
        wait = self._open.get(token, {}).get(number)
        if wait is not None and not wait.done():
            wait.set_result(None)

    def deny(self, token: int, number: int, task_id: str, reason: str) -> None:
        """What was asked for cannot be had."""
        self._fail(token, number, WouldDeadlock(f"task {task_id!r} may not wait: {reason}"))

    def end(self, token: int, over: Exception) -> None:
        """An attempt was told to stop: it waits for nothing any more."""
        for number in list(self._open.get(token, ())):
            self._fail(token, number, over)

    def fail_all(self, error: BaseException) -> None:
        """Nobody will answer any more."""
        for token, waits in list(self._open.items()):
            for number in list(waits):
                self._fail(token, number, error)

    def _fail(self, token: int, number: int, error: BaseException) -> None:
        wait = self._open.get(token, {}).get(number)
        if wait is not None and not wait.done():
            wait.set_exception(error)
            wait.exception()  # whoever was cancelled meanwhile will not look at it

    # -- claims and rates -------------------------------------------------------------------

    async def extend(self, context: TaskContext, claims: tuple[Claim, ...]) -> None:
        """Wait for more claims."""
        task_id = context.task.id
        wanted = self._shell.workspace.resolve(task_id, claims, {})
        await self.request(context, lambda number: s.Extend(task_id, context.token, number, wanted))

    async def take(self, context: TaskContext, rate: str, requests: int, tokens: int) -> RateUse:
        """Wait until a rate has enough left."""
        limit = self._shell.rates.named(rate)
        wanted = []
        if limit.requests is not None and requests:
            wanted.append(uses(rate, requests))
        if limit.tokens is not None and tokens:
            wanted.append(uses(f"{rate}.tokens", tokens))
        task_id, claims = context.task.id, tuple(wanted)
        number = await self.request(
            context, lambda number: s.Take(task_id, context.token, number, claims)
        )
        return RateUse(context, self._shell, number, rate)

    # -- people -----------------------------------------------------------------------------

    async def ask(self, context: TaskContext, question: str) -> str:
        """Wait for the answer of a person."""
        context.check_open()
        answered = self._answered_before(context, question)
        if answered is not None:
            return answered

        request = 0

        def asked(number: int) -> s.Stimulus:
            nonlocal request
            request = number
            self._questions[number] = Question(context.task.id, question, number)
            return s.Ask(context.task.id, context.token, number, question)

        try:
            await self.request(context, asked)
        except BaseException:
            # Somebody may have answered at the very moment at which the agent stopped waiting, and
            # was told that the answer arrived: it is for the next one who asks the same.
            if request in self._answers:
                unheard = self._unheard.setdefault(context, [])
                unheard.append((question, self._answers.pop(request)))
            raise
        return self._answers.pop(request)

    def _answered_before(self, context: TaskContext, question: str) -> str | None:
        """What a person answered an attempt that was cut off, if this one asks the same.

        Or answered this one, when it had just stopped waiting.
        """
        remembered = self._shell.remembered
        before = [] if remembered is None else remembered.answers(context.task.id)
        for answers in (before, self._unheard.get(context, [])):
            for index, (asked, answer) in enumerate(answers):
                if asked == question:
                    del answers[index]
                    return answer
        return None

    def ask_to_rerun(self, task_id: str) -> None:
        """Ask a person whether a task that was cut off runs again; it is paused meanwhile."""
        number = self._number()
        self._questions[number] = Question(task_id, "It was cut off. Run it again?", number)
        self._reruns.add(number)

    def questions(self) -> tuple[Question, ...]:
        """What is asked and has no answer yet, oldest first."""
        return tuple(each for each in self._questions.values() if each.number not in self._answers)

    def answer(self, task_id: str, answer: str) -> None:
        """Answer the oldest open question of a task."""
        for question in self.questions():
            if question.task_id == task_id:
                self._answer(question, answer)
                return
        raise UnknownTask(f"task {task_id!r} has asked nothing that is still to be answered")

    def _answer(self, question: Question, answer: str) -> None:
        task_id, number = question.task_id, question.number
        if number not in self._reruns:
            self._shell.take_in(s.Answer(task_id, number, answer))
            self._answers[number] = answer
            return
        if answer.strip().lower() in ("y", "yes"):
            self._shell.take_in(s.Unpause(task_id))
        else:
            self._shell.take_in(
                s.Cancel(task_id, f"it was cut off, and not to run again: {answer}")
            )
        self._reruns.remove(number)
        del self._questions[number]

    # -- time and tasks ---------------------------------------------------------------------

    async def sleep(self, context: TaskContext, duration: float) -> None:
        """Wait some time, or until the attempt is told to stop."""
        context.check_open()
        number = self._number()
        passed = self._add(context, number)
        timer = self._shell.loop.call_later(duration, self.resume, context.token, number)
        try:
            await passed
        finally:
            timer.cancel()
            self._drop(context, number)

    async def ends(self, handles: Sequence[Handle[Any]]) -> None:
        """Wait until all these tasks have their outcomes; inside a task, with its slot lent out."""
        context = CURRENT.get(None)
        # An attempt that is over and not gone may not wait either: what it waits for may wait for
        # what it holds, and nobody can wake a thread.
        if context is not None and self._shell.attempts.alive.get(context.token) is context:
            ids = tuple(handle.task.id for handle in handles if handle.outcome is None)
            if ids:
                await self.request(
                    context,
                    lambda number: s.AwaitTasks(context.task.id, context.token, number, ids),
                )
            return
        for handle in handles:
            if handle.outcome is None:
                await handle.settled()
