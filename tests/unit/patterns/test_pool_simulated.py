"""A pool under many seeds, with failures, timeouts, threads and callers who go away."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from interlock import AgentPool, Breaker, TaskContext
from interlock.testing.simulated_backends import Blocking
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate

SLOTS = 3
IDS = [*"abcde"]


class World:
    """What the agents see of each other."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.inside: Counter[str] = Counter()
        self.most = 0
        self.done: Counter[str] = Counter()

    def factory(self, entry: dict[str, Any]) -> Any:
        async def work(ctx: TaskContext) -> str:
            session = ctx.session.session_id
            assert ctx.session.agent_id == entry["agent_id"]
            self.inside[session] += 1
            self.most = max(self.most, self.inside.total())
            assert self.inside[session] == 1, f"two in {session}"
            assert self.inside.total() <= SLOTS
            try:
                await asyncio.sleep(self.chance.choice((0, 0.5, 1, 5)))
                if self.chance.random() < 0.2:
                    raise LookupError("lost")
                self.done[str(ctx.prompt)] += 1
                return f"re {ctx.prompt}"
            finally:
                self.inside[session] -= 1

        if entry["agent_id"] in "de":
            return lambda ctx: Blocking(work(ctx))
        return work


async def story(seed: int) -> tuple[World, list[dict[str, Any]]]:
    chance = Random(seed)
    world = World(chance)
    answers: list[dict[str, Any]] = []
    said: dict[str, list[str]] = {}
    pool = AgentPool(
        agent_factory=world.factory,
        max_concurrent=SLOTS,
        breaker=Breaker(failures=4, cool_down=3),
        grace=100,
        ports=simulated_ports(seed),
    )

    async def ask(number: int) -> None:
        batch = [
            {
                "agent_id": chance.choice([*IDS, "nobody"]),
                "prompt": f"{number}.{index}",
                "session_id": None if chance.random() < 0.8 else f"own {index}",
            }
            for index in range(chance.randrange(1, 6))
        ]
        for each in batch:
            if each["session_id"] is not None:
                each["session_id"] = f"{each['agent_id']} {each['session_id']}"
        try:
            async with asyncio.timeout(chance.choice((None, None, None, 2))):
                found = await pool.run_parallel_tasks(batch, timeout=chance.choice((2, 100)))
        except TimeoutError:
            return
        assert [each["agent_id"] for each in found] == [each["agent_id"] for each in batch]
        for asked, each in zip(batch, found, strict=True):
            assert (each["status"] == "success") == (each["error"] is None)
            if each["status"] == "success":
                assert each["output"] == f"re {asked['prompt']}"
                said.setdefault(str(asked["agent_id"]), []).append(str(asked["prompt"]))
        answers.extend(found)

    async with pool:
        entries = [{"agent_id": each, "model": "m" if each in "ab" else None} for each in IDS]
        assert set((await pool.spawn_agents(entries)).values()) == {"running"}
        async with asyncio.TaskGroup() as callers:
            for number in range(6):
                callers.create_task(ask(number))
                await asyncio.sleep(chance.random())
                for task in pool.runtime.running():
                    assert str(pool.runtime.why(task.task_id))
        kept = _kept(pool)
        for agent_id, prompts in said.items():
            # Nothing that was answered is lost. What is kept besides was answered to nobody.
            assert set(prompts) <= set(kept[agent_id])
            assert len(set(kept[agent_id])) == len(kept[agent_id])
        await asyncio.sleep(100)  # threads whose callers have left come to their end
        status = pool.get_pool_status()["agents"]
        assert not any(each["running"] or each["stopping"] for each in status.values())
        assert pool.runtime.progress().pending == 0
    return world, answers


def _kept(pool: AgentPool) -> dict[str, list[str]]:
    """What was asked in all sessions of each agent, as the journal has it."""
    kept: dict[str, list[str]] = {}
    for name, about in pool.runtime.records("sessions").items():
        prompts = [said[1] for _, said in pool.runtime.records(f"session {name}").items()]
        kept.setdefault(about["agent_id"], []).extend(prompts)
    return kept


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_sessions_have_one_speaker_and_every_task_one_answer(start: int) -> None:
    ends: Counter[str] = Counter()
    most = 0
    for seed in range(start, start + 50):
        run = simulate(lambda seed=seed: story(seed), seed=seed, deadline=1e5)  # type: ignore[misc]
        world, answers = run.value()
        assert not run.leaked
        assert not run.complaints
        assert not world.inside.total()
        assert max(world.done.values(), default=1) == 1
        most = max(most, world.most)
        ends.update(each["status"] for each in answers)
    assert most == SLOTS
    assert set(ends) == {"success", "error", "timeout"}
