"""One process runs, another follows: live, with four looks a second, and in nobody's way."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from interlock import Runtime
from interlock.journal.follow import PAUSE
from tests.crash import Stay
from tests.integration import follower

ROOT = Path(__file__).parents[2]


async def quick(number: int) -> int:
    return number


async def test_a_follower_sees_every_event_while_the_run_goes_on(tmp_path: Path) -> None:
    journal, stay = tmp_path / "j.db", Stay()
    async with Runtime(100, journal=journal, durability="normal") as rt:
        rt.submit(stay)
        await rt.flush()
        followers = [_follow(journal, rt.run_id) for _ in range(2)]
        for each in followers:
            assert each.stdout is not None
            assert await asyncio.to_thread(each.stdout.readline) == "ready\n"
        for _ in range(4):
            outcomes = await rt.map(quick, range(500))
            assert all(outcome.succeeded for outcome in outcomes)
        stay.may_end.set()
    for each in followers:
        out, errors = await asyncio.to_thread(each.communicate)
        assert each.returncode == 0, errors
        seen = json.loads(out)
        assert seen["numbers"] == list(range(1, rt._shell.events.committed + 1))
        # Full pages follow each other at once; the others have a pause between them.
        assert seen["looks"] - seen["pages"] <= seen["took"] / PAUSE + 1


def _follow(journal: Path, run: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, follower.__file__, str(journal), run],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
