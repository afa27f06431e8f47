"""The shortest story of a run that still shows a violation: delta debugging, as in the kernel's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

from tests.simulation.runtime.judge import violations
from tests.simulation.runtime.play import Play
from tests.simulation.runtime.story import Act, Plan, Step, Story

Item = TypeVar("Item")
MOST_PLAYS = 400


def shrink(story: Story) -> Play:
    """The play of the shortest story found that breaks the same rule as this one."""
    best = Play(story).run()
    moral = _moral(best)
    plays, progress = 0, bool(moral)
    while progress and plays < MOST_PLAYS:
        progress = False
        for candidate in _smaller(best.story):
            plays += 1
            play = Play(candidate).run()
            if _moral(play) == moral:
                best, progress = play, True
                break
            if plays >= MOST_PLAYS:
                break
    return best


def _moral(play: Play) -> str:
    """What a violation is about, without the names and numbers of this very story."""
    found = violations(play)
    plain = re.sub(r"\bt\d[^ ,:)]*|[\d.]+", "", found[0]) if found else ""
    return " ".join(plain.split()[:6])


def _smaller(story: Story) -> Iterator[Story]:
    for acts in _without_runs(story.acts):
        yield story._replace(acts=acts)
    for number, act in enumerate(story.acts):
        for less in _simpler_act(act):
            yield story._replace(acts=(*story.acts[:number], less, *story.acts[number + 1 :]))
    for plain in (
        story._replace(journal_takes=0.0),
        story._replace(bad_listener=False),
        story._replace(then=()),
    ):
        if plain != story:
            yield plain


def _without_runs(items: tuple[Item, ...]) -> Iterator[tuple[Item, ...]]:
    """The items without a run of them, long runs first, the late ones first."""
    length = len(items)
    while length >= 1:
        for start in range(len(items) - length, -1, -length):
            yield items[:start] + items[start + length :]
        length //= 2


def _simpler_act(act: Act) -> Iterator[Act]:
    if len(act.plans) > 1:
        for plans in _without_runs(act.plans):
            if plans:
                yield act._replace(plans=plans)
    for number, plan in enumerate(act.plans):
        for less in _simpler_plan(plan):
            yield act._replace(plans=(*act.plans[:number], less, *act.plans[number + 1 :]))


def _simpler_plan(plan: Plan) -> Iterator[Plan]:
    if plan.swallows:
        yield plan._replace(swallows=0)
    for claims in _without_runs(plan.task.claims):
        yield plan._replace(task=plan.task.replace(claims=claims))
    for after in _without_runs(plan.task.after):
        yield plan._replace(task=plan.task.replace(after=after))
    for given in _without_runs(plan.given):
        yield plan._replace(given=given)
    for number, course in enumerate(plan.courses):
        for less in _simpler_course(course):
            kept = (*plan.courses[:number], less, *plan.courses[number + 1 :])
            yield plan._replace(courses=kept)


def _simpler_course(course: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    yield from _without_runs(course)
    for number, step in enumerate(course):
        for plan_number, plan in enumerate(step.plans):
            for less in _simpler_plan(plan):
                plans = (*step.plans[:plan_number], less, *step.plans[plan_number + 1 :])
                yield (*course[:number], step._replace(plans=plans), *course[number + 1 :])
