"""Kill it anywhere, run it again, lose nothing: what users see of a journal."""

from __future__ import annotations

import asyncio
import enum
import logging
import os
import socket
import sqlite3
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from interlock import (
    AlreadyRunning,
    ChangedTask,
    DuplicateId,
    Handle,
    InterlockError,
    InvalidOption,
    Outcome,
    Rate,
    Retry,
    Runtime,
    State,
    Task,
    TaskContext,
    UnreadableJournal,
    UsageError,
    run,
)
from interlock.journal.reader import Reader
from interlock.journal.sqlite import SqliteJournal
from interlock.model.event import Event, Kind
from interlock.runtime.ports import Ports
from interlock.runtime.recovery import open_run
from tests.crash import Stay, killed, left_by_a_kill


class Verdict(BaseModel):
    text: str
    at: datetime


@dataclass(frozen=True)
class Finding:
    where: Path
    line: int


class Grade(enum.Enum):
    GOOD = "good"


async def echo(value: object) -> object:
    return value


# -- closed runs ----------------------------------------------------------------------------


async def test_a_run_of_27_with_one_failure_resumed_runs_exactly_one(tmp_path: Path) -> None:
    ran: list[int] = []

    async def work(number: int) -> int:
        ran.append(number)
        if number == 13 and len(ran) <= 27:
            raise OSError("not today")
        return number * 10

    async def program(resume: bool | None) -> tuple[str, list[Outcome[int]]]:
        async with Runtime(journal=tmp_path / "j.db", resume=resume) as rt:
            return rt.run_id, await rt.map(work, range(27))

    first, outcomes = await program(None)
    assert [each.task_id for each in outcomes if not each.succeeded] == ["work-14"]
    second, outcomes = await program(True)
    assert [each.result for each in outcomes] == [number * 10 for number in range(27)]
    assert ran == [*range(27), 13]
    assert first != second
    with Reader(tmp_path / "j.db") as reader:
        assert [(each.id, each.inherits, each.is_open) for each in reader.runs()] == [
            (first, None, False),
            (second, first, False),
        ]


async def test_the_same_program_run_tomorrow_is_a_new_run_and_does_its_work(tmp_path: Path) -> None:
    ran = []

    async def work() -> None:
        ran.append(1)

    for day in range(2):
        async with Runtime(journal=tmp_path / "j.db") as rt:
            await rt.submit(work)
        assert len(ran) == day + 1


async def test_a_run_that_goes_on_from_a_closed_one_and_is_killed_still_has_its_successes(
    tmp_path: Path,
) -> None:
    ran = []

    async def work(number: int) -> int:
        ran.append(number)
        return number

    journal = tmp_path / "j.db"
    async with Runtime(journal=journal) as rt:
        await rt.map(work, range(3))
    async with Runtime(journal=journal, resume=True) as rt:
        await rt.flush()
        copy = left_by_a_kill(journal)
    async with Runtime(journal=copy, resume=True) as rt:
        outcomes = await rt.map(work, range(4))
    assert [each.result for each in outcomes] == [0, 1, 2, 3]
    assert ran == [0, 1, 2, 3]


async def test_a_task_that_is_not_what_it_was_is_not_inherited(tmp_path: Path) -> None:
    for value in (1, 2):
        async with Runtime(journal=tmp_path / "j.db", resume=value == 2) as rt:
            assert (await rt.submit(echo, value, id="a")).result == value


async def test_a_name_cannot_be_used_twice_because_it_was_inherited(tmp_path: Path) -> None:
    async with Runtime(journal=tmp_path / "j.db") as rt:
        rt.submit(echo, 1, id="a")
    async with Runtime(journal=tmp_path / "j.db", resume=True) as rt:
        rt.submit(echo, 1, id="a")
        with pytest.raises(DuplicateId):
            rt.submit(echo, 1, id="a")


# -- unfinished runs ------------------------------------------------------------------------


async def test_what_had_ended_is_not_run_again_and_has_its_stored_outcome(tmp_path: Path) -> None:
    stay, ran = Stay(), []

    async def fails() -> None:
        ran.append("fails")
        raise ValueError("as always")

    async def works() -> str:
        ran.append("works")
        return "done"

    async def program(rt: Runtime) -> list[Handle[Any]]:
        handles: list[Handle[Any]] = [rt.submit(works), rt.submit(fails), rt.submit(stay)]
        for handle in handles[:2]:
            await handle
        await stay.began.wait()
        return handles

    copy = await killed(tmp_path / "j.db", program)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True) as rt:
        done, failed, again = await program(rt)
        assert (await done).result == "done"
        outcome = await failed
        assert outcome.error is not None
        assert (outcome.status, outcome.error.type) == (State.FAILED, "ValueError")
        assert outcome.exception is None  # only its record outlives the process
        assert (await again).attempts == 1  # one ended; the other was cut off
    assert ran == ["works", "fails"]
    assert stay.attempts == 2
    with Reader(copy) as reader:
        assert len(reader.runs()) == 1


