"""The oracle: it sees every stimulus and every instruction, and says which rule was broken.

It keeps a shadow of the state of its own. First it applies the stimulus as a fact (`effects.py`).
Then each instruction must be one that the rules allow at that point. Then it checks the rules about
the whole state (`rules.py`, `fairness.py`, `answers.py`). Numbers such as S5 are the statements of
the reliability table.
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
from tests.simulation.kernel import answers, fairness, rules
from tests.simulation.kernel.effects import Effects
from tests.simulation.kernel.shadow import Shadow, ShadowAttempt, ShadowTake, ShadowTask, Violation

if TYPE_CHECKING:
    from interlock.kernel.kernel import Kernel


class Oracle:
    """Judges one kernel from outside. `seen` counts what was exercised."""

    def __init__(
        self,
        slots: int = 8,
        capacities: Mapping[str, int] | None = None,
        rates: Mapping[str, Rate] | None = None,
        *,
        fold_case: bool = False,
        first_come: bool = False,
        zombies_hold_slots: bool = True,
    ) -> None:
        self.shadow = Shadow(slots, capacities or {}, rates or {}, fold_case)
        self.shadow.first_come = first_come
        self.shadow.zombies_hold_slots = zombies_hold_slots
        self.seen: Counter[str] = Counter()
        self._effects = Effects(self.shadow, self.seen)
        self._turn = rules.JudgedTurn(event.Tick())

    def observe(
        self,
        stimulus: event.Stimulus,
        now: float,
        instructions: Iterable[told.Instruction],
        kernel: Kernel | None = None,
    ) -> None:
        """Observe one `handle()` and check every rule; without a kernel, its instructions alone."""
        shadow = self.shadow
        shadow.step += 1
        shadow.now = now
        self._turn = self._effects.turn = rules.JudgedTurn(stimulus)
        told_now = list(instructions)
        self.seen[type(stimulus).__name__] += 1
        parts = stimulus.reports if isinstance(stimulus, event.Reports) else (stimulus,)
        fresh = False
        for part in parts:
            if self._effects.is_fresh(part):
                fresh = True
                self._effects.take(part)
        if not fresh:
            self.seen["stale report"] += 1
            extra = [i for i in told_now if not isinstance(i, (told.Refused, told.SetTimer))]
            if extra:
                raise Violation(f"S3: a stale {stimulus} had an effect: {extra[0]}")
        self._lend_slot(told_now)
        for instruction in told_now:
            self._instructed(instruction)
        self._become_ready(kernel)
        rules.check(shadow, self._turn)
        fairness.check(shadow, kernel, self.seen)
        shadow.groups = {n: g for n, g in shadow.groups.items() if g.is_open}
        if kernel is not None:
            answers.check(shadow, kernel)
            for item in self._turn.settled:
                if kernel.state(item.id) is not item.status:
                    raise Violation(f"S5: {item.id} settled {item.status}, but state() differs")

    def finish(self) -> None:
        """Check, at the end of a run, that every task has ended and no attempt is alive."""
        shadow = self.shadow
        if shadow.open:
            names = ", ".join(f"{i.id} ({shadow.state(i)})" for i in shadow.open.values())
            raise Violation(f"S5: nothing more happens, yet these have not ended: {names}")
        if any(not attempt.outside for attempt in shadow.alive.values()):
            raise Violation(f"S4: attempts are left alive: {sorted(shadow.alive)}")

    # Instructions of the kernel

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

    def _start(self, item: ShadowTask, start: told.Start) -> None:
        shadow = self.shadow
        fairness.started(shadow, item, self.seen)
        self.seen["needed in a drain"] += shadow.draining and item.parent is None
        attempt = ShadowAttempt(item, start.attempt, start.token, shadow.now, item.task.claims)
        item.attempts += 1
        item.ready = item.due = None
        item.attempt = shadow.alive[start.token] = attempt
        self._take(item.task.claims, start.token, 0)
        self._turn.took_slot = True
        self.seen["started"] += 1

    def _take(self, claims: Iterable[Claim], token: int, request: int) -> None:
        for claim in self.shadow.rated(tuple(claims)):
            taken = ShadowTake(self.shadow.now, claim.amount, token, request)
            self.shadow.taken[claim.resource].append(taken)

    def _stop(self, stop: told.Stop) -> None:
        attempt = self.shadow.alive.get(stop.token)
        if attempt is None and stop.token in self._turn.went:
            return  # It was gone in the same turn, after what made the kernel stop it.
        if attempt is None or attempt.item.id != stop.task_id:
            raise Violation(f"S14: {stop} to an attempt that is not alive")
        if not attempt.stopped and not attempt.ended:
            self.seen["zombie"] += 1
            self.seen["zombie without a slot"] += not attempt.has_slot
            item = attempt.item
            late = rules.timeout_at(attempt) <= self.shadow.now
            if late and item.status is None and item.attempts < item.task.retry.attempts:
                # No jitter was drawn for this attempt, so its backoff is the full one.
                item.due = self.shadow.now + item.task.retry.wait(attempt.number, 0.0)
                self.seen["retry after a timeout"] += 1
        attempt.stopped = True
        attempt.requests = {}

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
        if item.group and item.group.fail_fast and settle.status in rules.BROKEN:
            item.group.failed = True
        item.ready = item.due = None
        del shadow.open[item.id]
        self._turn.settled.append(item)
        self.seen[f"settled {settle.status}"] += 1

    def _resume(self, resume: told.Resume) -> None:
        shadow = self.shadow
        waiter = shadow.alive.get(resume.token)
        over = resume.token in self._turn.ended or (waiter is not None and waiter.doomed)
        if over and not resume.claims:
            return  # It ended in the same turn, or must, after the tasks that it waited for.
        attempt, request = rules.check_resume(shadow, resume)
        if request.kind == "extend" and request.claims:
            if resume.grant <= shadow.last_token:
                raise Violation(f"S3: {resume} has a token that is not newer than all before")
            shadow.last_token = resume.grant
            attempt.claims += request.claims
        if request.kind in ("extend", "take"):
            self._take(request.claims, attempt.token, request.number)
        later = "at once" if attempt.has_slot and request.kind != "take" else "later"
        self.seen[f"resumed {later}: {request.kind}"] += 1
        if attempt.needs_slot(request):
            self._turn.took_slot = attempt.has_slot = True
        elif not attempt.has_slot:
            self.seen["resumed without a slot, others being open"] += 1
        del attempt.requests[request.number]

    def _deny(self, deny: told.Deny) -> None:
        attempt, request = rules.check_deny(self.shadow, deny)
        del attempt.requests[request.number]
        self.seen[f"denied: {request.kind}"] += 1

    def _lend_slot(self, told_now: list[told.Instruction]) -> None:
        """An attempt that has to wait for its request lends its slot out (a `Take` keeps it).

        From now on, the tasks that it waits for, and those before them, may not be held back.
        """
        asker, request = self._turn.asker, self._turn.request
        if asker is None or request is None or not request.lends:
            return
        answers = [i for i in told_now if isinstance(i, (told.Resume, told.Deny))]
        if not any((i.token, i.request) == (asker.token, request.number) for i in answers):
            asker.has_slot = False
            for item in self.shadow.needed_for(request.tasks):
                item.needed = True

    def _become_ready(self, kernel: Kernel | None) -> None:
        """Note which tasks are ready from now on: their age starts here."""
        shadow = self.shadow
        for item in shadow.open.values():
            if item.ready is not None or item.running or shadow.unmet(item):
                continue
            if item.due is not None:
                # After a timeout the oracle sees only from outside when the backoff is over.
                early = shadow.now < item.due
                waits = kernel is None or kernel.state(item.id) is State.WAITING
                if early and waits and kernel is not None:
                    raise Violation(f"S12: {item.id} waits to start before its backoff is over")
                if early or not waits:
                    continue
            self._effects.is_ready(item)
