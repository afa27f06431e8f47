"""Groups whose run is kept in a journal on disk."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from interlock import ParallelExecutor
from interlock.journal.reader import Reader
from tests.unit.patterns.groups import Engine, assign, group, raises, sleeps

# The engine notes what it runs, and the first time the process dies in the middle of task `b`.
SCRIPT = """
import asyncio, os, sys
from dataclasses import dataclass
from pathlib import Path
from interlock import AgentAssignment, ParallelExecutionGroup, ParallelExecutor

@dataclass
class Named:
    id: str

@dataclass
class Report:
    task_id: str
    agent_id: str
    is_success: bool = True
    total_cost_usd: float = 1.0

class Engine:
    async def run(self, identity, task):
        with Path("ran.txt").open("a") as ran:
            ran.write(task.id)
        if task.id == "b" and sys.argv[2] == "first":
            os._exit(9)
        return Report(task.id, identity.id)

def assignment(name):
    return AgentAssignment(identity=Named(f"agent-{name}"), task=Named(name),
                           resource_claims=[f"{name}.py"])

async def main():
    executor = ParallelExecutor(engine=Engine(), on_conflict=sys.argv[1], journal="journal.db",
                                resume=sys.argv[2] != "first" or None)
    async with executor:
        done = ParallelExecutionGroup(group_id="done", assignments=[assignment("z")])
        abc = ParallelExecutionGroup(group_id="g", assignments=map(assignment, "abc"),
                                     max_concurrency=1)
        results = [await executor.execute_group(each) for each in (done, abc)]
        print(*[f"{each.agents_succeeded} {each.total_cost_usd}" for each in results])

asyncio.run(main())
"""


def _run(on_conflict: str, which: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "script.py", on_conflict, which],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )


@pytest.mark.parametrize("on_conflict", ["refuse", "wait"])
def test_after_a_crash_only_what_had_not_succeeded_runs_again(
    on_conflict: str, tmp_path: Path
) -> None:
    assert _run(on_conflict, "first", tmp_path).returncode == 9
    again = _run(on_conflict, "second", tmp_path)
    assert again.stdout.split() == ["1", "1.0", "3", "3.0"], again.stderr
    assert (tmp_path / "ran.txt").read_text(encoding="utf-8") == "zab" + "bc"


async def test_a_group_that_is_resumed_runs_the_failed_one_again_and_keeps_the_others(
    workspace: Path,
) -> None:
    names = [f"t{number}" for number in range(27)]

    def these(engine: Engine) -> ParallelExecutor:
        return ParallelExecutor(
            engine=engine, journal=workspace / "j.db", resume=engine is second or None
        )

    first, second = Engine(), Engine()
    bad = {"t13": raises(OSError("once"))}
    result = await these(first).execute_group(group(*(assign(n, bad.get(n)) for n in names)))
    assert (result.agents_succeeded, result.agents_failed) == (26, 1)
    resumed = these(second)
    result = await resumed.execute_group(group(*(assign(n) for n in names)))
    assert result.all_succeeded
    assert [each.result.task_id for each in result.outcomes] == names
    assert second.began == ["t13"]
    await resumed.execute_group(group(assign("t0")))  # from here on everything is new
    assert second.began == ["t13", "t0"]


async def test_groups_at_the_same_time_share_the_journal_and_later_ones_are_runs_of_their_own(
    workspace: Path,
) -> None:
    executor = ParallelExecutor(engine=Engine(), journal=workspace / "j.db")
    async with asyncio.TaskGroup() as both:
        for name in ("g", "h"):
            both.create_task(executor.execute_group(group(assign("a", sleeps(0.01)), id=name)))
    await executor.execute_group(group(assign("a")))
    read = Reader(workspace / "j.db")
    runs = list(read.runs())
    tasks = [sorted(row.task_id for row in read.tasks(run)) for run in runs]
    assert sorted(tasks) == [["g/a"], ["g/a", "h/a"]]
    assert not any(run.is_open for run in runs)
