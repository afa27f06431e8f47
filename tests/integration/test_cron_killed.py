"""A scheduler in a process of its own that is really killed, and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# The second time an hour has passed on its wall clock, and `stays` comes to an end.
SCRIPT = """
import asyncio, json, sys, time
from interlock import CronScheduler, TaskContext
from interlock.runtime.ports import Ports

which = sys.argv[1]
ahead = 0 if which == "first" else 3600

def say(*words):
    print(*words, flush=True)

async def tick(ctx: TaskContext):
    say(ctx.task.id)

async def stays(ctx: TaskContext):
    say(ctx.task.id)
    if which == "first":
        await asyncio.Event().wait()

async def main():
    cron = CronScheduler(journal="cron.db", ports=Ports(wall=lambda: time.time() + ahead), grace=1)
    cron.add("tick", "* * * * * *", tick)
    cron.add("stays", "1s", stays, timeout=None)
    cron.add("disabled", "* * * * * *", tick)
    cron.add("removed", "1s", tick)
    async with cron:
        if which == "first":
            cron.disable("disabled")
            cron.remove("removed")
            await cron.flush()
        say(json.dumps([{k: row[k] for k in ("job_id", "enabled", "missed", "misses")}
                        for row in cron.list()]))
        await cron.run_forever()

asyncio.run(main())
"""


@contextmanager
def started(which: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "script.py", which],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def life(which: str, folder: Path, end: signal.Signals) -> tuple[list[dict[str, Any]], list[str]]:
    """What a process says from its start until it was ended: its jobs, and what it has run."""
    with started(which, folder) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        assert first, process.stderr.read()
        said: list[str] = []
        while sum(each.startswith("cron-tick@") for each in said) < 2:
            said.append(process.stdout.readline().strip())
            assert said[-1], process.stderr.read()
        process.send_signal(end)
        said += process.stdout.read().split()
        errors = process.stderr.read()
        process.wait()
    expected = -end if end is signal.SIGKILL else 128 + end
    assert process.returncode == expected, errors
    rows: list[dict[str, Any]] = json.loads(first)
    return rows, said


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_after_a_kill_nothing_is_double_nothing_storms_and_what_is_off_stays_off(
    tmp_path: Path, end: signal.Signals
) -> None:
    rows, first = life("first", tmp_path, end)
    assert [(each["job_id"], each["enabled"]) for each in rows] == [
        ("tick", True),
        ("stays", True),
        ("disabled", False),
    ]
    rows, second = life("second", tmp_path, end)
    assert [(each["job_id"], each["enabled"]) for each in rows] == [
        ("tick", True),
        ("stays", True),
        ("disabled", False),
    ]
    said = first + second
    assert not any("disabled" in each or "removed" in each for each in said)

    # An hour has been slept through: it is on record, and was not made up for.
    missed = {each["job_id"]: each["misses"][0] for each in rows if each["job_id"] != "disabled"}
    assert {each["count"] for each in missed.values()} == {1000}
    assert all(each["at_least"] for each in missed.values())

    # Times only go on: no time is run twice, but for one that may have been cut off.
    for name in ("cron-tick@", "cron-stays@"):
        mine = [[each for each in life if each.startswith(name)] for life in (first, second)]
        again = set(mine[0]) & set(mine[1])
        assert again <= {mine[0][-1]}
        for each in mine:
            assert len(each) == len(set(each))
            assert each == sorted(each)
    # This one was cut off, and is brought to its end.
    (stays,) = [each for each in first if each.startswith("cron-stays@")]
    assert stays in second
