"""Requests in mid-flight: a running attempt asks for more claims, a rate, other tasks or a person.

A request keeps the claims of its attempt and lends out its slot while it waits. (Only a rate is
waited for with the slot in hand, because rates come back within moments.) With several requests
open, the slot stays lent until the last of them is answered. Requests get their slot before
anything new starts, and pass reservations: what a due task waits for may be this very attempt.

An attempt that holds and waits could deadlock. So a wait that could never end is denied at once
(see `deadlock`), and children that could only start after their parent has ended are rejected.

How a request ends:

    asked ──> granted at once ───────────────────────────────> Resume
      │
      ├────> denied: it could never end ─────────────────────> Deny
      │
      └────> waits ──> what it asked for is there ──> slot ──> Resume
               └─────> withdrawn ───────────────────> slot ──> Resume, with nothing
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from interlock.errors import ChildWouldDeadlock, InvalidOption, UnknownResource, UnknownTask
from interlock.kernel import stimuli as s
from interlock.kernel.admission import REQUEST_RANK
from interlock.kernel.deadlock import find_deadlocked, would_outlive
from interlock.kernel.instructions import Deny, Resume
from interlock.kernel.records import Attempt, Entry, Request, WaitKind
from interlock.kernel.waiters import Amounts, Needs, Profile, ProxyWaiter, Traits, Waiter
from interlock.model.claim import Claim, Mode
from interlock.model.outcome import State

if TYPE_CHECKING:
    from interlock.kernel.run import KernelRun


class Requests:
    """The requests of running attempts."""

    def __init__(self, run: KernelRun) -> None:
        self._run = run
        self._arrivals = 0
        self.extended: dict[Attempt, list[Needs]] = {}
        """The places that attempts have asked for in addition to those of their task."""
        self.waiting: dict[Request, None] = {}
        """All open requests of the run."""
        self.awaited: dict[str, dict[Request, None]] = {}
        """Unfinished tasks that requests wait for, with those requests."""

    # -- asking -----------------------------------------------------------------------------

    def extend(self, stimulus: s.Extend) -> None:
        """Take in a request for more claims, and grant it at once if they are free."""
        attempt = self._open(stimulus)
        if attempt is None:
            return
        run = self._run
        _check_claims(stimulus)
        run.table.check(stimulus.task_id, stimulus.claims)
        self._reject_impossible(attempt, stimulus.claims)
        needs, amounts = run.table.resolve(stimulus.claims)
        self.extended.setdefault(attempt, []).append(needs)
        already_deadlocked = find_deadlocked(run)
        request = self._request(attempt, stimulus.request, WaitKind.CLAIMS, stimulus.claims)
        # With other requests open even a free claim can deadlock: it is held while they wait. So
        # then the test comes first.
        if len(attempt.requests) == 1 and self._try(request, needs, amounts):
            return
        request.waiter = self._waiter(request, needs, amounts, has_slot=False)
        if find_deadlocked(run) - already_deadlocked:
            run.admission.forget_profile(request.waiter.profile)
            self._deny(request, "it would wait for tasks that wait for it")
        elif self._try(request, needs, amounts):
            run.admission.forget_profile(request.waiter.profile)
        else:
            self._enqueue(request)
            self._lend(attempt)

    def take(self, stimulus: s.Take) -> None:
        """Take in a request for amounts of rates. The attempt keeps its slot."""
        attempt = self._open(stimulus)
        if attempt is None:
            return
        run = self._run
        _check_claims(stimulus)
        for claim in stimulus.claims:
            meter = run.table.meters.get(claim.resource)
            if claim.mode is not Mode.USE or meter is None or meter.window is None:
                raise UnknownResource(f"{claim.resource!r} is not a rate of this run")
        run.table.check(stimulus.task_id, stimulus.claims)
        _, amounts = run.table.resolve(stimulus.claims)
        request = self._request(attempt, stimulus.request, WaitKind.RATE, stimulus.claims)
        if not self._try(request, (), amounts):
            request.waiter = self._waiter(request, (), amounts, has_slot=True)
            self._enqueue(request)

    def used(self, stimulus: s.Used) -> None:
        """Replace what a request took of a rate by what was really used."""
        run = self._run
        if run.current(stimulus.task_id, stimulus.token, stimulus) is None:
            return
        meter = run.table.meters.get(stimulus.resource)
        if meter is None or meter.window is None:
            raise UnknownResource(f"{stimulus.resource!r} is not a rate of this run")
        if not isinstance(stimulus.amount, int) or stimulus.amount < 0:
            raise InvalidOption(f"{stimulus.amount} of {stimulus.resource!r} cannot have been used")
        for spent in meter.spent:
            taker = spent.taker
            if isinstance(taker, Request) and taker.is_it(stimulus.token, stimulus.request):
                meter.used += stimulus.amount - spent.amount
                spent.amount = stimulus.amount
                run.admission.reopen(meter)
                return

    def await_tasks(self, stimulus: s.AwaitTasks) -> None:
        """Take in a request to wait until these tasks have ended."""
        attempt = self._open(stimulus)
        if attempt is None:
            return
        run = self._run
        tasks = {each: run.unfinished(each) for each in stimulus.tasks if each not in run.ends}
        already_deadlocked = find_deadlocked(run)
        request = self._request(attempt, stimulus.request, WaitKind.TASKS)
        request.tasks = tasks
        if not tasks:
            self._return(request)
        elif would_outlive(run, attempt, tasks.values(), {}):
            self._deny(request, "it would wait for its own end, or for that of an ancestor")
        elif find_deadlocked(run) - already_deadlocked:
            self._deny(request, "what it waits for needs claims that only its own end releases")
        else:
            self._need(tasks.values())
            for task_id in tasks:
                self.awaited.setdefault(task_id, {})[request] = None
            self._lend(attempt)

    def ask(self, stimulus: s.Ask) -> None:
        """Take in a question to a person."""
        attempt = self._open(stimulus)
        if attempt is None:
            return
        request = self._request(attempt, stimulus.request, WaitKind.PERSON)
        request.question = stimulus.question
        self._lend(attempt)
        if attempt.entry.state is State.RUNNING:
            self._run.enter(attempt.entry, State.NEEDS_YOU, stimulus.question)

    def answer(self, stimulus: s.Answer) -> None:
        """Take in an answer: the attempt goes on as soon as there is a slot."""
        entry = self._run.unfinished(stimulus.task_id)
        request = entry.attempt.requests.get(stimulus.request) if entry.attempt else None
        if (
            request is None
            or request.waits_for is not WaitKind.PERSON
            or request.waiter is not None
        ):
            raise UnknownTask(f"task {stimulus.task_id!r} has no open question {stimulus.request}")
        self._return(request)

    def withdraw(self, stimulus: s.Withdraw) -> None:
        """Give up a request: what is left to wait for is the slot, if that was lent out."""
        run = self._run
        attempt = run.current(stimulus.task_id, stimulus.token, stimulus)
        if attempt is None:
            return
        request = attempt.requests.get(stimulus.request)
        if request is None:
            # Its answer crossed this on the way. The runtime waits for one that comes after.
            run.out.append(Resume(stimulus.task_id, stimulus.token, stimulus.request, (), 0))
            return
        waiter, wait = request.waiter, request.waits_for
        request.waits_for = WaitKind.SLOT
        self._leave_needs_you(attempt, "withdrawn")
        if waiter is not None and wait not in (WaitKind.CLAIMS, WaitKind.RATE):
            return  # It already waits only for the slot, and keeps its position in the queue.
        self._leave(request)
        if wait is WaitKind.CLAIMS and waiter is not None:
            self.extended[attempt].remove(waiter.needs)
            run.table.forget(waiter.needs)
        request.claims, request.tasks, request.waiter = (), {}, None
        self._return(request)

    # -- answering --------------------------------------------------------------------------

    def granted(self, request: Request) -> None:
        """Admission has chosen a request: grant what it waits for, with a slot."""
        assert request.waiter is not None
        self._run.admission.take(request.attempt, request.waiter, self._run.now)
        request.waiter = None
        self._resume(request)
        self._reseat(request.attempt)

    def task_ended(self, task_id: str) -> None:
        """A task has its outcome: requests that wait for it have one less to wait for."""
        for request in self.awaited.pop(task_id, ()):
            del request.tasks[task_id]
            if not request.tasks:
                self._return(request)

    def abandon(self, attempt: Attempt) -> None:
        """The outcome of an attempt is decided: drop its open requests."""
        requests, attempt.requests = attempt.requests, {}
        for request in requests.values():
            self.waiting.pop(request, None)
            self._leave(request)

    def forget(self, attempt: Attempt) -> None:
        """An attempt has exited: forget the places it was granted in mid-flight."""
        for needs in self.extended.pop(attempt, ()):
            self._run.table.forget(needs)

    def reject_deadlocked_children(self, parent: Attempt, batch: Mapping[str, Entry]) -> None:
        """Raise if children could only start after their parent has ended; drop the batch."""
        run = self._run
        if would_outlive(run, parent, batch.values(), batch) or (
            find_deadlocked(run, parent, batch) - find_deadlocked(run)
        ):
            for entry in batch.values():
                run.table.forget(entry.needs)
            raise ChildWouldDeadlock(
                f"children {', '.join(map(repr, batch))} of task {parent.entry.task.id!r} could "
                "only start after it has ended, but it would wait for them; submit them without "
                "a parent, after it, or claim less"
            )

    # -- inside -----------------------------------------------------------------------------

    def _open(self, stimulus: s.Extend | s.Take | s.AwaitTasks | s.Ask) -> Attempt | None:
        """Return the attempt that may open this request; None if it was refused."""
        attempt = self._run.current(stimulus.task_id, stimulus.token, stimulus)
        if attempt is not None and stimulus.request in attempt.requests:
            raise InvalidOption(
                f"task {stimulus.task_id!r} already has an open request {stimulus.request}"
            )
        return attempt

    def _leave(self, request: Request) -> None:
        """Take a request out of the queue and from the tasks it waits for."""
        for task_id in request.tasks:
            del self.awaited[task_id][request]
        if request.waiter is not None:
            self._run.admission.withdraw(request.waiter)

    def _leave_needs_you(self, attempt: Attempt, why: str) -> None:
        """Leave the state `needs_you` if no question is left open."""
        asks = any(each.waits_for is WaitKind.PERSON for each in attempt.requests.values())
        if attempt.entry.state is State.NEEDS_YOU and not asks:
            self._run.enter(attempt.entry, State.RUNNING, why)

    def _need(self, entries: Iterable[Entry]) -> None:
        """Let these tasks, and those they come after, pass reservations and start in a drain.

        An attempt that holds claims waits for them; to hold them back could be a deadlock.
        """
        todo = list(entries)
        while todo:
            entry = todo.pop()
            if entry.extras.is_awaited:
                continue
            entry.own.is_awaited = True
            if entry.waiter is not None:
                self._run.admission.make_exempt(entry.waiter)
            todo += filter(None, map(self._run.entries.get, entry.task.after))

    def _request(
        self, attempt: Attempt, number: int, wait: WaitKind, claims: tuple[Claim, ...] = ()
    ) -> Request:
        request = Request(attempt, number, wait, self._run.now)
        request.claims = claims
        attempt.requests = {**attempt.requests, number: request}
        self.waiting[request] = None
        return request

    def _waiter(self, request: Request, needs: Needs, amounts: Amounts, has_slot: bool) -> Waiter:
        admission = self._run.admission
        kin = request.attempt.ancestry()
        profile = admission.profile(Traits(amounts, kin, is_request=True, has_slot=has_slot))
        return ProxyWaiter(request, needs, profile, admission.turn)

    def _enqueue(self, request: Request) -> None:
        assert request.waiter is not None
        self._arrivals += 1
        self._run.admission.enqueue(request.waiter, REQUEST_RANK, self._arrivals)

    def _try(self, request: Request, needs: Needs, amounts: Amounts) -> bool:
        """Grant a request at once, if everything it asks for is free."""
        # This profile is not registered: it only serves to look.
        traits = Traits(amounts, request.attempt.ancestry(), is_request=True, has_slot=True)
        waiter = ProxyWaiter(request, needs, Profile(traits), self._run.admission.turn)
        if waiter.profile.short(waiter) or self._run.table.blocker(waiter):
            return False
        self._run.admission.take(request.attempt, waiter, self._run.now)
        self._resume(request)
        return True

    def _return(self, request: Request) -> None:
        """What a request waited for is there: answer it, or let it wait for its slot."""
        if self._needs_no_slot(request):
            self._resume(request)
            self._reseat(request.attempt)
        else:
            request.waiter = self._waiter(request, (), (), has_slot=False)
            self._enqueue(request)

    def _resume(self, request: Request) -> None:
        """Answer a request with all it asked for."""
        attempt = request.attempt
        self._close(request)
        run, entry = self._run, attempt.entry
        self._leave_needs_you(attempt, "answered")
        added = request.claims if request.waits_for is WaitKind.CLAIMS else ()
        attempt.extra += tuple((claim, run.now) for claim in added)
        token = run.new_token() if added else 0
        run.out.append(Resume(entry.task.id, attempt.token, request.number, added, token))

    def _close(self, request: Request) -> None:
        del self.waiting[request]
        attempt = request.attempt
        others = attempt.requests.values()
        attempt.requests = {each.number: each for each in others if each is not request}

    def _deny(self, request: Request, reason: str) -> None:
        attempt = request.attempt
        self._close(request)
        self._run.out.append(Deny(attempt.entry.task.id, attempt.token, request.number, reason))

    def _lend(self, attempt: Attempt) -> None:
        """Lend out the slot of an attempt that waits."""
        if attempt.holds_slot:
            self._run.admission.lend_slot(attempt)
        self._reseat(attempt)

    def _needs_no_slot(self, request: Request) -> bool:
        """Whether a request may be answered without a slot: only the last open one brings it back.

        An agent with several requests open may have nothing to do after one answer but wait for
        the others. With a slot in hand it could keep those very tasks from running.
        """
        others = request.attempt.requests.values()
        return request.attempt.holds_slot or any(
            other is not request and other.waits_for is not WaitKind.RATE for other in others
        )

    def _reseat(self, attempt: Attempt) -> None:
        """A request of an attempt began or ended: others may need a slot no longer, or again."""
        admission = self._run.admission
        for request in list(attempt.requests.values()):
            has_slot = request.waits_for is WaitKind.RATE or self._needs_no_slot(request)
            waiter = request.waiter
            if waiter is None or waiter.item is None or waiter.profile.has_slot is has_slot:
                continue
            admission.withdraw(waiter)
            request.waiter = self._waiter(request, waiter.needs, waiter.profile.amounts, has_slot)
            self._enqueue(request)

    def _reject_impossible(self, attempt: Attempt, claims: Iterable[Claim]) -> None:
        """Raise for claims that, with what the attempt holds, exceed a capacity for ever."""
        meters = self._run.table.meters
        for claim in claims:
            meter = meters.get(claim.resource) if not claim.is_path else None
            if meter is None or meter.window is not None:
                continue
            held = attempt.amounts.get(meter, 0)
            for request in attempt.requests.values():
                amounts = request.waiter.profile.amounts if request.waiter is not None else ()
                held += sum(n or meter.most for m, n in amounts if m is meter)
            if held and (claim.mode is Mode.EXCLUSIVE or held + claim.amount > meter.most):
                raise InvalidOption(
                    f"task {attempt.entry.task.id!r} holds or waits for {held} of "
                    f"{meter.name!r} and asks for {claim}, but there are only {meter.most}"
                )


def _check_claims(stimulus: s.Extend | s.Take) -> None:
    if not isinstance(stimulus.claims, tuple) or not all(
        isinstance(claim, Claim) for claim in stimulus.claims
    ):
        raise InvalidOption(f"claims come as a tuple of claims, not as {stimulus.claims!r}")