@pytest.mark.parametrize(
    "value",
    [
        Verdict(text="fine", at=datetime(2026, 1, 2, tzinfo=UTC)),
        Finding(Path("src/a.py"), 7),
        Grade.GOOD,
        Path("a/b"),
        datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        timedelta(hours=1),
        {"nested": [(1, 2), {"x"}, b"raw", float("inf"), {3: Grade.GOOD}]},
        "x" * 200_000,
    ],
    ids=lambda value: type(value).__name__,
)
async def test_results_come_back_as_what_they_were(tmp_path: Path, value: object) -> None:
    stay = Stay()

    async def program(rt: Runtime) -> object:
        rt.submit(stay)
        return await rt.submit(echo, value).result()

    copy = await killed(tmp_path / "j.db", program)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True) as rt:
        again = await program(rt)
    assert again == value
    assert type(again) is type(value)


async def test_a_typed_result_is_of_its_type_even_if_the_journal_has_only_its_data(
    tmp_path: Path,
) -> None:
    class Local(BaseModel):  # nobody can find it by its name
        text: str

    async def work() -> object:
        return {"text": "x"}

    for resume in (False, True):
        async with Runtime(journal=tmp_path / "j.db", resume=resume) as rt:
            outcome = await rt.submit(work, output=Local)
            assert outcome.result == Local(text="x")


async def test_agents_that_are_objects_are_known_again(tmp_path: Path) -> None:
    stay, ran = Stay(), []

    class Agent:
        async def run(self, ctx: TaskContext) -> int:
            ran.append(ctx.task.id)
            return 1

    async def program(rt: Runtime) -> None:
        rt.submit(stay)
        assert (await rt.submit(Agent())).result == 1

    copy = await killed(tmp_path / "j.db", program)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True) as rt:
        await program(rt)
    assert ran == ["Agent"]


async def test_results_and_order_of_tasks_survive(tmp_path: Path) -> None:
    stay = Stay()
    got: list[object] = []

    async def collect(ctx: TaskContext, one: int, more: list[int]) -> list[str]:
        got.append((one, more))
        return sorted(ctx.results)

    async def program(rt: Runtime) -> Handle[list[str]]:
        a, b = rt.submit(echo, 1, id="a"), rt.submit(echo, 2, id="b")
        await a
        await b
        between = rt.submit(stay, after=["a"])
        return rt.submit(collect, a, [b], after=between)

    copy = await killed(tmp_path / "j.db", program)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True) as rt:
        last = await program(rt)
        assert (await last).result == ["Stay", "a", "b"]
    assert got == [(1, [2])]


async def test_names_that_were_made_up_are_the_same_again(tmp_path: Path) -> None:
    stay, ran = Stay(), []

    async def work(item: str) -> str:
        ran.append(item)
        return item

    async def program(rt: Runtime) -> list[str]:
        handles = [rt.submit(work, "x"), rt.submit(work, "y")]
        mapped = await rt.map(work, ["z", "w"], id="mapped-{item}")
        outcomes = [*mapped, *[await each for each in handles], *await rt.map(work, ["v"])]
        rt.submit(stay)
        return [each.task_id for each in outcomes]

    names: list[list[str]] = []

    async def first(rt: Runtime) -> None:
        names.append(await program(rt))

    copy = await killed(tmp_path / "j.db", first)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True) as rt:
        names.append(await program(rt))
    assert names[0] == names[1] == ["mapped-z", "mapped-w", "work", "work-2", "work-3"]
    assert len(ran) == 5


async def test_a_folder_that_the_task_has_made_does_not_make_it_another_task(
    tmp_path: Path,
) -> None:
    folder, stay = tmp_path / "work", Stay()
    folder.mkdir()

    async def build(ctx: TaskContext) -> None:
        (ctx.workspace / "build").mkdir()

    async def program(rt: Runtime) -> None:
        rt.submit(stay)
        assert (await rt.submit(build, writes="build")).succeeded

    copy = await killed(tmp_path / "j.db", program, workspace=folder)
    stay.may_end.set()
    async with Runtime(journal=copy, workspace=folder, resume=True) as rt:
        await program(rt)


