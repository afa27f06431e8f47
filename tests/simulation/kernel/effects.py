"""What a stimulus changes in the oracle's shadow, before the instructions of the kernel."""

from __future__ import annotations

from collections import Counter
from typing import assert_never

from interlock.kernel import stimuli as event
from interlock.model.limits import Quota
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.simulation.kernel import rules
from tests.simulation.kernel.shadow import (
    Shadow,
    ShadowAttempt,
    ShadowGroup,
    ShadowRequest,
    ShadowTask,
)

REPORTS = (
    event.Ended,
    event.Gone,
    event.Extend,
    event.Take,
    event.Used,
    event.AwaitTasks,
    event.Ask,
    event.Withdraw,
)
"""What an attempt reports or asks for. It counts only while its token is valid."""


class Effects:
    """Applies stimuli to the shadow as facts. `turn` is the `handle()` that they belong to."""

    def __init__(self, shadow: Shadow, seen: Counter[str]) -> None:
        self.shadow = shadow
        self.seen = seen
        self.turn = rules.JudgedTurn(event.Tick())

    def is_fresh(self, stimulus: event.Stimulus) -> bool:
        """Whether the stimulus still counts: the attempt that sent it may still report that."""
        if isinstance(stimulus, event.Submit):
            if stimulus.parent is None:
                return True
            parent = self.shadow.alive.get(stimulus.token)
            return parent is not None and not parent.over and parent.item.id == stimulus.parent
        if isinstance(stimulus, event.Answer):
            asker = self.shadow.items[stimulus.task_id].attempt
            request = asker.requests.get(stimulus.request) if asker and not asker.over else None
            return request is not None and request.kind == "ask" and not request.answered
        if not isinstance(stimulus, REPORTS):
            return True
        attempt = self.shadow.alive.get(stimulus.token)
        if attempt is None or attempt.item.id != stimulus.task_id:
            return False
        if isinstance(stimulus, event.Ended):
            return not attempt.ended or stimulus.gone
        return isinstance(stimulus, event.Gone) or not attempt.over

    def take(self, stimulus: event.Stimulus) -> None:
        """Apply a stimulus that is not stale."""
        shadow = self.shadow
        match stimulus:
            case event.Submit():
                self._submitted(stimulus)
            case event.Ended():
                self._ended(stimulus)
            case event.Gone():
                self._gone(shadow.alive[stimulus.token])
            case event.Reports():
                raise TypeError("reports are applied one by one")
            case event.Cancel():
                self._ask_to_cancel([shadow.items[stimulus.task_id]])
            case event.CancelGroup(group=name):
                group = shadow.groups.get(name, ShadowGroup())
                self._ask_to_cancel(group.members if name else list(shadow.open.values()))
            case event.Extend() | event.Take():
                kind = "extend" if isinstance(stimulus, event.Extend) else "take"
                self._waits(stimulus.token, ShadowRequest(kind, stimulus.request, stimulus.claims))
            case event.AwaitTasks():
                self._note_strangers(stimulus)
                request = ShadowRequest("tasks", stimulus.request, tasks=stimulus.tasks)
                self._waits(stimulus.token, request)
            case event.Ask():
                self._waits(stimulus.token, ShadowRequest("ask", stimulus.request))
            case event.Answer():
                answered = shadow.items[stimulus.task_id].attempt
                assert answered is not None
                answered.requests[stimulus.request].answered = True
            case event.Withdraw():
                self._withdrawn(shadow.alive[stimulus.token], stimulus.request)
            case event.Used():
                for taken in shadow.taken[stimulus.resource]:
                    if (taken.token, taken.request) == (stimulus.token, stimulus.request):
                        taken.amount = stimulus.amount
            case event.SetCapacity(resource="slots"):
                self.seen["no slots"] += not stimulus.capacity
                shadow.resize("slots", stimulus.capacity)
            case event.SetCapacity():
                if not shadow.capacities[stimulus.resource] < stimulus.capacity:
                    self.seen["capacity of nothing"] += not stimulus.capacity
                elif not shadow.capacities[stimulus.resource]:
                    self.seen["capacity back from nothing"] += 1
                shadow.resize(stimulus.resource, stimulus.capacity)
                most = max(stimulus.capacity, shadow.most[stimulus.resource])
                shadow.most[stimulus.resource] = most
            case event.Throttle(more=int()):
                raise TypeError("the oracle does not model rations")
            case event.Throttle():
                self.seen["throttled"] += stimulus.level is not None
                shadow.throttle(stimulus.resource, stimulus.level)
            case event.Define():
                shadow.resize(stimulus.resource, stimulus.capacity)
                shadow.most[stimulus.resource] = stimulus.capacity
            case event.SetRate():
                shadow.quotas[stimulus.resource] = Quota(stimulus.amount, stimulus.window)
                shadow.taken.setdefault(stimulus.resource, [])
            case event.HoldRate():
                held = shadow.held_until.get(stimulus.resource, 0.0)
                shadow.held_until[stimulus.resource] = max(held, stimulus.until)
            case event.Occupy():
                self._occupied(stimulus)
            case event.Vacate():
                token = next(t for t, a in shadow.alive.items() if a.item.id == stimulus.name)
                del shadow.alive[token]
            case event.Recall() | event.Spend():
                raise TypeError("the oracle follows a run from its beginning")
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
        group = self._group(stimulus) if stimulus.group else None
        for task in stimulus.tasks:
            item = ShadowTask(task, shadow.now, parent, group)
            shadow.items[task.id] = shadow.open[task.id] = item
            if group:
                group.members.append(item)
        if parent:
            depth = 1 + sum(1 for _ in parent.item.ancestors())
            self.seen[f"children at depth {depth}"] += len(stimulus.tasks)

    def _group(self, stimulus: event.Submit) -> ShadowGroup:
        """The group of that name; it is the same group as long as it has unfinished members."""
        shadow = self.shadow
        if stimulus.group in shadow.groups:
            self.seen["group joined later"] += 1
        group = shadow.groups.setdefault(stimulus.group, ShadowGroup())
        if stimulus.fail_fast:
            group.fail_fast = True
        if stimulus.deadline is not None:
            self.seen["group deadline replaced"] += group.deadline is not None
            group.deadline = shadow.now + stimulus.deadline
        return group

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
        self, attempt: ShadowAttempt, status: State, retryable: bool, chance: float, least: float
    ) -> None:
        """The end of an attempt that had not been told to stop."""
        attempt.requests = {}
        item = attempt.item
        retry = item.task.retry
        again = status is State.FAILED and retryable and item.attempts < retry.attempts
        if again:
            item.due = self.shadow.now + max(retry.wait(attempt.number, chance), least)
            self.seen["retry after a failure"] += 1
        self.turn.reports[item.id] = rules.AttemptReport(status, again)
        attempt.ended = True
        self.turn.ended.append(attempt.token)
        self._doom(item)
        if item.group and item.group.fail_fast and status in rules.BROKEN and not again:
            for member in item.group.members:
                self._doom(member)

    def _doom(self, item: ShadowTask) -> None:
        """A task is over: its attempt and those below it no longer count in this turn."""
        for each in (item, *self.shadow.below(item)):
            if each.attempt is not None and not each.attempt.over:
                each.attempt.doomed = True

    def _gone(self, attempt: ShadowAttempt) -> None:
        if not attempt.over:
            self.seen["lost without a word"] += 1
            self._outcome(attempt, State.FAILED, True, 0.0, 0.0)
        self.turn.went.append(attempt.token)
        del self.shadow.alive[attempt.token]
        attempt.item.attempt = None

    def _occupied(self, stimulus: event.Occupy) -> None:
        """Something outside the run holds these claims, as a zombie that cannot be stopped does.

        An amount of a resource that has no capacity here is ignored.
        """
        shadow = self.shadow
        known = [c for c in stimulus.claims if c.amount == 1 or shadow.counted([c])]
        task = Task(stimulus.name, claims=[c for c in known if not shadow.rated([c])])
        attempt = ShadowAttempt(
            ShadowTask(task, shadow.now, None, None), 1, -shadow.step, shadow.now, ()
        )
        attempt.claims = task.claims
        attempt.stopped, attempt.has_slot, attempt.outside = True, False, True
        if shadow.against(attempt.item, attempt.claims):
            self.seen["occupied although it was held"] += 1
        shadow.alive[attempt.token] = attempt

    def _note_strangers(self, stimulus: event.AwaitTasks) -> None:
        shadow = self.shadow
        asker = shadow.alive[stimulus.token]
        for item in shadow.needed_for(stimulus.tasks):
            stranger = item.parent is not asker and item.id in stimulus.tasks
            self.seen["waits for a stranger"] += stranger
            self.seen["waits for its own kind"] += item in (asker.item, *asker.item.ancestors())

    def _pause(self, item: ShadowTask, paused: bool) -> None:
        if item.paused and not paused and item.ready is not None:
            self.is_ready(item)  # It was not ready while it was paused: its age starts again.
        item.paused = paused

    def _ask_to_cancel(self, items: list[ShadowTask]) -> None:
        for item in items:
            if item.status is None:
                self.turn.asked.add(item)
            self.turn.asked.update(self.shadow.below(item))

    def _waits(self, token: int, request: ShadowRequest) -> None:
        attempt = self.shadow.alive[token]
        attempt.requests[request.number] = request
        self.turn.asker, self.turn.request = attempt, request
        if len(attempt.requests) > 1:
            self.seen[f"{min(len(attempt.requests), 3)} requests at once"] += 1

    def _withdrawn(self, attempt: ShadowAttempt, number: int) -> None:
        """The request is withdrawn: only the slot is still wanted, if it was lent out."""
        open_before = attempt.requests.get(number)
        self.seen[f"withdrawn: {open_before.kind if open_before else 'too late'}"] += 1
        attempt.requests[number] = ShadowRequest("slot", number)

    def is_ready(self, item: ShadowTask) -> None:
        """A task waits from now on: its age starts here."""
        item.ready, item.due = self.shadow.step, None
        item.overtaken, item.slots_seen = 0, self.shadow.slots
        item.passed = item.passed_for_slot = item.passed_for_capacity = 0
        item.beside = 1
        item.may_close = item.may_reserve = False
