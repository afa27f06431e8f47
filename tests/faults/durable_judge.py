"""What must hold of a durable world, judged by its facts and by its journal.

The numbers are those of the statements in docs/architecture.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from interlock.journal.reader import Reader, Run
from interlock.journal.schema.codec import Codec
from interlock.kernel import stimuli as s
from interlock.model.conflict import conflicts
from interlock.model.event import Event, Kind
from interlock.model.outcome import State
from interlock.model.task import Task
from interlock.runtime.recorded_types import RECORDED_TYPES
from interlock.runtime.recovery.known_tasks import CUT_OFF_AT_MOST, fold_run
from tests.faults.durable_scenarios import DEADLINE, TRIES
from tests.faults.durable_world import DOWN, RATE, DurableWorld, Fact

_ENDS = (Kind.SETTLED, Kind.REUSED)
_PROMISES = ("submitted", "cancelled", "answered", "told")
_A_MOMENT = 0.05
"""A grant takes effect some commits later: 1 ms each, or 10 if the first try fails."""


def violations(world: DurableWorld, *, late: float = _A_MOMENT) -> Iterator[str]:
    """Every rule that was broken, once the program has ended.

    `late` is how long the disk may have kept an effect waiting, in seconds.
    """
    facts = world.facts
    yield from (f"{fact}" for fact in facts if fact.what in ("clash", "crowd"))
    yield from _done_is_done(facts)
    yield from _tokens_grow(facts)
    yield from _rates(facts, late)
    # A crash may come after the run was closed: what did not succeed is then tried in a new run.
    for run_id in dict.fromkeys(fact.run for fact in facts):
        own = [fact for fact in facts if fact.run == run_id]
        yield from _told_is_over(own)
        yield from _attempts(own)
        yield from _times(own, late)
    yield from lost(world)
    with Reader(world.path, Codec(RECORDED_TYPES)) as reader:
        last = reader.last_run()
        if last is None or last.is_open:
            yield "the program has ended, and its run has not"


def lost(world: DurableWorld) -> Iterator[str]:
    """What is missing or wrong in the journal; may also be checked right after a crash."""
    known: set[tuple[str, str]] = set()
    started: set[int] = set()
    if world.path.exists():
        with Reader(world.path, Codec(RECORDED_TYPES)) as reader:
            for run in reader.runs():
                events = list(reader.all_events(run))
                yield from _of_a_run(run, events)
                yield from _prefixes(run, events)
                known.update(map(_what, events))
                started |= {event.data.token for event in events if event.kind is Kind.STARTED}
    yield from _nothing_lost(world.facts, known, started)


def _what(event: Event) -> tuple[str, str]:
    """An event in the words of the facts."""
    if event.kind in _ENDS:
        return str(event.data.status), event.task_id
    return "answered" if isinstance(event.data, s.Answer) else event.kind, event.task_id


def _done_is_done(facts: Iterable[Fact]) -> Iterator[str]:
    """7, 8: what has succeeded, or its key, never runs again, in whichever run."""
    done: set[str] = set()
    for fact in facts:
        if fact.what == "told" and fact.more[0] == State.SUCCEEDED:
            done.add(fact.more[2] or fact.task)
        elif fact.what == "ran" and (fact.more[3] or fact.task) in done:
            yield f"{fact} although it had succeeded"


def _told_is_over(facts: Iterable[Fact]) -> Iterator[str]:
    """5, 7: what was told or acknowledged stays so, and does not run again."""
    over: dict[str, tuple[object, ...]] = {}
    cancelled: set[str] = set()
    answered = 0
    for fact in facts:
        if fact.what == "ran":
            name = fact.more[3] or fact.task
            if name in over or name in cancelled:
                yield f"{fact} although it was {over.get(name, 'cancelled')}"
        elif fact.what == "told":
            name = fact.more[2] or fact.task
            if over.setdefault(name, fact.more) != fact.more:
                yield f"{fact} although it was told as {over[name]}"
            if name in cancelled and fact.more[0] != State.CANCELLED:
                yield f"{fact} although it was cancelled"
        elif fact.what == "cancelled":
            cancelled.add(fact.task)
        elif fact.what == "answered":
            answered += 1
            if answered > 1:
                yield f"{fact} although it was answered before"


def _tokens_grow(facts: Iterable[Fact]) -> Iterator[str]:
    """3: no token twice, and every life continues above the tokens before it."""
    seen: set[int] = set()
    life, below = 0, 0
    for fact in facts:
        if fact.life != life:
            life, below = fact.life, max(seen, default=0)
        if fact.what == "ran":
            token = fact.more[0]
            if token in seen or token <= below:
                yield f"{fact}: its token is not new"
            seen.add(token)


def _attempts(facts: Iterable[Fact]) -> Iterator[str]:
    """11: no more attempts than the task has; those cut off by a crash count apart."""
    ran: Counter[tuple[str, int]] = Counter()
    for fact in facts:
        if fact.what == "ran":
            _, attempt, most, _ = fact.more
            ran[fact.task, attempt] += 1
            if attempt > most:
                yield f"{fact}: there are {most} attempts"
    tasks = {task for task, _ in ran}
    for task in tasks:
        more = sum(count - 1 for (name, _), count in ran.items() if name == task)
        if more > CUT_OFF_AT_MOST:
            yield f"{task} was cut off {more} times, and tried again"


def _rates(facts: Iterable[Fact], late: float) -> Iterator[str]:
    """10: the window of a rate spans lives."""
    took: list[float] = []
    for fact in facts:
        if fact.what == "took":
            took.append(fact.at)
            if len(took) > RATE.amount:
                window = fact.at - took[-RATE.amount - 1]
                if window < RATE.window - late:
                    yield f"{fact}: {RATE.amount + 1} of them in {window:g} s"


def _times(facts: Iterable[Fact], late: float) -> Iterator[str]:
    """12, 13: backoffs and deadlines span lives."""
    failed: dict[tuple[str, int], float] = {}
    submitted: dict[str, Fact] = {}
    told: set[str] = set()
    for fact in facts:
        if fact.what == "failed":
            failed[fact.task, fact.more[0]] = fact.at
        elif fact.what == "ran" and fact.more[1] > 1:
            before = fact.more[1] - 1
            earliest = failed[fact.task, before] + TRIES.wait(before, 1.0)
            if fact.at < earliest:
                yield f"{fact}, which is {earliest - fact.at:g} s early"
        elif fact.what == "submitted":
            submitted.setdefault(fact.task, fact)
        elif fact.what == "told" and fact.task not in told:
            told.add(fact.task)
            if fact.more[0] == State.TIMED_OUT and fact.task in submitted:
                # The deadline may pass between two lives.
                first = submitted[fact.task]
                until = first.at + DEADLINE + (fact.life - first.life) * DOWN + late
                if fact.at > until:
                    yield f"{fact}, which is {fact.at - until:g} s late"


def _of_a_run(run: Run, events: list[Event]) -> Iterator[str]:
    """5: one end for each task of a closed run, and no event missing."""
    if [event.number for event in events] != list(range(1, len(events) + 1)):
        yield f"run {run.id} has gaps in its events"
    ends = Counter(event.task_id for event in events if event.kind in _ENDS)
    for task in {event.task_id for event in events if event.kind is Kind.SUBMITTED}:
        if ends[task] > 1 or not (ends[task] or run.is_open):
            yield f"{task} has {ends[task]} ends in run {run.id}"
    interrupted = Counter(event.task_id for event in events if event.kind is Kind.INTERRUPTED)
    for task, count in interrupted.items():
        if count > CUT_OFF_AT_MOST:
            yield f"{task} was cut off {count} times"


def _prefixes(run: Run, events: list[Event]) -> Iterator[str]:
    """2: each prefix can be resumed, and shows all claims of a task granted or none."""
    past = fold_run(run.started_at, ())
    tasks: dict[str, Task] = {}
    holds: dict[str, Task] = {}
    for event in events:
        past.take(event)  # Raises at a task that was never submitted.
        if event.kind is Kind.SUBMITTED:
            tasks[event.task_id] = event.data
        elif event.kind is Kind.STARTED:
            mine = tasks[event.task_id].claims
            for name, other in holds.items():
                if any(conflicts(a, b) for a in mine for b in other.claims if a.is_path):
                    yield f"event {event.number} starts {event.task_id} while {name} holds that"
            holds[event.task_id] = tasks[event.task_id]
        elif event.kind in (Kind.ENDED, Kind.ATTEMPT_EXITED, Kind.INTERRUPTED):
            holds.pop(event.task_id, None)


def _nothing_lost(
    facts: Iterable[Fact], known: set[tuple[str, str]], started: set[int]
) -> Iterator[str]:
    """6, 7: what had an effect is in the journal."""
    for fact in facts:
        if fact.what == "ran" and fact.more[0] not in started:
            yield f"{fact} without a durable start"
        what = fact.more[0] if fact.what == "told" else fact.what
        if fact.what in _PROMISES and (what, fact.task) not in known:
            yield f"{fact}, and is lost"
