"""The judge of a run: looks at what was really done, and never asks the kernel.

Its numbers are those of the reliability statements.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.errors import AttemptsStillAlive, FatalError, InterlockError
from interlock.testing.runs.acts import Boom
from interlock.testing.runs.fairness import passed_too_often
from interlock.testing.runs.limits import over_a_limit, over_a_rate
from interlock.testing.runs.outcomes import (
    badly_ordered,
    badly_recorded,
    badly_settled,
    badly_told,
)
from interlock.testing.runs.play import Play
from interlock.testing.runs.times import late, too_early, too_many_attempts, too_stubborn


def violations(play: Play) -> list[str]:
    """Every rule that was broken in a run that has been played."""
    if play.hung is not None:
        return [f"it hangs: {play.hung}"]
    return list(_all(play))


def _all(play: Play) -> Iterator[str]:
    record = play.record
    yield from record.oddities
    for text in record.site.clashes():
        yield f"1: {text}"
    for text in record.site.unclaimed():
        yield f"4: {text}"
    yield from badly_settled(play)
    yield from badly_recorded(record)
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
    """How the block ended, and what was left when all was over."""
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
        record.seen["left by AttemptsStillAlive"] += 1
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