async def test_a_kill_in_the_middle_of_a_checkpoint_is_no_damage(tmp_path: Path) -> None:
    journal, stay = tmp_path / "j.db", Stay()

    async def program(rt: Runtime) -> None:
        await rt.map(echo, range(200))
        rt.submit(stay)
        await stay.began.wait()

    copy = await killed(journal, program)
    # The first page has arrived in the file, and says that there are more; they are in the log.
    with open(copy, "r+b") as file:
        file.write(journal.read_bytes()[:4096])
    assert copy.stat().st_size < journal.stat().st_size
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True) as rt:
        await program(rt)


# -- attempts that were cut off -------------------------------------------------------------


async def test_the_third_cut_off_is_the_last(tmp_path: Path) -> None:
    journal = tmp_path / "j.db"
    for resume in (False, True, True):
        stay = Stay()

        async def program(rt: Runtime, stay: Stay = stay) -> None:
            rt.submit(stay, retry=Retry(2))
            await stay.began.wait()

        journal = await killed(journal, program, resume=resume)
    async with Runtime(journal=journal, resume=True) as rt:
        outcome = await rt.submit(Stay(), retry=Retry(2))
    assert outcome.error is not None
    assert (outcome.status, outcome.attempts) == (State.FAILED, 0)
    assert (outcome.error.type, outcome.error.retryable) == ("CutOff", False)
    assert "3 times" in outcome.error.message


async def _cut_off(tmp_path: Path) -> Path:
    stay = Stay()

    async def program(rt: Runtime) -> None:
        rt.submit(stay, id="a")
        await stay.began.wait()

    return await killed(tmp_path / "j.db", program)


def _ready() -> Stay:
    stay = Stay()
    stay.may_end.set()
    return stay


async def test_who_says_fail_has_cut_off_tasks_fail(tmp_path: Path) -> None:
    copy, stay = await _cut_off(tmp_path), _ready()
    async with Runtime(journal=copy, resume=True, on_interrupted="fail") as rt:
        outcome = await rt.submit(stay, id="a")
        after = await rt.submit(echo, 1, after="a")
    assert outcome.error is not None
    assert (outcome.error.type, stay.attempts) == ("CutOff", 0)
    assert (after.status, after.cause) == (State.SKIPPED, "a")


@pytest.mark.parametrize(("answer", "runs"), [("yes", 1), ("no, it is dangerous", 0)])
async def test_who_says_ask_is_asked_before_it_runs_again(
    tmp_path: Path, answer: str, runs: int
) -> None:
    copy, stay = await _cut_off(tmp_path), _ready()
    async with Runtime(journal=copy, resume=True, on_interrupted="ask") as rt:
        handle = rt.submit(stay, id="a")
        await rt.submit(echo, 1)  # others go on meanwhile
        (question,) = rt.questions()
        assert question.task_id == "a"
        assert stay.attempts == 0
        rt.answer("a", answer)
        outcome = await handle
    assert stay.attempts == runs
    assert outcome.succeeded is bool(runs)
    assert runs or "dangerous" in outcome.cause


async def test_who_was_asked_whether_it_may_run_again_is_not_asked_twice(tmp_path: Path) -> None:
    copy, hold = await _cut_off(tmp_path), Stay()
    options: dict[str, Any] = {"resume": True, "on_interrupted": "ask"}

    async def program(rt: Runtime) -> None:
        rt.submit(hold, id="hold", writes="x")
        await hold.began.wait()
        handle = rt.submit(Stay(), id="a")
        rt.set_capacity("slots", 1)
        assert handle.state is State.WAITING
        rt.answer("a", "yes")

    again = await killed(copy, program, max_parallel=1, **options)
    hold.may_end.set()
    async with Runtime(journal=again, max_parallel=2, **options) as rt:
        rt.submit(hold, id="hold", writes="x")
        rt.answer("hold", "yes")
        assert (await rt.submit(_ready(), id="a")).succeeded
        assert not rt.questions()


