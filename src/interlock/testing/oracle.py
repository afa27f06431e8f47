"""The judge: told of every stimulus and every instruction, it says which rule was broken.

It keeps its own shadow of the world. First the stimulus is taken as a fact (what is gone is
gone), then each instruction has to be one that the rules allow at that point, and afterwards
the rules about the whole picture are checked (`rules.py`, `fairness.py`, `answers.py`). Numbers
such as S5 are the statements of the reliability table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, assert_never

from interlock.kernel import instructions as told
from interlock.kernel import stimuli as event
from interlock.model.claim import Claim
from interlock.model.limits import Rate
from interlock.model.outcome import State
from interlock.testing import answers, fairness, rules
from interlock.testing.shadow import Attempt, Group, Item, Request, Shadow, Taken, Violation

if TYPE_CHECKING:
    from interlock.kernel.kernel import Kernel

REPORTS = (
    event.Ended,
    event.Gone,
    event.Extend,
    event.Take,
    event.Used,
    event.AwaitChildren,
    event.Ask,
)
"""What an attempt says, and may say only while it has the right to."""


class Oracle:
    """Judges one kernel from outside. `seen` counts what was exercised."""

    def __init__(
        self,
        slots: int = 8,
        capacities: Mapping[str, int] | None = None,
        rates: Mapping[str, Rate] | None = None,
    ) -> None:
        self.shadow = Shadow(slots, capacities or {}, rates or {})
        self.seen: Counter[str] = Counter()
        self._turn = rules.Turn(event.Tick())

    def observe(
        self,
        stimulus: event.Stimulus,
        now: float,
        instructions: Iterable[told.Instruction],
        kernel: Kernel | None = None,
    ) -> None:
        """Take note of one `handle()` and check every rule; without a kernel, what it said."""
        shadow = self.shadow
        shadow.step += 1
        shadow.now = now
        self._turn = rules.Turn(stimulus)
        told_now = list(instructions)
        self.seen[type(stimulus).__name__] += 1
        parts = stimulus.reports if isinstance(stimulus, event.Reports) else (stimulus,)
        fresh = False
        for part in parts:
            if self._is_fresh(part):
                fresh = True
                self._happened(part)
        if not fresh:
            self.seen["stale report"] += 1
            extra = [i for i in told_now if not isinstance(i, (told.Refused, told.SetTimer))]
            if extra:
                raise Violation(f"S3: a stale {stimulus} had an effect: {extra[0]}")
        for instruction in told_now:
            self._instructed(instruction)
        self._lend_slots()
        self._become_ready(kernel)
        rules.check(shadow, self._turn)
        fairness.check(shadow, kernel, self.seen)
        if kernel is not None:
            answers.check(shadow, kernel)
            for item in self._turn.settled:
                if kernel.state(item.id) is not item.status:
                    raise Violation(f"S5: {item.id} settled {item.status}, but state() differs")

    def finish(self) -> None:
        """The run is over: every task has ended and nothing is left alive."""
        shadow = self.shadow
        if shadow.open:
            names = ", ".join(f"{i.id} ({shadow.state(i)})" for i in shadow.open.values())
            raise Violation(f"S5: nothing more happens, yet these have not ended: {names}")
        if shadow.alive:
            raise Violation(f"S4: attempts are left alive: {sorted(shadow.alive)}")

    # What happened

    def _is_fresh(self, stimulus: event.Stimulus) -> bool:
        """Whether the attempt that reports may still report that."""
        if isinstance(stimulus, event.Submit):
            if stimulus.parent is None:
                return True
            parent = self.shadow.alive.get(stimulus.token)
            return parent is not None and not parent.over and parent.item.id == stimulus.parent
        if isinstance(stimulus, event.Answer):
            item = self.shadow.items[stimulus.task_id]
            request = item.attempt.request if item.attempt and not item.attempt.over else None
            return bool(
                request
                and request.kind == "ask"
                and request.number == stimulus.request
                and not request.answered
            )
        if not isinstance(stimulus, REPORTS):
            return True
        attempt = self.shadow.alive.get(stimulus.token)
        if attempt is None or attempt.item.id != stimulus.task_id:
            return False
        if isinstance(stimulus, event.Ended):
            return not attempt.ended or stimulus.gone
        return isinstance(stimulus, event.Gone) or not attempt.over

    def _happened(self, stimulus: event.Stimulus) -> None:
        shadow = self.shadow
        match stimulus:
            case event.Submit():
                self._submitted(stimulus)
            case event.Ended():
                self._ended(stimulus)
            case event.Gone():
                self._gone(shadow.alive[stimulus.token])
            case event.Reports():
                raise TypeError("reports are taken one by one")
            case event.Cancel():
                self._ask_to_cancel([shadow.items[stimulus.task_id]])
            case event.CancelGroup(group=name):
                members = shadow.groups[name].members if name else list(shadow.open.values())
                self._ask_to_cancel(members)
            case event.Extend() | event.Take():
                kind = "extend" if isinstance(stimulus, event.Extend) else "take"
                self._waits(stimulus.token, Request(kind, stimulus.request, stimulus.claims))
            case event.AwaitChildren():
                request = Request("children", stimulus.request, children=stimulus.children)
                self._waits(stimulus.token, request)
            case event.Ask():
                self._waits(stimulus.token, Request("ask", stimulus.request))
            case event.Answer():
                answered = shadow.items[stimulus.task_id].attempt
                assert answered is not None
                assert answered.request is not None
                answered.request.answered = True
            case event.Used():
                for taken in shadow.taken[stimulus.resource]:
                    if (taken.token, taken.request) == (stimulus.token, stimulus.request):
                        taken.amount = stimulus.amount
            case event.SetCapacity(resource="slots"):
                shadow.slots = stimulus.capacity
            case event.SetCapacity():
                shadow.capacities[stimulus.resource] = stimulus.capacity
                most = max(stimulus.capacity, shadow.most[stimulus.resource])
                shadow.most[stimulus.resource] = most
            case event.HoldRate():
                held = shadow.held_until.get(stimulus.resource, 0.0)
                shadow.held_until[stimulus.resource] = max(held, stimulus.until)
            case event.Pause() | event.Unpause():
                paused = isinstance(stimulus, event.Pause)
                if stimulus.task_id is None:
                    shadow.paused = paused
                else:
                    self._pause(shadow.items[stimulus.task_id], paused)
            case event.Prioritize():
                pass
            case event.Tick():
                shadow.ticked_at = shadow.now
                if shadow.timer is not None and shadow.timer <= shadow.now:
                    shadow.timer = None
            case event.Drain():
                shadow.draining = True
            case event.Shutdown():
                shadow.draining = shadow.shut_down = True
                self._ask_to_cancel(list(shadow.open.values()))
            case _:
                assert_never(stimulus)

    def _submitted(self, stimulus: event.Submit) -> None:
        shadow = self.shadow
        parent = shadow.alive[stimulus.token] if stimulus.parent is not None else None
        group = None
        if stimulus.group:
            fresh = Group(stimulus.group, stimulus.fail_fast)
            group = shadow.groups.setdefault(stimulus.group, fresh)
        for task in stimulus.tasks:
            lasts = [d for d in (task.deadline, stimulus.deadline) if d is not None]
            ends = tuple(shadow.now + d for d in lasts)
            item = Item(task, shadow.now, parent, group, ends)
            shadow.items[task.id] = shadow.open[task.id] = item
            if group:
                group.members.append(item)
        if parent:
            depth = 1 + sum(1 for _ in parent.item.ancestors())
            self.seen[f"children at depth {depth}"] += len(stimulus.tasks)

    def _ended(self, report: event.Ended) -> None:
        attempt = self.shadow.alive[report.token]
        if not attempt.over:
            retryable = report.error is None or report.error.retryable
            self._outcome(attempt, report.status, retryable, report.chance, report.retry_after)
        else:
            self.seen["report of a zombie"] += 1
        attempt.ended = True
        if report.gone:
            self._gone(attempt)
        else:
            self.seen["ended before gone"] += 1

    def _outcome(
        self, attempt: Attempt, status: State, retryable: bool, chance: float, least: float
    ) -> None:
        """The end of an attempt that nobody had stopped."""
        attempt.request = None
        item = attempt.item
        retry = item.task.retry
        again = status is State.FAILED and retryable and item.attempts < retry.attempts
        if again:
            item.due = self.shadow.now + max(retry.wait(attempt.number, chance), least)
            self.seen["retry after a failure"] += 1
        self._turn.reports[item.id] = rules.Report(status, again)
        attempt.ended = True
        self._doom(item)
        if item.group and item.group.fail_fast and status in rules.BROKEN and not again:
            for member in item.group.members:
                self._doom(member)

    def _doom(self, item: Item) -> None:
        """A task is over: what runs of it and below it has no say any more in this turn."""
        for each in (item, *self.shadow.below(item)):
            if each.attempt is not None and not each.attempt.over:
                each.attempt.doomed = True

    def _gone(self, attempt: Attempt) -> None:
        if not attempt.over:
            self.seen["lost without a word"] += 1
            self._outcome(attempt, State.FAILED, True, 0.0, 0.0)
        self._turn.went.append(attempt.token)
        del self.shadow.alive[attempt.token]
        attempt.item.attempt = None

    def _pause(self, item: Item, paused: bool) -> None:
        if item.paused and not paused and item.ready is not None:
            self._is_ready(item)  # It was not while it was paused; its age begins anew.
        item.paused = paused

    def _ask_to_cancel(self, items: list[Item]) -> None:
        for item in items:
            if item.status is None:
                self._turn.asked.add(item)
            self._turn.asked.update(self.shadow.below(item))

    def _waits(self, token: int, request: Request) -> None:
        self.shadow.alive[token].request = request

    # What the kernel said

    def _instructed(self, instruction: told.Instruction) -> None:
        match instruction:
            case told.Start():
                rules.check_start(self.shadow, instruction)
                self._start(self.shadow.items[instruction.task_id], instruction)
            case told.Stop():
                self._stop(instruction)
            case told.Settle():
                self._settle(instruction)
            case told.Change():
                if self.shadow.items[instruction.task_id].status is not None:
                    raise Violation(f"S5: {instruction} after the task had settled")
            case told.Resume():
                self._resume(instruction)
            case told.Deny():
                self._deny(instruction)
            case told.Refused():
                self.seen["refused"] += 1
            case told.SetTimer():
                self.shadow.timer = instruction.at
            case _:
                assert_never(instruction)

    def _start(self, item: Item, start: told.Start) -> None:
        shadow = self.shadow
        fairness.started(shadow, item, self.seen)
        attempt = Attempt(item, start.attempt, start.token, shadow.now, item.task.claims)
        item.attempts += 1
        item.ready = item.due = None
        item.attempt = shadow.alive[start.token] = attempt
        self._take(item.task.claims, start.token, 0)
        self._turn.took_slot = True
        self.seen["started"] += 1

    def _take(self, claims: Iterable[Claim], token: int, request: int) -> None:
        for claim in self.shadow.rated(tuple(claims)):
            taken = Taken(self.shadow.now, claim.amount, token, request)
            self.shadow.taken[claim.resource].append(taken)

    def _stop(self, stop: told.Stop) -> None:
        attempt = self.shadow.alive.get(stop.token)
        if attempt is None and stop.token in self._turn.went:
            return  # It went in the same turn, after what made the kernel stop it.
        if attempt is None or attempt.item.id != stop.task_id:
            raise Violation(f"S14: {stop} to an attempt that is not alive")
        if not attempt.stopped and not attempt.ended:
            self.seen["zombie"] += 1
            self.seen["zombie without a slot"] += not attempt.has_slot
            item = attempt.item
            late = rules.timeout_at(attempt) <= self.shadow.now
            if late and item.status is None and item.attempts < item.task.retry.attempts:
                # Nobody rolled dice for this attempt, so its backoff is the full one.
                item.due = self.shadow.now + item.task.retry.wait(attempt.number, 0.0)
                self.seen["retry after a timeout"] += 1
        attempt.stopped = True
        attempt.request = None

    def _settle(self, settle: told.Settle) -> None:
        shadow = self.shadow
        item = shadow.items[settle.task_id]
        if item.status is not None:
            raise Violation(f"S5: {item.id} settled {item.status} and then {settle.status} again")
        if not settle.status.is_end:
            raise Violation(f"S5: {item.id} settled as {settle.status}, which is not an end")
        if settle.attempts != item.attempts or settle.ended_at != shadow.now:
            raise Violation(f"S5: {settle} counts wrongly: {item.attempts} attempts were started")
        if (settle.started_at is None) != (item.attempts == 0):
            raise Violation(f"S5: {settle} does not say rightly whether it ever started")
        item.status = settle.status
        item.ready = item.due = None
        del shadow.open[item.id]
        self._turn.settled.append(item)
        self.seen[f"settled {settle.status}"] += 1

    def _resume(self, resume: told.Resume) -> None:
        shadow = self.shadow
        attempt = rules.check_resume(shadow, resume)
        request = attempt.request
        assert request is not None
        if request.kind == "extend" and request.claims:
            if resume.grant <= shadow.last_token:
                raise Violation(f"S3: {resume} has a token that is not newer than all before")
            shadow.last_token = resume.grant
            attempt.claims += request.claims
        if request.kind in ("extend", "take"):
            self._take(request.claims, attempt.token, request.number)
        later = "at once" if attempt.has_slot and request.kind != "take" else "later"
        self.seen[f"resumed {later}: {request.kind}"] += 1
        attempt.request = None
        self._turn.took_slot |= not attempt.has_slot
        attempt.has_slot = True

    def _deny(self, deny: told.Deny) -> None:
        attempt = self.shadow.alive.get(deny.token)
        request = attempt.request if attempt else None
        if attempt is None or request is None or request.number != deny.request:
            raise Violation(f"{deny} answers nothing that was asked")
        rules.check_deny(self.shadow, attempt, deny)
        attempt.request = None
        self.seen[f"denied: {request.kind}"] += 1

    def _lend_slots(self) -> None:
        """Whoever still waits in mid-flight lends its slot out (a `Take` keeps it)."""
        for attempt in self.shadow.alive.values():
            if attempt.request and attempt.request.kind != "take" and not attempt.over:
                attempt.has_slot = False

    def _become_ready(self, kernel: Kernel | None) -> None:
        """Note which tasks are ready from now on: their age begins here."""
        shadow = self.shadow
        for item in shadow.open.values():
            if item.ready is not None or item.running or shadow.unmet(item):
                continue
            if item.due is not None:
                # A timeout leaves the judge to see from outside when the backoff is over.
                early = shadow.now < item.due
                waits = kernel is None or kernel.state(item.id) is State.WAITING
                if early and waits and kernel is not None:
                    raise Violation(f"S12: {item.id} waits to start before its backoff is over")
                if early or not waits:
                    continue
            self._is_ready(item)

    def _is_ready(self, item: Item) -> None:
        item.ready, item.due = self.shadow.step, None
        item.overtaken, item.slots_seen = 0, self.shadow.slots
        item.may_reserve, item.passed = False, {}
