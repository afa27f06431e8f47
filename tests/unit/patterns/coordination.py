"""A team of agents for the tests of the coordinator, which notes who worked when."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from interlock import ParallelAgentCoordinator, SubTask
from interlock.testing.simulated_ports import simulated_ports

Does = Callable[[int], Awaitable[Any]]
"""What an agent does in its n-th attempt, from 1."""


class Team:
    """Its agents do what the script says of the title of their subtask; otherwise nothing."""

    def __init__(self, **script: Does) -> None:
        self.script = script
        self.made = 0
        self.attempts: Counter[str] = Counter()
        self.story: list[str] = []
        self.starts: dict[str, list[float]] = {}
        self.inside: set[str] = set()
        self.most = 0
        self.prompts: dict[str, str] = {}

    async def make(self) -> TeamAgent:
        self.made += 1
        return TeamAgent(self)


class TeamAgent:
    def __init__(self, team: Team) -> None:
        self.team = team

    async def send_prompt(self, prompt: str, context: dict[str, Any]) -> Any:
        team, title = self.team, title_in(prompt)
        team.prompts[title] = prompt
        team.attempts[title] += 1
        team.story.append(f"{title} begins")
        team.starts.setdefault(title, []).append(asyncio.get_running_loop().time())
        team.inside.add(title)
        team.most = max(team.most, len(team.inside))
        try:
            does = team.script.get(title)
            value = None if does is None else await does(team.attempts[title])
            return f"{title} done" if value is None else value
        finally:
            team.inside.discard(title)
            team.story.append(f"{title} ends")


def title_in(prompt: str) -> str:
    found = re.search(r"^Your part: (.*)$", prompt, re.MULTILINE)
    assert found
    return found[1]


def part(name: int | str, group: int | None = None, *after: int | str, **options: Any) -> SubTask:
    """Subtask 3 is called `s3`."""
    title = options.pop("title", f"s{name}")
    description = options.pop("description", "")
    minutes = options.pop("minutes", 1)
    return SubTask(name, "T", title, description, 10, minutes, group, after, **options)


def coordinator(
    team: Team, state_manager: Any = None, *, seed: int = 0, journal: Any = None, **config: Any
) -> ParallelAgentCoordinator:
    """One for the virtual loop."""
    return ParallelAgentCoordinator(
        state_manager, team.make, config, journal=journal, ports=simulated_ports(seed)
    )


def sleeps(seconds: float, value: Any = None) -> Does:
    async def does(attempt: int) -> Any:
        await asyncio.sleep(seconds)
        return value

    return does


def fails(times: int = 1_000, after: float = 0.0) -> Does:
    """Fails that many times."""

    async def does(attempt: int) -> None:
        await asyncio.sleep(after)
        if attempt <= times:
            raise LookupError(f"attempt {attempt}")

    return does


def statuses(results: list[dict[str, Any]]) -> dict[Any, str]:
    return {each["subtask_id"]: each["status"] for each in results}


class Notebook:
    """A state manager that remembers what it was told."""

    def __init__(self) -> None:
        self.states: dict[Any, list[str]] = {}
        self.records: list[dict[str, Any]] = []

    def update_subtask(self, subtask_id: Any, state: str) -> None:
        self.states.setdefault(subtask_id, []).append(state)

    def log_parallel_attempt(self, **record: Any) -> None:
        self.records.append(record)