async def test_answers_that_were_given_are_not_asked_for_again(tmp_path: Path) -> None:
    stay = Stay()

    async def asks(ctx: TaskContext) -> list[str]:
        first = await ctx.ask("Which colour?")
        stay.began.set()
        await stay.may_end.wait()
        return [first, await ctx.ask("Which shape?")]

    async def program(rt: Runtime) -> None:
        handle = rt.submit(asks)
        async for event in rt.events():
            if event.kind == "needs_you":
                break
        rt.answer(handle, "blue")
        await stay.began.wait()

    copy = await killed(tmp_path / "j.db", program)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True) as rt:
        handle = rt.submit(asks)
        while not rt.questions():
            await rt.flush()
        assert [each.question for each in rt.questions()] == ["Which shape?"]
        rt.answer(handle, "round")
        assert (await handle).result == ["blue", "round"]


# -- children -------------------------------------------------------------------------------


async def test_children_of_a_cut_off_parent_are_not_run_again_if_they_succeeded(
    tmp_path: Path,
) -> None:
    stay, ran = Stay(), []

    async def step(name: str) -> str:
        ran.append(name)
        return name

    async def inner(ctx: TaskContext) -> list[object]:
        done = await ctx.submit(step, "deep").result()
        return [done, await ctx.submit(stay).result()]

    async def parent(ctx: TaskContext) -> list[object]:
        done = await ctx.submit(step, "first").result()
        return [done, *await ctx.submit(inner, id="inner").result()]

    async def program(rt: Runtime) -> None:
        rt.submit(parent)
        await stay.began.wait()

    copy = await killed(tmp_path / "j.db", program)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True) as rt:
        outcome = await rt.submit(parent)
        cut_off = rt.handle("inner").outcome
        assert cut_off is not None
        assert (cut_off.status, cut_off.cause) == (State.CANCELLED, "its parent was cut off")
    assert outcome.result == ["first", "deep", 2]
    assert ran == ["first", "deep"]


async def test_a_child_that_succeeded_under_a_second_name_is_known_by_it(tmp_path: Path) -> None:
    journal, ran = tmp_path / "j.db", []
    stays = [Stay(), Stay(), _ready()]

    async def child() -> str:
        ran.append(1)
        if len(ran) == 1:
            await stays[0].run(None)  # type: ignore[arg-type]
        return "done"

    for round_, resume in enumerate((False, True)):

        async def parent(ctx: TaskContext, stay: Stay = stays[round_]) -> str:
            value: str = await ctx.submit(child, id="child").result()
            await stay.run(ctx)
            return value

        async def program(rt: Runtime, stay: Stay = stays[round_]) -> None:
            rt.submit(parent, id="parent")
            await stay.began.wait()

        journal = await killed(journal, program, resume=resume, on_changed="rerun")

    async def last(ctx: TaskContext) -> str:
        value: str = await ctx.submit(child, id="child").result()
        return value

    async with Runtime(journal=journal, resume=True, on_changed="rerun") as rt:
        assert (await rt.submit(last, id="parent")).result == "done"
    assert len(ran) == 2  # "child" was cut off, "child~2" succeeded


# -- limits, counters and times -------------------------------------------------------------


async def test_backoff_attempts_tokens_usage_and_priority_go_on_where_they_were(
    tmp_path: Path,
) -> None:
    tokens: list[int] = []
    attempts: list[int] = []

    async def fails(ctx: TaskContext) -> None:
        tokens.append(ctx.token)
        attempts.append(ctx.attempt)
        ctx.usage(tokens_in=5)
        raise OSError("again")

    async def program(rt: Runtime) -> None:
        handle = rt.submit(fails, retry=Retry(3, backoff=0.2, jitter=0))
        rt.pause("fails")
        rt.prioritize(handle, 7)
        rt.resume("fails")
        async for event in rt.events():
            if event.kind == "retrying":
                until.append(event.at + 0.2)
                return

    until: list[float] = []
    copy = await killed(tmp_path / "j.db", program)
    async with Runtime(journal=copy, resume=True) as rt:
        handle = rt.submit(fails, retry=Retry(3, backoff=0.2, jitter=0))
        assert handle.task.priority == 7
        outcome = await handle
    with Reader(copy) as reader:
        events = reader.events(reader.runs()[0])
    starts = [event.at for event in events if event.kind == "started"]
    assert attempts == [1, 2, 3]
    assert tokens == sorted(set(tokens))
    assert outcome.attempts == 3
    assert outcome.usage.tokens_in == 15
    assert starts[1] >= until[0] - 1e-3


async def test_a_deadline_that_is_a_moment_is_the_one_that_was_said_last(tmp_path: Path) -> None:
    stay, later = Stay(), Stay()

    async def program(rt: Runtime) -> None:
        rt.submit(stay, deadline=datetime.now(UTC) + timedelta(hours=1))
        await stay.began.wait()

    copy = await killed(tmp_path / "j.db", program)
    async with Runtime(journal=copy, resume=True) as rt:
        handle = rt.submit(later, deadline=datetime.now(UTC) + timedelta(milliseconds=1))
        assert (await handle).status is State.TIMED_OUT


