"""Processes that are killed at moments nobody has chosen."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from interlock.execution.processes import process_backend
from interlock.system.process_table import children
from tests.integration import process_agents as agents
from tests.integration.test_processes import announced, is_alive
from tests.unit.execution.agents import double
from tests.unit.execution.worlds import opened, story

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@linux
@story
async def test_a_killed_supervisor_takes_its_agent_and_its_group_along(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        token = world.submit(agents.have_children, world.announced)
        agent, supervisor, *rest = await announced(world)
        os.kill(supervisor, signal.SIGKILL)
        ending = await world.sink.end_of(token)
        assert ending.error is not None
        assert "killed together with its supervisor" in ending.error.message
        *group, session_leader, _in_its_session, forked = rest
        assert not [pid for pid in (agent, supervisor, *group, forked) if is_alive(pid)]
        os.killpg(session_leader, signal.SIGKILL)  # nobody is left who could know of these


@linux
@story
async def test_an_agent_cannot_save_itself_by_stopping_its_supervisor(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process_backend, "LAST_RESORT", 0.05)
        async with opened("processes", tmp_path) as world:
            token = world.submit(agents.stop_the_supervisor, world.announced)
            (pid,) = await announced(world)
            world.backend.cancel(token, 0)
            await world.sink.end_of(token)
            assert not is_alive(pid)


@linux
@pytest.mark.parametrize("seed", range(6))
@story
async def test_a_kill_at_any_moment_ends_the_attempt_once(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    loop = asyncio.get_running_loop()

    def kill() -> None:
        """Anybody of the family: a supervisor or an agent."""
        supervisors = children(os.getpid())
        family = [pid for each in supervisors for pid in (each, *children(each))]
        if family:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(family), signal.SIGKILL)

    async with opened("processes", tmp_path) as world:
        tokens = [world.submit(double, number) for number in range(6)]
        for _ in range(4):
            loop.call_later(chance.uniform(0, 0.3), kill)
        for token in tokens:
            ending = await world.sink.end_of(token)
            assert (ending.value is None) == (ending.error is not None)
    assert not children(os.getpid())


@pytest.mark.parametrize("seed", range(6))
@story
async def test_a_cancel_at_any_moment_ends_the_attempt_once(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    loop = asyncio.get_running_loop()
    async with opened("processes", tmp_path) as world:
        tokens = [world.submit(double, number) for number in range(6)]
        for token in tokens:
            moment = chance.uniform(0, 0.3)
            loop.call_later(moment, world.backend.cancel, token, chance.choice([0, 0.01, 60]))
        for token in tokens:
            ending = await world.sink.end_of(token)
            assert (ending.value is None) == (ending.error is not None)
