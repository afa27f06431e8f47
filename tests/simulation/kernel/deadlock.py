"""Finds waits in mid-flight that can never end, by letting everything else finish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from interlock.model.claim import Claim, Mode, uses
from interlock.model.task import Task
from tests.simulation.kernel.amounts import lendable, usage
from tests.simulation.kernel.shadow import Shadow, ShadowAttempt, ShadowRequest, ShadowTask

_NOT_ASKED = -1
"""The number of a hypothetical request."""
_CIRCULAR = ("extend", "tasks")
"""The waits that can be part of a cycle: a rate comes back by itself, a person answers."""


def stuck(shadow: Shadow) -> list[ShadowAttempt]:
    """The attempts that wait for each other in a cycle, or for an attempt in one.

    A capacity that was lowered may be raised again, so its highest value counts.
    """
    return _OptimisticRun(shadow, shadow.most, cautious=False).stuck()


def may_be_stuck(shadow: Shadow) -> list[ShadowAttempt]:
    """The same with capacities as they are, and no task returning what it could have borrowed.

    What a task took before its parent could lend it, it keeps until it ends.
    """
    return _OptimisticRun(shadow, shadow.capacities, cautious=True).stuck()


def would_hang(shadow: Shadow, parent: ShadowAttempt, tasks: tuple[Task, ...]) -> bool:
    """Whether a parent that waits for these children could wait for ever."""
    children = {t.id: ShadowTask(t, shadow.now, parent, None) for t in tasks}
    parent.requests[_NOT_ASKED] = ShadowRequest("tasks", _NOT_ASKED, tasks=tuple(children))
    shadow.items.update(children)
    shadow.open.update(children)
    hangs = depends_on_order(shadow) or parent in may_be_stuck(shadow)
    del parent.requests[_NOT_ASKED]
    for name in children:
        del shadow.items[name], shadow.open[name]
    return hangs


def depends_on_order(shadow: Shadow) -> bool:
    """Whether an attempt has several waits open, so that the order of the grants may decide.

    The kernel then denies what could end in a cycle, without knowing whether it would.
    """
    waits = Counter(a for a, request in shadow.waits() if request.kind in _CIRCULAR)
    return any(many > 1 for many in waits.values())


class _OptimisticRun:
    """Assumes that all attempts that do not wait in mid-flight finish and release their claims.

    Then all attempts that can go on finish too, and so on. What cannot finish is stuck.
    """

    def __init__(self, shadow: Shadow, most: Mapping[str, int], *, cautious: bool) -> None:
        self.shadow = shadow
        self.most = most
        self.cautious = cautious
        waits = (a for a, r in shadow.waits() if r.kind in _CIRCULAR)
        self.held = dict.fromkeys(waits)
        self.queued: dict[ShadowTask, None] = {}

    def stuck(self) -> list[ShadowAttempt]:
        if not self.held:
            return []
        idle = (i for i in self.shadow.open.values() if i.attempt is None or i.attempt.over)
        self.queued = dict.fromkeys(idle)
        progress = True
        while self.held and progress:
            progress = False
            for attempt in list(self.held):
                if self._can_go_on(attempt):
                    del self.held[attempt]
                    progress = True
            for item in list(self.queued):
                if self._can_run(item):
                    del self.queued[item]
                    progress = True
        return list(self.held)

    def _can_go_on(self, attempt: ShadowAttempt) -> bool:
        """Whether everything that an attempt waits for could be available at the same time."""
        names = [name for request in attempt.requests.values() for name in request.tasks]
        if not self.shadow.needed_for(names).isdisjoint({attempt.item, *attempt.item.ancestors()}):
            return False  # It ends itself before one of those can end.
        parent = attempt.item.parent
        if not self.cautious and parent is not None and parent not in self.held:
            return True  # It ends with its parent, and nothing keeps the parent from ending.
        requests = attempt.requests.values()
        if any(map(self._unfinished, names)):
            return False
        claims = [c for request in requests for c in request.claims]
        # What one request is granted the others cannot have: an attempt releases nothing.
        counted = self.shadow.counted
        asked = Counter(name for r in requests for name in {c.resource for c in counted(r.claims)})
        for name in (name for name, times in asked.items() if times > 1):
            parts = [c for c in claims if c.resource == name and not c.is_path]
            total = sum(c.amount for c in parts)
            if total > self.most[name] or any(c.mode is Mode.EXCLUSIVE for c in parts):
                return False
            claims = [c for c in claims if c not in parts] + [uses(name, total)]
        return self._free(attempt.item, tuple(claims))

    def _can_run(self, item: ShadowTask) -> bool:
        if any(self._unfinished(name) for name in item.task.after):
            return False
        return self._free(item, item.task.claims)

    def _unfinished(self, name: str) -> bool:
        item = self.shadow.items[name]
        return item.status is None and (item in self.queued or item.attempt in self.held)

    def _free(self, item: ShadowTask, claims: tuple[Claim, ...]) -> bool:
        """Whether the claims could be granted if only the remaining attempts held any."""
        family = {item, *item.ancestors()}
        others = [a for a in self.held if a.item not in family]
        if any(self.shadow.clash(claims, a.claims) for a in others):
            return False
        return all(self._enough(item, claim, others) for claim in self.shadow.counted(claims))

    def _enough(self, item: ShadowTask, claim: Claim, others: list[ShadowAttempt]) -> bool:
        shadow, name = self.shadow, claim.resource
        theirs = [c for a in others for c in shadow.counted(a.claims) if c.resource == name]
        if theirs and (
            claim.mode is Mode.EXCLUSIVE or any(c.mode is Mode.EXCLUSIVE for c in theirs)
        ):
            return False
        # A lack of capacity alone may pass; only holders make a wait endless.
        before = usage(shadow, name, self.held)
        after = usage(shadow, name, self.held, item, claim)
        if self.held and after > before and after > max(self.most[name], claim.amount):
            return False
        if not self.cautious or not theirs:
            return True
        total = sum(usage(shadow, name, [a]) for a in self.held)
        lent = sum(lendable(shadow, name, a, self.held) for a in item.above())
        return claim.amount <= max(0, self.most[name] - total) + lent
