"""What must hold after a kill, judged by the facts and by the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interlock.journal.reader import Reader, Run
from interlock.journal.schema.codec import Codec
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome, State
from interlock.runtime.recorded_types import RECORDED_TYPES
from interlock.runtime.recovery.known_tasks import CUT_OFF_AT_MOST
from interlock.testing.replay import replay
from tests.faults.kill_program import TRIES, Line, lines

_ENDS = (Kind.SETTLED, Kind.REUSED)


def violations(folder: Path, *, closed: bool) -> Iterator[str]:
    """Every rule that was broken; `closed`: the run will have no further life."""
    facts = lines(folder)
    yield from _of_the_facts(facts)
    journal = folder / "journal.db"
    if not journal.exists():
        if any(line.what == "ack" for line in facts):
            yield "something was acknowledged, and there is no journal"
        return
    with Reader(journal, Codec(RECORDED_TYPES)) as reader:
        earlier: dict[str, Outcome[Any]] = {}
        for run in reader.runs():
            own = [line for line in facts if line.run == run.id]
            yield from _of_a_run(reader, run, own, earlier)
        if closed:
            run = reader.runs()[-1]
            open_ = [row.task_id for row in reader.tasks(run) if not row.state.is_end]
            if run.is_open or open_:
                yield f"the program has ended, and {open_ or 'the run'} has not"
    if closed:
        yield from map(str, replay(journal))


def _of_the_facts(facts: list[Line]) -> Iterator[str]:
    told: dict[tuple[str, str], tuple[str, ...]] = {}
    cancelled: set[tuple[str, str]] = set()
    answered: set[str] = set()
    keys: set[str] = set()
    key_of: dict[str, str] = {}
    highest, life_before, earlier = 0, -1, 0
    ran: Counter[tuple[str, str]] = Counter()
    for line in facts:
        task = (line.run, line.task)
        if line.life != life_before:
            life_before, earlier = line.life, highest
        if line.what == "error":
            yield f"life {line.life} ended with {line.more[0]}"
        elif line.what == "ran":
            token, attempt, key = int(line.more[0]), int(line.more[1]), line.more[2]
            ran[task] += 1
            key_of[line.task] = key
            if told.get(task, ("",))[0] == State.SUCCEEDED:
                yield f"{line.task} had succeeded, and ran again in life {line.life}"
            if task in cancelled:
                yield f"{line.task} was cancelled, and ran in life {line.life}"
            if key and key in keys:
                yield f"key {key} had succeeded, and ran again in life {line.life}"
            if token <= earlier:
                yield f"{line.task} has token {token}; an earlier life had {earlier}"
            if attempt > TRIES or ran[task] > TRIES + CUT_OFF_AT_MOST:
                yield f"{line.task} ran {ran[task]} times, attempt {attempt}"
            highest = max(highest, token)
        elif line.what == "told":
            if told.setdefault(task, line.more) != line.more:
                yield f"{line.task} was told as {told[task]}, then as {line.more}"
            if line.more[0] == State.SUCCEEDED and key_of.get(line.task):
                keys.add(key_of[line.task])
            if task in cancelled and line.more[0] != State.CANCELLED:
                yield f"{line.task} was cancelled, and is {line.more[0]}"
        elif line.what == "ack" and line.more == ("cancelled",):
            cancelled.add(task)
        elif line.what == "ack" and line.more == ("answered",):
            if line.run in answered:
                yield f"what was answered was asked again in life {line.life}"
            answered.add(line.run)


def _of_a_run(
    reader: Reader, run: Run, facts: list[Line], earlier: dict[str, Outcome[Any]]
) -> Iterator[str]:
    events = list(reader.all_events(run))
    numbers = [event.number for event in events]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"run {run.id} has gaps in its events"
    started = {event.data.token for event in events if event.kind is Kind.STARTED}
    ends = Counter(event.task_id for event in events if event.kind in _ENDS)
    yield from (f"{task} has {count} ends" for task, count in ends.items() if count > 1)
    yield from _not_lost(events, facts, earlier)
    for line in facts:
        if line.what == "ran" and int(line.more[0]) not in started:
            yield f"{line.task} ran with token {line.more[0]}, which the journal does not know"


def _not_lost(
    events: list[Event], facts: list[Line], earlier: dict[str, Outcome[Any]]
) -> Iterator[str]:
    submitted = {event.task_id for event in events if event.kind is Kind.SUBMITTED}
    # What an earlier run did is durable there, and told before it is recorded in this one.
    outcomes = earlier
    outcomes |= {event.task_id: event.data for event in events if event.kind in _ENDS}
    for line in facts:
        if line.what == "ack" and line.more == ("submitted",) and line.task not in submitted:
            yield f"{line.task} was acknowledged, and is lost"
        if line.what == "told":
            found = outcomes.get(line.task)
            if found is None:
                yield f"the outcome of {line.task} was told, and is lost"
            elif (str(found.status), str(found.result)) != line.more[:2]:
                yield f"{line.task} was told as {line.more}, and is {found}"