async def test_a_deadline_does_not_begin_anew(tmp_path: Path) -> None:
    stay = Stay()

    async def program(rt: Runtime) -> None:
        rt.submit(stay, deadline=0.1)
        await stay.began.wait()
        await rt.submit(echo, 1)

    copy = await killed(tmp_path / "j.db", program)
    async with Runtime(journal=copy, resume=True) as rt:
        handle = rt.submit(Stay(), deadline=0.1)
        outcome = await handle
    assert outcome.status is State.TIMED_OUT
    with Reader(copy) as reader:
        (found,) = reader.runs()
        assert outcome.ended_at is not None
        assert outcome.ended_at.timestamp() - found.started_at < 60


async def test_the_time_of_a_group_does_not_begin_anew(tmp_path: Path) -> None:
    stay = Stay()
    waiting: list[object] = []

    async def program(rt: Runtime) -> None:
        async def wait() -> None:
            await rt.run([Task("a", stay)], deadline=3600)

        waiting.append(asyncio.ensure_future(wait()))
        await stay.began.wait()

    copy = await killed(tmp_path / "j.db", program)
    waiting[0].cancel()  # type: ignore[attr-defined]
    async with Runtime(journal=copy, resume=True, ports=_later(3700)) as rt:
        result = await rt.run([Task("a", Stay())], deadline=3600)
    assert result["a"].status is State.TIMED_OUT


def _later(seconds: float) -> Ports:
    """The same world, some seconds later."""
    return Ports(wall=lambda: time.time() + seconds)


async def test_a_rate_knows_what_it_gave_out_before(tmp_path: Path) -> None:
    limits = {"api": Rate("2/h"), "slow": Rate("1/h")}

    async def takes(ctx: TaskContext) -> None:
        await ctx.acquire("api")

    async def program(rt: Runtime) -> None:
        await rt.submit(echo, 1, uses="api")
        await rt.submit(takes)
        rt.hold_rate("slow", 3600)

    copy = await killed(tmp_path / "j.db", program, limits=limits)
    async with Runtime(journal=left_by_a_kill(copy), resume=True, limits=limits) as rt:
        third = rt.submit(echo, 3, id="third", uses="api")
        held = rt.submit(echo, 4, id="held", uses="slow")
        await rt.flush()
        assert (third.state, held.state) == (State.WAITING, State.WAITING)
        rt.cancel(third)
        rt.cancel(held)
    ports = _later(3700)
    async with Runtime(journal=copy, resume=True, limits=limits, ports=ports) as rt:
        for name in ("api", "slow"):
            assert (await rt.submit(echo, 3, id=name, uses=name)).succeeded


async def test_a_capacity_stays_as_it_was_set(tmp_path: Path) -> None:
    async def program(rt: Runtime) -> None:
        rt.submit(stay, uses="gpu=1")
        rt.submit(echo, 1, id="waits", uses="gpu=1")
        rt.set_capacity("gpu", 0)
        rt.set_capacity("gone", 5)

    stay = Stay()
    copy = await killed(tmp_path / "j.db", program, capacity={"gpu": 1, "gone": 1})
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True, capacity={"gpu": 1}) as rt:
        rt.submit(stay, uses="gpu=1")
        waits = rt.submit(echo, 1, id="waits", uses="gpu=1")  # it was possible once
        await rt.flush()
        assert waits.state is State.WAITING
        rt.set_capacity("gpu", 1)
        assert (await waits).succeeded


# -- tasks that are not what they were, or nowhere ------------------------------------------


async def test_a_changed_task_is_refused_or_run_as_the_user_chooses(tmp_path: Path) -> None:
    copy = await _cut_off(tmp_path)
    async with Runtime(journal=left_by_a_kill(copy), resume=True) as rt:
        with pytest.raises(ChangedTask, match="'a' is not what it was"):
            rt.submit(echo, 1, id="a")
        rt.submit(_ready(), id="a")
    async with Runtime(journal=copy, resume=True, on_changed="rerun") as rt:
        assert (await rt.submit(echo, 1, id="a")).result == 1


async def test_options_that_do_not_change_the_work_can_change(tmp_path: Path) -> None:
    copy = await _cut_off(tmp_path)
    async with Runtime(journal=copy, resume=True) as rt:
        handle = rt.submit(_ready(), id="a", priority=3, timeout=60, retry=Retry(5), estimate=1)
        assert (await handle).succeeded


