"""The story of a run as text: what was asked for, and what happened."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome
from tests.simulation.narration import brief
from tests.simulation.runtime.play import Play
from tests.simulation.runtime.story import RunPlan, RunStep, RunStory


def heading(story: RunStory) -> Iterator[str]:
    """What the user and the agents of a story do."""
    yield f"run {story.seed}: slots {story.slots}, grace {story.grace:g}, {story.capacity}"
    if story.journal_takes:
        yield f"the journal takes {story.journal_takes:g} s"
    yield f"the block is left {story.leaves}"
    for act in story.acts:
        about = [act.task_id, act.name, str(act.amount or ""), f"patience {act.patience}"]
        said = " ".join(each for each in about if each and each != "patience None")
        yield f"{act.at:9.3f}  {act.kind} {said}".rstrip()
        for plan in act.plans:
            yield from _plan(plan, 13)


def _plan(plan: RunPlan, indent: int) -> Iterator[str]:
    space = " " * indent
    swallows = f", swallows {plan.swallows} cancellations" if plan.swallows else ""
    yield f"{space}{brief(plan.task)}; in a {plan.place}{swallows}"
    for number, course in enumerate(plan.courses):
        yield f"{space}  attempt {number + 1}: {', then '.join(map(_step, course)) or 'nothing'}"
        for step in course:
            for child in step.plans:
                yield from _plan(child, indent + 4)


def _step(step: RunStep) -> str:
    parts = [
        step.path,
        f"{step.seconds:g} s" if step.seconds else "",
        ", ".join(map(str, step.claims)),
        ", ".join(step.tasks),
        ", ".join(each.task.id for each in step.plans),
        ", ".join(map(_step, step.steps)),
        f"for at most {step.patience:g} s" if step.patience is not None else "",
    ]
    return " ".join([step.kind, *(each for each in parts if each)])


def lines(play: Play) -> Iterator[str]:
    """What came of it: the events of the journal, and when agents were at work."""
    yield "what happened:"
    for at, event in play.record.events:
        yield f"{at.time:9.3f}  {event.kind} {event.task_id} {_detail(event)}".rstrip()
    for visit in play.record.site.visits:
        yield f"{visit.began.time:9.3f}  the agent of {visit}"


def _detail(event: Event) -> str:
    if isinstance(event.data, Outcome):
        return f"{event.data.status} {event.data.reason}"
    if event.kind in (Kind.SUBMITTED, Kind.RUN_STARTED, Kind.RUN_ENDED):
        return ""
    shown = {name: value for name, value in event.fields.items() if name != "task_id" and value}
    return ", ".join(f"{name} {brief(value)}" for name, value in shown.items())
