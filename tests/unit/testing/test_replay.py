"""Replay finds what somebody has changed in a journal."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Rate, Retry, Runtime, TaskContext
from interlock.errors import UnreadableJournal
from interlock.journal.rows import checksum
from interlock.testing.replay import replay
from tests.crash import Stay, killed


async def echo(value: int) -> int:
    return value


async def flaky(ctx: TaskContext) -> int:
    if ctx.attempt == 1:
        raise OSError("the first time")
    await ctx.extend(writes="more")
    return ctx.attempt


async def parent(ctx: TaskContext) -> list[int | None]:
    taken = await ctx.acquire("api")
    taken.used(requests=1)
    return [each.result for each in await ctx.map(echo, range(3))]


async def _story(rt: Runtime) -> None:
    first = rt.submit(echo, 1, id="first", writes="a")
    rt.submit(flaky, retry=Retry(2, 0.01), writes="a", after=first)
    await rt.submit(parent, timeout=60)
    rt.cancel(rt.submit(echo, 2, id="unwanted", after="flaky"))
    await rt.submit(echo, 3, id="last", after="flaky")


async def _two_lives(folder: Path) -> Path:
    stay = Stay()
    limits = {"api": Rate("100/s")}

    async def program(rt: Runtime) -> None:
        await _story(rt)
        rt.submit(stay)
        await stay.began.wait()

    copy = await killed(folder / "j.db", program, limits=limits)
    stay.may_end.set()
    async with Runtime(journal=copy, resume=True, limits=limits) as rt:
        await program(rt)
    return copy


async def test_all_sessions_of_a_run_replay(tmp_path: Path) -> None:
    assert replay(await _two_lives(tmp_path)) == []


def _tamper(path: Path, kind: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the last event of a kind, with a checksum that fits."""
    with sqlite3.connect(path) as database:
        place, at, task_id, text = database.execute(
            "SELECT seq, at, task_id, data FROM events WHERE kind = ? ORDER BY seq DESC", (kind,)
        ).fetchone()
        data = json.loads(text)
        change(data)
        text = json.dumps(data)
        database.execute(
            "UPDATE events SET data = ?, checksum = ? WHERE seq = ?",
            (text, checksum(text, None, place, at, kind, task_id), place),
        )
    database.close()


def _other_token(data: dict[str, Any]) -> None:
    data["of"]["token"] += 1


def _failed(data: dict[str, Any]) -> None:
    data["of"]["status"] = "failed"


@pytest.mark.parametrize(("kind", "change"), [("started", _other_token), ("settled", _failed)])
async def test_a_changed_decision_is_found(
    tmp_path: Path,
    kind: str,
    change: Callable[[dict[str, Any]], None],
) -> None:
    path = await _two_lives(tmp_path)
    _tamper(path, kind, change)
    differences = replay(path)
    assert len(differences) == 1
    assert "recorded" in str(differences[0])
    assert "replayed" in str(differences[0])
    path.unlink()  # what looks after every test would find it as well


async def test_an_event_that_is_missing_is_found(tmp_path: Path) -> None:
    path = await _two_lives(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute(
            "DELETE FROM events WHERE seq = (SELECT seq FROM events WHERE kind = 'started' LIMIT 1)"
        )
    database.close()
    with pytest.raises(UnreadableJournal, match="missing"):
        replay(path)


async def test_a_row_without_its_checksum_is_not_even_read(tmp_path: Path) -> None:
    path = await _two_lives(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE events SET data = replace(data, '1', '2') WHERE kind = 'started'")
    database.close()
    with pytest.raises(UnreadableJournal, match="checksum"):
        replay(path)
