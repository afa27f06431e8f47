"""Which waits in mid-flight can never end, found by letting everything else finish."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.model.claim import Claim, Mode
from interlock.model.task import Task
from interlock.testing.amounts import usage
from interlock.testing.shadow import Attempt, Item, Request, Shadow, any_clash


def stuck(shadow: Shadow, capacities: Mapping[str, int] | None = None) -> list[Attempt]:
    """The attempts that wait for each other round a circle, or for somebody in one.

    Whoever does not wait in mid-flight is taken to finish and give back what it holds. Then
    whoever can go on is let finish too, and so on. What is left over is stuck. A capacity that
    was lowered may be raised again, so nobody is stuck for good who is so only with
    `capacities` below the most there have been.
    """
    most = shadow.most if capacities is None else capacities
    held = {
        a: None
        for a in shadow.alive.values()
        if a.request and a.request.kind in ("extend", "children") and not a.over
    }
    if not held:
        return []
    queued = {i: None for i in shadow.open.values() if i.attempt is None or i.attempt.over}
    progress = True
    while held and progress:
        progress = False
        for attempt in list(held):
            if _can_go_on(shadow, attempt, held, queued, most):
                del held[attempt]
                progress = True
        for item in list(queued):
            if _can_run(shadow, item, held, queued, most):
                del queued[item]
                progress = True
    return list(held)


def _can_go_on(
    shadow: Shadow,
    attempt: Attempt,
    held: dict[Attempt, None],
    queued: dict[Item, None],
    most: Mapping[str, int],
) -> bool:
    request = attempt.request
    assert request is not None
    children = (shadow.items[c] for c in request.children)
    if any(_unfinished(child, held, queued) for child in children):
        return False
    return _free(shadow, attempt.item, request.claims, held, most)


def _can_run(
    shadow: Shadow,
    item: Item,
    held: dict[Attempt, None],
    queued: dict[Item, None],
    most: Mapping[str, int],
) -> bool:
    dependencies = (shadow.items[d] for d in item.task.after)
    if any(_unfinished(d, held, queued) for d in dependencies):
        return False
    return _free(shadow, item, item.task.claims, held, most)


def _unfinished(item: Item, held: dict[Attempt, None], queued: dict[Item, None]) -> bool:
    return item.status is None and (item in queued or item.attempt in held)


def _free(
    shadow: Shadow,
    item: Item,
    claims: tuple[Claim, ...],
    held: dict[Attempt, None],
    most: Mapping[str, int],
) -> bool:
    """Whether the claims could be granted if only these attempts were left."""
    family = {item, *item.ancestors()}
    others = [a for a in held if a.item not in family]
    if any(any_clash(shadow.exclusive(claims), shadow.exclusive(a.claims)) for a in others):
        return False
    for claim in shadow.counted(claims):
        parts = [
            c for a in others for c in shadow.counted(a.claims) if c.resource == claim.resource
        ]
        if parts and (claim.mode is Mode.ALONE or any(p.mode is Mode.ALONE for p in parts)):
            return False
        # What nobody but the capacity keeps away may still come; only holders make it endless.
        after = usage(shadow, claim.resource, held, item, claim)
        grows = after > usage(shadow, claim.resource, held)
        if held and grows and after > max(most[claim.resource], claim.amount):
            return False
    return True


def would_hang(shadow: Shadow, parent: Attempt, tasks: tuple[Task, ...]) -> bool:
    """Whether a parent that waited for these children would wait for ever."""
    children = {t.id: Item(t, shadow.now, parent, None, ()) for t in tasks}
    before = parent.request
    parent.request = Request("children", 0, children=tuple(children))
    shadow.items.update(children)
    shadow.open.update(children)
    hangs = parent in stuck(shadow, shadow.capacities)
    parent.request = before
    for name in children:
        del shadow.items[name], shadow.open[name]
    return hangs
