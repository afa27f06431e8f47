"""Statement 10: slots, capacities and rates."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.model.claim import Mode
from interlock.testing.site import NEVER, Moment, Visit
from tests.simulation.runtime.record import RunRecord
from tests.simulation.runtime.story import RunStory


def over_a_limit(record: RunRecord, lag: float) -> Iterator[str]:
    """Starts, and returns from a wait, for which no slot or capacity was left."""
    for visit in record.site.visits:
        # An attempt whose request was granted at once has never lent out its slot.
        waited = [u for since, u in visit.lent if since.time + 3 * lag < u.time < NEVER.time]
        moments = [visit.began, *waited]
        for moment in moments:
            working = [v for v in record.site.visits if v.has_a_slot_at(moment.number)]
            most = _most(record, "slots", moment, lag)
            if len(working) > most and visit.has_a_slot_at(moment.number):
                yield f"10: {len(working)} at work at {moment.time:g} with {most} slots: {working}"
        for claim, since in visit.holds:
            if claim.mode is Mode.USE:
                yield from _over_capacity(record, visit, claim.resource, since, lag)


def _over_capacity(
    record: RunRecord, visit: Visit, resource: str, at: Moment, lag: float
) -> Iterator[str]:
    if all(each.resource != resource for each in record.limits):
        return
    holders = [v for v in record.site.visits if _holds(v, resource, at)]
    # Descendants may use what an ancestor holds: they are counted with it.
    roots = [v for v in holders if not any(_is_above(record, w, v) for w in holders)]
    used = sum(_amount(v, resource, at) for v in roots)
    most = _most(record, resource, at, lag)
    if used > most and visit in roots:
        yield f"10: {used} of {most} {resource} are used at {at.time:g} by {roots}"


def _holds(visit: Visit, resource: str, at: Moment) -> bool:
    alive = visit.began.number <= at.number < visit.gone.number
    return alive and _amount(visit, resource, at) > 0


def _amount(visit: Visit, resource: str, at: Moment) -> int:
    held = [c for c, since in visit.holds if since.number <= at.number and c.resource == resource]
    return sum(claim.amount for claim in held if claim.mode is Mode.USE)


def _is_above(record: RunRecord, a: Visit, b: Visit) -> bool:
    return a.task_id in record.site.above(b.task_id)


def _most(record: RunRecord, resource: str, at: Moment, lag: float) -> int:
    """The most there was of it when the start may have been decided."""
    changes = [each for each in record.limits if each.resource == resource]
    before = [each for each in changes if each.since.number <= at.number]
    recent = [each.amount for each in before if each.since.time >= at.time - 3 * lag]
    earlier = [each.amount for each in before if each.since.time < at.time - 3 * lag]
    return max([*recent, *earlier[-1:]])


def over_a_rate(record: RunRecord, story: RunStory) -> Iterator[str]:
    """Windows in which more than the quota was taken, as far as was known at the time."""
    rate = story.limits.get("openai")
    if rate is None:
        return
    quotas = {"openai": rate.requests, "openai.tokens": rate.tokens}
    for name, quota in quotas.items():
        assert quota is not None
        takes = [(t.at, t.amount, t.used) for t in record.taken if t.rate == name]
        for visit in record.site.visits:
            takes += [
                (since, claim.amount, [])
                for claim, since in visit.holds
                if claim.resource == name and claim.mode is Mode.USE
            ]
        for at, _, _ in takes:
            # With a slow journal what is taken is known some time after it was given.
            begin = at.time - quota.window + 3 * story.journal_takes + 1e-6
            used = 0
            for other, amount, reports in takes:
                if begin < other.time and other.number <= at.number:
                    known = [n for moment, n in reports if moment.number < at.number]
                    used += min(amount, *known) if known else amount
            if used > quota.amount:
                yield f"10: {used} of {name} by {at.time:g}, {quota.amount} in {quota.window:g} s"
