"""A discussion that is killed in round 3 goes on in round 3."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interlock import AgentPool, Roundtable, TaskContext
from interlock.journal.reader import Reader
from interlock.runtime.ports import Ports
from tests.crash import left_by_a_kill

# In round 2 `b` fails, and only in the first process; in round 3 the process is killed while `c`
# speaks, when `a` has spoken and `b` has not.
SCRIPT = """
import asyncio, json, os, signal, sys
from pathlib import Path
from interlock import AgentPool, Roundtable

first = sys.argv[1] == "first"
spoken = {}

async def agent(ctx):
    name, number = ctx.session.agent_id, int(ctx.prompt[len("[Round ")])
    with Path("asked.txt").open("a") as asked:
        asked.write(f"{name}{number} ")
    if first and (name, number) == ("b", 2):
        raise OSError("line busy")
    if first and number == 3 and name != "a":
        await arrived.wait()
        if name == "c":
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.Event().wait()
    return f"{name} of {sys.argv[1]}: {len(ctx.prompt)}"

def on_turn(turn):
    print(turn["round"], turn["agent_id"], flush=True)
    if turn["round"] == 3:
        arrived.set()

async def main():
    global arrived
    arrived = asyncio.Event()
    pool = AgentPool(agent_factory=lambda entry: agent, journal="j.db", resume=not first)
    async with pool:
        await pool.spawn_agents([{"agent_id": each} for each in "abc"])
        table = Roundtable(None, pool, on_turn=on_turn)
        print(json.dumps(await table.discuss("tabs or spaces", ["a", "b", "c"])))

asyncio.run(main())
"""


def _run(which: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "script.py", which],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )


def test_killed_in_round_three_resumed_in_round_three(tmp_path: Path) -> None:
    killed = _run("first", tmp_path)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.splitlines()[-1] == "3 a"
    asked = tmp_path / "asked.txt"
    before = asked.read_text(encoding="utf-8").split()
    assert sorted(before) == sorted(["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"])

    resumed = _run("second", tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    after = asked.read_text(encoding="utf-8").split()[len(before) :]
    assert sorted(after) == ["b3", "c3"]  # all that had not arrived, and nothing else

    found = json.loads(resumed.stdout.splitlines()[-1])
    assert [each["round"] for each in found] == [1, 2, 3]
    first, second, third = (each["responses"] for each in found)
    assert all(text.startswith(f"{name} of first") for name, text in first.items())
    assert second["b"] == "[Error: OSError: line busy]"
    whose = {name: text.split(":")[0] for name, text in third.items()}
    assert whose == {"a": "a of first", "b": "b of second", "c": "c of second"}
    sizes = {text.split(": ")[1] for text in third.values()}
    assert len(sizes) == 1  # in round 3 all had the same prompt, before and after

    with Reader(tmp_path / "j.db") as reader:
        (run,) = reader.runs()  # it was one run all along, and it is over
        assert not run.is_open


async def test_a_round_that_was_cut_off_has_its_whole_time_again(workspace: Path) -> None:
    begun = asyncio.Event()

    async def stays(ctx: TaskContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def speaks(ctx: TaskContext) -> str:
        return "said"

    agents = [{"agent_id": each} for each in "ab"]
    async with AgentPool(agent_factory=lambda entry: stays, journal=workspace / "j.db") as pool:
        await pool.spawn_agents(agents)
        before = asyncio.create_task(Roundtable(None, pool).discuss("x", ["a", "b"], 1, 60))
        await begun.wait()
        copy = left_by_a_kill(workspace / "j.db")
        before.cancel()
        with pytest.raises(asyncio.CancelledError):
            await before

    ports = Ports(wall=lambda: time.time() + 3600)
    later = AgentPool(agent_factory=lambda entry: speaks, journal=copy, resume=True, ports=ports)
    async with later:
        await later.spawn_agents(agents)
        found = await Roundtable(None, later).discuss("x", ["a", "b"], 1, 60)
    assert found == [{"round": 1, "responses": {"a": "said", "b": "said"}}]
