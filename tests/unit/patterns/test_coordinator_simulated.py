"""The coordinator on the deterministic loop: one world of calls for each seed."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from interlock import ParallelAgentCoordinator, SubTask, UnknownTask, conflicts, write
from interlock.patterns.coordinator.subtask_groups import is_test
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate
from tests.unit.patterns.coordination import Notebook, title_in

FILES = ("src/", "src/a.py", "./src/b.py", "docs/**", "docs/x.md", "*.toml", "setup.toml")
ENDS = {"completed", "failed", "timeout", "cancelled", "skipped"}


class World:
    """What agents see of each other; it knows nothing of the coordinator."""

    def __init__(self, chance: Random, limit: int) -> None:
        self.chance = chance
        self.limit = limit
        self.parts: dict[str, SubTask] = {}
        self.alive: list[SubTask] = []
        self.violations: list[str] = []
        """Kept for the end: what an agent raises is the failure of its attempt and no more."""
        self.most = 0
        self.attempts: Counter[str] = Counter()
        self.begun: dict[str, float] = {}
        self.over: dict[str, float] = {}

    async def make(self) -> Member:
        if self.chance.random() < 0.05:
            raise OSError("nobody could be hired")
        return Member(self)

    def enter(self, part: SubTask) -> None:
        for other in self.alive:
            if is_test(part) or is_test(other):
                self.violations.append(f"{part} beside {other}")
            for mine in part.files:
                for theirs in other.files:
                    if conflicts(write(mine), write(theirs)):
                        self.violations.append(f"{part} and {other}: {mine} and {theirs}")
        self.alive.append(part)
        self.most = max(self.most, len(self.alive))
        self.attempts[part.title] += 1
        self.begun.setdefault(part.title, asyncio.get_running_loop().time())
        if len(self.alive) > self.limit:
            self.violations.append(f"{len(self.alive)} at once, of {self.limit}")

    def leave(self, part: SubTask) -> None:
        self.alive.remove(part)
        self.over[part.title] = asyncio.get_running_loop().time()


class Member:
    def __init__(self, world: World) -> None:
        self.world = world

    async def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
        world = self.world
        part = world.parts[title_in(prompt)]
        world.enter(part)
        try:
            loop, chance = asyncio.get_running_loop(), world.chance
            until = loop.time() + chance.choice((0, 1, 5, 30, 300))
            deaf = chance.random() < 0.2
            while loop.time() < until:
                try:
                    await asyncio.sleep(until - loop.time())
                except asyncio.CancelledError:
                    if not deaf or chance.random() < 0.3:
                        raise
            if chance.random() < 0.2:
                raise LookupError(part.title)
        finally:
            world.leave(part)
        return f"{part.title} done"


def parts_of(call: int, chance: Random, world: World) -> list[SubTask]:
    made: list[SubTask] = []
    for number in range(chance.randrange(1, 10)):
        tests = chance.random() < 0.15
        # A test has a group of its own, or none; nobody depends on what comes later.
        group = None if tests else chance.choice((None, 1, 2, 3))
        before = [
            each
            for each in made
            if group is None or (each.parallel_group is not None and each.parallel_group <= group)
        ]
        after = [each.subtask_id for each in before if chance.random() < 0.15]
        title = f"c{call}s{number}"
        part = SubTask(
            100 * call + number,
            "T",
            title,
            "run pytest" if tests else "use the latest",
            chance.choice((None, 10)),
            chance.choice((0, 1, 5)),
            group,
            after,
            chance.sample(FILES, chance.choice((0, 0, 1, 2))),
        )
        world.parts[title] = part
        made.append(part)
    chance.shuffle(made)
    return made


async def story(seed: int) -> tuple[World, Counter[str]]:
    chance = Random(seed)
    limit = chance.randrange(1, 4)
    world = World(chance, limit)
    strategy = chance.choice(("parallel_groups", "file_based"))
    config = {
        "max_parallel_agents": limit,
        "agent_timeout_seconds": chance.choice((20, 100)),
        "max_retries": chance.choice((0, 2)),
        "parallelization_strategy": strategy,
        "deadline_seconds": chance.choice((None, None, 200)),
    }
    notebook = Notebook()
    ends: Counter[str] = Counter()
    async with ParallelAgentCoordinator(
        notebook, world.make, config, ports=simulated_ports(seed), grace=1_000
    ) as coord:
        calls = []
        for number in range(3):
            parts = parts_of(number, chance, world)
            calls.append((parts, asyncio.create_task(coord.execute(parts, "T"))))
            await asyncio.sleep(chance.choice((0, 1, 50)))
            if chance.random() < 0.2:
                world.limit += 1
                coord.set_max_parallel(world.limit)
            _ask_why(coord, world)
            if chance.random() < 0.15:
                coord.cancel()
            if chance.random() < 0.15:
                calls[-1][1].cancel()
                ends["caller cancelled"] += 1
        await asyncio.wait([task for _, task in calls])
        for parts, task in calls:
            if not task.cancelled():
                _check(parts, task.result(), world, strategy, ends)
                for result in task.result():
                    states = notebook.states[result["subtask_id"]]
                    begun = ["in_progress"] if result["attempts"] else []
                    assert states == ["pending", *begun, result["status"]]
    assert not world.alive
    return world, ends


def _ask_why(coord: ParallelAgentCoordinator, world: World) -> None:
    """Whoever waits can be told why."""
    runtime = coord.runtime
    for part in world.parts.values():
        try:
            handle = runtime.handle(f"T/{part.subtask_id}")
        except UnknownTask:  # its call was cancelled before it began
            continue
        if handle.state in ("blocked", "waiting", "retrying"):
            assert handle.why().reasons, (part, handle.state)


def _check(
    parts: list[SubTask],
    results: list[dict[str, Any]],
    world: World,
    strategy: str,
    ends: Counter[str],
) -> None:
    """One result for each, in order; nobody began before all that comes first was over."""
    assert [each["subtask_id"] for each in results] == sorted(each.subtask_id for each in parts)
    by_id = {each.subtask_id: each for each in parts}
    found = {each["subtask_id"]: each for each in results}
    for result in results:
        part = by_id[result["subtask_id"]]
        ends[result["status"]] += 1
        assert result["status"] in ENDS
        assert (result["result"] is not None) == (result["status"] == "completed")
        assert (result["error"] is None) == (result["status"] == "completed")
        assert result["attempts"] <= 3
        assert world.attempts[part.title] <= result["attempts"]
        if part.title not in world.begun:
            continue
        for before in part.dependencies:
            assert found[before]["status"] == "completed"
            assert world.over[by_id[before].title] <= world.begun[part.title]
        if strategy == "parallel_groups" and part.parallel_group is not None:
            for other in parts:
                if other.parallel_group is None or other.parallel_group > part.parallel_group:
                    begun = world.begun.get(other.title)
                    assert begun is None or begun >= world.begun[part.title]


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_invariants_hold_whatever_agents_and_callers_do(start: int) -> None:
    ends: Counter[str] = Counter()
    most = 0
    for seed in range(start, start + 50):
        run = simulate(lambda seed=seed: story(seed), seed=seed, deadline=1e6)  # type: ignore[misc]
        world, here = run.value()
        assert not world.violations, (seed, world.violations)
        assert not run.leaked, seed
        assert not run.complaints, (seed, run.complaints)
        ends += here
        most = max(most, world.most)
    assert most >= 3
    assert set(ends) == ENDS | {"caller cancelled"}


def test_the_same_seed_tells_the_same_story() -> None:
    one, two = (simulate(lambda: story(7), seed=7, deadline=1e6) for _ in range(2))
    assert one.fingerprint == two.fingerprint