async def test_fewer_attempts_than_it_has_had_leave_it_one(tmp_path: Path) -> None:
    async def fails() -> None:
        raise OSError("again")

    async def program(rt: Runtime) -> None:
        rt.submit(fails, retry=Retry(3, backoff=3600))
        async for event in rt.events():
            if event.kind == "retrying":
                return

    copy = await killed(tmp_path / "j.db", program)
    async with Runtime(journal=copy, resume=True, ports=_later(4000)) as rt:
        outcome = await rt.submit(fails)
    assert (outcome.status, outcome.attempts) == (State.FAILED, 1)


async def test_tasks_that_nobody_brings_are_told_of_and_the_run_stays_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = await _cut_off(tmp_path)
    with caplog.at_level(logging.WARNING, logger="interlock"):
        async with Runtime(journal=copy, resume=True) as rt:
            assert rt.unsubmitted == ("a",)
            await rt.submit(echo, 1)
    assert "were not submitted again, and it stays open: a" in caplog.text
    with Reader(copy) as reader:
        (found,) = reader.runs()
        assert found.is_open
    async with Runtime(journal=copy, resume=True) as rt:
        await rt.submit(_ready(), id="a")
        rt.submit(echo, 1)
        assert rt.unsubmitted == ()
    with Reader(copy) as reader:
        assert not reader.runs()[0].is_open


# -- idempotency keys -----------------------------------------------------------------------


async def test_a_key_that_succeeded_is_not_run_again_in_any_run(tmp_path: Path) -> None:
    ran = []

    async def pay(amount: int) -> int:
        ran.append(amount)
        if len(ran) == 1:
            raise OSError("no connection")
        return amount

    statuses = []
    for name in ("a", "b", "c"):
        async with Runtime(journal=tmp_path / "j.db") as rt:
            outcome = await rt.submit(pay, 5, id=name, key="invoice-1")
            statuses.append((outcome.status, outcome.result))
    assert statuses == [(State.FAILED, None), (State.SUCCEEDED, 5), (State.SUCCEEDED, 5)]
    assert ran == [5, 5]


async def test_a_key_finds_its_unfinished_task_whatever_it_is_called_now(tmp_path: Path) -> None:
    stay = Stay()

    async def program(rt: Runtime) -> None:
        rt.submit(stay, id="monday", key="k")
        await stay.began.wait()

    copy = await killed(tmp_path / "j.db", program)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True) as rt:
        handle = rt.submit(stay, id="tuesday", key="k")
        assert handle.task_id == "monday"
        assert (await handle).succeeded
        assert rt.unsubmitted == ()


# -- what cannot or must not be stored ------------------------------------------------------


async def test_a_result_that_json_cannot_hold_is_refused_or_marked(tmp_path: Path) -> None:
    ran, stay = [], Stay()

    async def work() -> object:
        ran.append(1)
        return {"lock": threading.Lock()}

    async with Runtime(journal=tmp_path / "refused.db") as rt:
        outcome = await rt.submit(work)
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("NotStorable", False)
    assert "result['lock']" in outcome.error.message or "result.lock" in outcome.error.message

    async def program(rt: Runtime) -> None:
        rt.submit(stay)
        outcome = await rt.submit(work)
        assert outcome.succeeded
        assert isinstance(outcome.result, dict)

    copy = await killed(tmp_path / "marked.db", program, unserializable="mark")
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True, unserializable="mark") as rt:
        await program(rt)
    assert len(ran) == 3


async def test_secrets_reach_no_file(tmp_path: Path) -> None:
    secret, stay = "hunter2-and-more", Stay()

    async def work(ctx: TaskContext, login: dict[str, str]) -> str:
        ctx.log(f"using {secret}")
        stay.began.set()
        await stay.may_end.wait()
        return login["password"]

    async def program(rt: Runtime) -> None:
        rt.submit(work, {"password": secret}, prompt=f"{secret}!")
        await stay.began.wait()

    options: dict[str, Any] = {"secrets": [secret]}
    copy = await killed(tmp_path / "j.db", program, **options)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True, **options) as rt:
        handle = rt.submit(work, {"password": secret}, prompt=f"{secret}!")
        assert (await handle).result == secret  # this process has it
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes(), file.name


# -- files that are somebody else's ---------------------------------------------------------


