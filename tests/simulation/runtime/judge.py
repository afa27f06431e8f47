"""The judge of a run: looks at what was done, and never asks the kernel.

Its numbers are those of the reliability statements.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.errors import AttemptsStillAlive, FatalError, InterlockError
from tests.simulation.runtime.acts import Boom
from tests.simulation.runtime.fairness import passed_too_often
from tests.simulation.runtime.limits import over_a_limit, over_a_rate
from tests.simulation.runtime.outcomes import (
    badly_numbered,
    badly_ordered,
    badly_recorded,
    badly_settled,
    badly_told,
    settled,
    was_broken,
)
from tests.simulation.runtime.play import Play
from tests.simulation.runtime.times import late, too_early, too_many_attempts, too_stubborn


def violations(play: Play) -> list[str]:
    """Every rule that was broken in a run. Call it once for each run: it also counts features."""
    if play.hung is not None:
        return [f"it hangs: {play.hung}"]
    _count(play)
    return list(_all(play))


def violations_under_fault(play: Play, fault: type[Exception]) -> list[str]:
    """What must not happen even if a fault strikes: violations of statements 1 to 6, hangs, leaks.

    Every task has exactly one outcome, or the whole run was ended by an error.
    """
    if play.hung is not None:
        return [f"it hangs: {play.hung}"]
    record, result = play.record, play.result
    assert result is not None
    found = [f"1: {text}" for text in record.site.clashes()]
    found += [f"4: {text}" for text in record.site.unclaimed()]
    found += [*badly_told(record), *badly_numbered(record)]
    if not was_broken(play):
        found += badly_settled(play)
        found += [text for text in _badly_left(play) if fault.__name__ not in text]
    elif result.leaked:
        found.append(f"left behind: {'; '.join(map(str, result.leaked))}")
    return found


def _count(play: Play) -> None:
    """Count the features that show only at the end of a run."""
    record, seen = play.record, play.record.seen
    places = {"loop": "on the loop", "thread": "in a thread", "process": "in a process"}
    for visit in record.site.visits:
        plan = play.plans.get(visit.task_id.partition("~")[0])
        if plan is not None:
            seen[f"attempt {places[plan.place]}"] += 1
        seen["second attempt"] += visit.attempt == 2
        seen["third attempt"] += visit.attempt == 3
        seen["killed"] += visit.killed
        seen["cancellation swallowed"] += visit.swallowed
        end = settled(record).get(visit.task_id)
        seen["zombie"] += end is not None and end[0].time < visit.gone.time
    for _, outcome in settled(record).values():
        seen[f"settled {outcome.status}"] += 1
    block = type(record.block).__name__
    seen["left normally" if record.block is None else f"left by {block}"] += 1
    seen["user cancelled twice"] += record.cancelled_host > 1
    seen["slow journal"] += play.story.journal_takes > 0
    seen["bad listener"] += play.story.bad_listener


def _all(play: Play) -> Iterator[str]:
    record = play.record
    yield from record.oddities
    for text in record.site.clashes():
        yield f"1: {text}"
    for text in record.site.unclaimed():
        yield f"4: {text}"
    yield from badly_settled(play)
    yield from badly_recorded(play)
    yield from badly_told(record)
    yield from badly_ordered(record)
    yield from over_a_limit(record, play.story.journal_takes)
    yield from over_a_rate(record, play.story)
    yield from too_many_attempts(record)
    yield from too_early(play)
    yield from late(play)
    yield from too_stubborn(play)
    yield from passed_too_often(play)
    yield from _badly_left(play)


def _badly_left(play: Play) -> Iterator[str]:
    """Blocks that ended wrongly, and what was left at the end."""
    record, result = play.record, play.result
    assert result is not None
    left = record.block
    alive = sorted(
        each.task_id
        for each in record.site.visits
        if each.began.number < record.left.number < each.gone.number
    )
    if isinstance(left, AttemptsStillAlive):
        if not set(alive) <= set(left.attempts):
            yield f"14: {left.attempts} were said to be alive, and {alive} were"
        killable = [each for each in left.attempts if _is_killable(play, each)]
        if killable:
            yield f"14: {killable} were still alive, and could have been killed"
    elif alive:
        yield f"14: the block was left by {left!r} with {alive} still alive"
    allowed = (AttemptsStillAlive, FatalError, Boom)
    if isinstance(left, InterlockError) and not isinstance(left, allowed):
        yield f"the block was left by {left!r}, from {left.__cause__!r}"
    elif isinstance(left, Exception) and not isinstance(left, allowed):
        yield f"the block was left by {left!r}"
    if result.exception is not None:
        yield f"the story was ended by {result.exception!r}"
    if result.leaked and not isinstance(left, AttemptsStillAlive):
        yield f"14: left behind: {'; '.join(map(str, result.leaked))}"
    for text in result.complaints:
        yield f"asyncio complains: {text}"
    for text in result.reached_for:
        yield f"something reached for {text}"


def _is_killable(play: Play, task_id: str) -> bool:
    return task_id in play.plans and play.plans[task_id].place == "process"
