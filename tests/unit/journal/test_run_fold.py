"""What is told of a run is what the runtime says of it, live and from the journal."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import AgentFailed, Event, Kind, Outcome, Retry, Runtime, State, Task, TaskContext
from interlock.journal.reader import Reader
from interlock.journal.schema.codec import Codec
from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.journal.state.run_fold import RunFold, said, shown
from interlock.model.claim import read, uses, write
from interlock.runtime.recorded_types import RECORDED_TYPES


@pytest.fixture(autouse=True)
def _workspace(workspace: Path) -> None:
    """A folder for the journals."""


def of(facts: RunFacts, task_id: str) -> TaskFacts:
    (found,) = [task for task in facts.tasks if task.id == task_id]
    return found


class Watched:
    """A run, and what is told of it."""

    def __init__(self, rt: Runtime) -> None:
        self.fold = RunFold(rt.run_id, 0.0)
        rt.listen(self.heard)

    def heard(self, event: Event) -> None:
        self.fold.take((event,))

    def facts(self) -> RunFacts:
        return self.fold.facts(0.0)


def from_journal(path: str) -> RunFacts:
    with Reader(path, Codec(RECORDED_TYPES)) as reader:
        run = reader.last_run()
        assert run is not None
        return RunFold(run.id, 0.0).take(reader.all_events(run)).facts(0.0)


async def test_every_state_is_told_as_the_runtime_counts_it() -> None:
    may_end = asyncio.Event()

    async def held(ctx: TaskContext) -> str:
        ctx.report(0.5, "half way")
        ctx.log("a line")
        ctx.usage(tokens_in=10, tokens_out=5, cost=0.25)
        await may_end.wait()
        return "done"

    async def fails() -> None:
        raise AgentFailed("no line", retryable=False)

    async def tries() -> None:
        raise ValueError("again")

    async def asks(ctx: TaskContext) -> str:
        return await ctx.ask("May I?")

    async with Runtime(journal="j.db", max_parallel=4) as rt:
        watched = Watched(rt)
        rt.submit_all(
            [
                Task("held", held, prompt="do it", claims=[write("src/**")], labels={"agent": "x"}),
                Task("waits", fails, claims=[write("src/a")], priority=-3, estimate=5.0),
                Task("after", fails, after=["held"]),
                Task("fails", fails),
                Task("skipped", fails, after=["fails"]),
                Task("tries", tries, retry=Retry(attempts=2, backoff=1000)),
                Task("asks", asks),
            ]
        )
        async for _ in rt.events():
            counts = rt.progress()
            if counts.retrying and counts.needs_you and counts.skipped and counts.waiting:
                break
        await rt.flush()
        facts = watched.facts()
        assert facts.progress == rt.progress()
        assert facts.progress == from_journal("j.db").progress
        task = of(facts, "held")
        assert (task.state, task.agent, task.prompt) == (State.RUNNING, "x", "do it")
        assert (task.fraction, task.tokens, task.cost) == (0.5, 15, 0.25)
        assert (task.message, task.claims, task.attempt) == ("a line", ("writes src/**",), 1)
        waits = of(facts, "waits")
        assert (waits.priority, waits.estimate) == (-3, 5.0)
        assert of(facts, "after").after == ("held",)
        assert of(facts, "asks").question == "May I?"
        assert of(facts, "tries").error == "again"
        assert facts.slots == 4
        rt.prioritize("waits", -4)
        rt.pause()
        rt.answer("asks", "yes")
        await rt.flush()
        assert of(watched.facts(), "waits").priority == -4
        assert watched.facts().paused
        rt.resume()
        rt.cancel("tries", "by me")
        may_end.set()
    facts = watched.facts()
    assert facts == from_journal("j.db")
    assert facts.progress.total == facts.progress.ended == 7
    assert not facts.paused
    assert not facts.draining
    assert not facts.active
    assert facts.ended_at is not None
    assert of(facts, "held").output == "done"
    assert of(facts, "skipped").cause == "fails"
    assert (of(facts, "tries").state, of(facts, "tries").cause) == (State.CANCELLED, "by me")
    assert (of(facts, "fails").error_type, of(facts, "fails").error) != ("", "")
    assert of(facts, "asks").question == ""


async def test_what_was_told_to_stop_is_stopping_until_it_is_gone() -> None:
    stuck = asyncio.Event()
    told = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.set()
            await stuck.wait()

    async with Runtime() as rt:
        watched = Watched(rt)
        handle = rt.submit(stubborn, id="a")
        async for event in rt.events():
            if event.kind is Kind.STARTED:
                break
        handle.cancel()
        await told.wait()
        await handle
        assert of(watched.facts(), "a").stopping
        assert watched.facts().progress == rt.progress()
        assert watched.facts().progress.zombies == 1
        stuck.set()
    assert not of(watched.facts(), "a").stopping


def test_time_that_a_person_took_is_nobodys_work() -> None:
    fold = RunFold("r", 0.0)
    times = {Kind.SUBMITTED: 0.0, Kind.STARTED: 10.0, Kind.NEEDS_YOU: 15.0, Kind.RUNNING: 95.0}

    async def agent() -> None:
        """Never called."""

    data: dict[Kind, Any] = {Kind.SUBMITTED: Task("a", agent), Kind.STARTED: {"attempt": 1}}
    for number, (kind, at) in enumerate(times.items(), start=1):
        fold.take([Event(number, at, kind, "a", data.get(kind))])
    fold.take([Event(9, 100.0, Kind.SETTLED, "a", Outcome("a", State.SUCCEEDED, duration=90.0))])
    assert of(fold.facts(100.0), "a").duration == 10.0
    assert fold.last == 9


def test_an_event_about_a_task_that_is_not_known_changes_nothing() -> None:
    fold = RunFold("r", 0.0)
    for kind in Kind:
        if kind not in (Kind.RUN_STARTED, Kind.RUN_ENDED, Kind.SUBMITTED, Kind.COMMAND):
            fold.take([Event(1, 1.0, kind, "nobody", {"attempt": 1, "token": 1, "gone": True})])
    assert fold.facts(1.0).tasks == ()


def test_claims_are_told_as_people_write_them() -> None:
    claims = [
        write("src/**"),
        read("docs/"),
        uses("gpu"),
        uses("gpu", 2),
        uses("db", exclusive=True),
    ]
    assert [said(claim) for claim in claims] == [
        "writes src/**",
        "reads docs/",
        "uses gpu",
        "uses gpu=2",
        "uses db!",
    ]


def test_a_result_is_told_as_text_and_not_at_length() -> None:
    assert shown(None) == ""
    assert shown("as it is") == "as it is"
    assert shown({"ä": [1, None]}) == '{"ä": [1, null]}'
    assert shown(Path("x")) == '"x"'
    assert len(shown("x" * 10_000)) == 2_000
    cycle: list[Any] = []
    cycle.append(cycle)
    assert shown(cycle) == "[[...]]"