async def test_a_second_coordinator_is_told_who_the_first_is(tmp_path: Path) -> None:
    async with Runtime(journal=tmp_path / "j.db") as rt:
        with pytest.raises(AlreadyRunning) as caught:
            async with Runtime(journal=tmp_path / "j.db"):
                raise AssertionError("it must not come in")
        assert (await rt.submit(echo, 1)).succeeded
    assert (caught.value.pid, caught.value.host) == (os.getpid(), socket.gethostname())
    assert datetime.fromisoformat(caught.value.since) <= datetime.now(UTC)
    async with Runtime(journal=tmp_path / "j.db"):
        pass


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    run([Task("a", echo, args=(1,))], journal=path)
    ours = path.read_bytes()
    with sqlite3.connect(tmp_path / "newer.db") as newer:
        newer.execute("CREATE TABLE t (x)")
        newer.execute("PRAGMA application_id = 1229736778")
        newer.execute("PRAGMA user_version = 999")
    newer.close()
    files = {
        "text.db": b"dear diary",
        "cut.db": ours[: len(ours) // 2 + 100],
        "flipped.db": ours[:100] + bytes(byte ^ 0xFF for byte in ours[100:160]) + ours[160:],
        "newer.db": (tmp_path / "newer.db").read_bytes(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        for resume in (False, True):
            with pytest.raises(UnreadableJournal, match=name):
                run([Task("a", echo, args=(1,))], journal=tmp_path / name, resume=resume)
        assert (tmp_path / name).read_bytes() == content, name


async def test_who_fails_to_begin_lets_go_of_the_journal(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run 'nobody'"):
        async with Runtime(journal=tmp_path / "j.db", resume="nobody"):
            raise AssertionError("there is nothing to resume")
    async with Runtime(journal=tmp_path / "j.db", resume=True) as rt:  # the first one is new
        assert (await rt.submit(echo, 1)).succeeded


async def test_resume_begins_with_a_new_run_where_there_is_none(tmp_path: Path) -> None:
    for _ in range(2):
        async with Runtime(journal=tmp_path / "j.db", resume=True) as rt:
            assert (await rt.submit(echo, 1)).succeeded


async def test_resume_open_takes_up_what_was_cut_off_and_inherits_nothing_from_what_ended(
    tmp_path: Path,
) -> None:
    stay = Stay()
    stay.may_end.set()
    async with Runtime(journal=tmp_path / "journal.db", resume="open") as rt:
        first = rt.run_id
        assert (await rt.submit(stay, id="a")).result == 1

    async def begins(rt: Runtime) -> None:
        assert rt.run_id != first
        assert (await rt.submit(stay, id="a")).result == 2  # in a new run, so it runs
        stay.may_end.clear()
        stay.began.clear()
        rt.submit(stay, id="b")
        await stay.began.wait()

    copy = await killed(tmp_path / "journal.db", begins, resume="open")
    stay.may_end.set()
    async with Runtime(journal=copy, resume="open") as rt:
        assert rt.unsubmitted == ("b",)
        assert (await rt.submit(stay, id="a")).result == 2  # the same run: it has its outcome
        assert (await rt.submit(stay, id="b")).result == 4
    with Reader(copy) as reader:
        assert [each.inherits for each in reader.runs()] == [None, None]


async def test_an_unfinished_run_is_not_passed_over_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = await _cut_off(tmp_path)
    with caplog.at_level(logging.WARNING, logger="interlock"):
        async with Runtime(journal=copy) as rt:
            await rt.submit(echo, 1)
    assert "is unfinished, and this is a new run" in caplog.text


async def test_a_program_that_fails_half_way_leaves_what_it_brought_unfinished(
    tmp_path: Path,
) -> None:
    copy = await _cut_off(tmp_path)
    with pytest.raises(ChangedTask):
        async with Runtime(journal=copy, resume=True, max_parallel=1) as rt:
            held = rt.submit(asyncio.Event().wait, id="held")
            rt.submit(echo, 1, id="b", after=[held])
            rt.submit(echo, 1, id="a")
    with Reader(copy) as reader:
        (run,) = reader.runs()
        assert {each.state for each in reader.tasks(run) if each.task_id == "b"} <= {State.BLOCKED}


# -- retention ------------------------------------------------------------------------------


async def test_old_runs_are_forgotten_and_what_an_open_one_inherits_is_not(tmp_path: Path) -> None:
    ids = []
    for resume in (None, None, True):
        async with Runtime(journal=tmp_path / "j.db", resume=resume) as rt:
            await rt.submit(echo, 1)
            ids.append(rt.run_id)
            if resume:
                assert await rt.prune(keep=0) == 1
                assert await rt.prune(age=0) == 0
    async with Runtime(journal=tmp_path / "j.db", resume=ids[1]) as rt:
        assert (await rt.submit(echo, 1)).succeeded


async def test_a_thousand_former_runs_are_taken_over_in_one_go(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with Runtime(journal=path) as rt:
        await rt.submit(echo, 1, id="first")
        last = rt.run_id
    journal = SqliteJournal(path, durability="normal")
    for number in range(1_000):
        name = f"run-{number}"
        await journal.begin(name, float(number), inherits=last)
        await journal.append([Event(1, float(number), Kind.RUN_ENDED, "", {})])
        last = name
    looked: list[str] = []
    journal.read._connection.set_trace_callback(looked.append)
    found = open_run._successes(journal.read, last)
    journal.close()
    assert found["first"].outcome.result == 1
    assert len(looked) < 1_010  # one for the list, one for each run, and the outcome
    async with Runtime(journal=path, resume=True) as rt:
        assert (await rt.submit(echo, 1, id="first")).result == 1


async def test_what_was_done_in_one_workspace_is_not_done_in_another(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with Runtime(journal=tmp_path / "j.db", workspace=here) as rt:
        await rt.submit(echo, 1, id="a", writes="out")
    with pytest.raises(UsageError, match="workspace") as caught:
        async with Runtime(journal=tmp_path / "j.db", workspace=there, resume=True):
            pytest.fail("it was let in")
    assert str(here) in str(caught.value)
    assert str(there) in str(caught.value)
    async with Runtime(journal=tmp_path / "j.db", workspace=here, resume=True) as rt:
        assert (await rt.submit(echo, 1, id="a", writes="out")).result == 1


async def test_of_two_coordinators_with_one_journal_the_older_one_stops(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    old = Runtime(journal=path)
    with pytest.raises(InterlockError, match="another coordinator has taken it over") as caught:
        async with old:
            await old.submit(echo, 1, id="a")
            (tmp_path / "j.db.lock").unlink()
            async with Runtime(journal=path, resume=True) as new:
                assert (await new.submit(echo, 1, id="a")).result == 1
                with pytest.raises(InterlockError, match="another coordinator"):
                    await old.submit(echo, 2, id="b")
                assert (await new.submit(echo, 3, id="c")).result == 3
    assert "a bug in Interlock" not in str(caught.value)


# -- strangers ------------------------------------------------------------------------------


@dataclass
class HalfMade:
    x: int
    y: int = field(init=False)


class Unwilling:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"not configured: {name}")


@pytest.mark.parametrize("stranger", [HalfMade(1), Unwilling()], ids=["half-made", "unwilling"])
async def test_a_result_that_cannot_be_read_fails_its_own_task_alone(
    tmp_path: Path, stranger: object
) -> None:
    async with Runtime(journal=tmp_path / "j.db") as rt:
        bad = await rt.submit(echo, stranger, id="bad")
        good = await rt.submit(echo, 1, id="good")
    assert bad.status is State.FAILED
    assert bad.error is not None
    assert bad.error.type == "NotStorable"
    assert good.result == 1


# -- names ----------------------------------------------------------------------------------


async def test_a_name_with_a_secret_in_it_is_refused_and_not_repeated(tmp_path: Path) -> None:
    secret = "hunter22"
    async with Runtime(journal=tmp_path / "j.db", secrets=[secret]) as rt:
        records = rt.records("notes")
        for refused in (
            lambda: rt.submit(echo, 1, id=f"deploy-{secret}"),
            lambda: rt.submit(echo, 1, id="a", key=f"send:{secret}"),
            lambda: rt.records(secret),
        ):
            with pytest.raises(InvalidOption, match="contains one of the secrets") as caught:
                refused()
            assert secret not in str(caught.value)
        with pytest.raises(InvalidOption, match="contains one of the secrets") as caught:
            await records.put(secret, 1)
        assert secret not in str(caught.value)
        assert (await rt.submit(echo, secret, id="a")).succeeded


async def test_an_id_with_half_a_character_is_refused_where_it_has_to_be_found_again(
    tmp_path: Path,
) -> None:
    odd = "caf\udce9.txt"
    async with Runtime(journal=tmp_path / "j.db") as rt:
        with pytest.raises(InvalidOption, match="half a character"):
            rt.submit(echo, 1, id=odd)
    async with Runtime() as rt:
        assert (await rt.submit(echo, 1, id=odd)).result == 1
