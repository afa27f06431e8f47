"""Agents of a pool come all together or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import (
    AgentError,
    AgentPool,
    BlankId,
    Breaker,
    DuplicateId,
    EngineConfig,
    EngineError,
    InvalidOption,
    Roundtable,
    TaskContext,
    UnknownTask,
)
from interlock.testing.simulated_ports import simulated_ports
from tests.unit.patterns.groups import played
from tests.unit.patterns.pools import Cast, agents, of, pool_of, raising, tasks


class Factory:
    """Takes its time to make an agent; some cannot be made."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds
        self.bad: dict[str, Exception] = {}
        self.began: list[str] = []
        self.inside = self.most = 0

    async def __call__(self, entry: dict[str, Any]) -> Any:
        agent_id: str = entry["agent_id"]
        self.began.append(agent_id)
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(self.seconds.get(agent_id, 1))
        finally:
            self.inside -= 1
        if agent_id in self.bad:
            raise self.bad[agent_id]

        async def agent(ctx: TaskContext) -> str:
            return agent_id

        return agent


class Unprintable(Exception):
    def __str__(self) -> str:
        raise LookupError("no text")


def test_agents_are_spawned_at_once_and_no_more_than_the_limit() -> None:
    async def main() -> None:
        factory = Factory()
        async with pool_of(factory, max_concurrent=3) as pool:
            began = asyncio.get_running_loop().time()
            found = await pool.spawn_agents(agents(*"abcdef"))
            assert found == dict.fromkeys("abcdef", "running")
            assert factory.most == 3
            assert asyncio.get_running_loop().time() - began == 2

    played(main)


def test_five_at_once_unless_somebody_says_otherwise() -> None:
    async def main() -> None:
        factory = Factory()
        async with pool_of(factory) as pool:
            assert pool.get_pool_status()["max_concurrent"] == AgentPool.MAX_CONCURRENT == 5
            await pool.spawn_agents(agents(*"abcdefg"))
            assert factory.most == 5

    played(main)


def test_one_failing_spawn_of_four_rolls_back_the_rest_and_four_entries_say_so() -> None:
    async def main() -> None:
        factory = Factory(a=0, b=5, c=1, d=1)
        factory.bad["c"] = OSError("no key")
        async with pool_of(factory, max_concurrent=3) as pool:
            found = await pool.spawn_agents(agents(*"abcd"))
            assert found == {
                "a": "cancelled",
                "b": "cancelled",
                "c": "error: OSError: no key",
                "d": "cancelled",
            }
            assert pool.get_pool_status()["agents"] == {}
            assert factory.inside == 0
            assert list(pool.runtime.records("sessions").items()) == []
            failure = pool.runtime.handle("spawn c").outcome
            assert failure is not None
            assert isinstance(failure.exception, AgentError)
            assert failure.exception.agent_id == "c"
            factory.bad.clear()
            again = await pool.spawn_agents(agents(*"abcd"))
            assert again == dict.fromkeys("abcd", "running")
            assert of(await pool.run_parallel_tasks(tasks(*"dcba")), "output") == [*"dcba"]

    played(main)


def test_a_duplicate_in_the_batch_or_in_the_pool_is_an_error_before_anything_is_spawned() -> None:
    async def main() -> None:
        factory = Factory()
        async with pool_of(factory) as pool:
            with pytest.raises(DuplicateId, match="'b' is twice in this batch"):
                await pool.spawn_agents(agents(*"abcb"))
            await pool.spawn_agents(agents("a"))
            with pytest.raises(DuplicateId, match="'a' is in the pool already"):
                await pool.spawn_agents(agents(*"xa"))
            assert factory.began == ["a"]
            assert list(pool.get_pool_status()["agents"]) == ["a"]

    played(main)


def test_no_id_of_an_agent_is_taken_for_the_name_of_a_task_of_another() -> None:
    async def main() -> None:
        factory = Factory()
        factory.bad["a"] = OSError("no key")
        async with pool_of(factory) as pool:
            assert (await pool.spawn_agents(agents("a")))["a"].startswith("error")
            factory.bad.clear()
            names = ["a", "a~2", "a~~2", "q", "q#1", "spawn q", "spawn q#", "q#"]
            assert await pool.spawn_agents(agents(*names)) == dict.fromkeys(names, "running")
            for _ in range(2):
                found = await pool.run_parallel_tasks(tasks(*names))
                assert of(found, "output") == names
            turns = await Roundtable(None, pool).discuss("x", names, rounds=2)
            assert [*turns[1]["responses"].values()] == names
            assert {"spawn a~2", "spawn a~~2", "q##1#2"} <= {
                each.task_id for each in pool.runtime.outcomes
            }

    played(main)


def test_an_id_may_be_spawned_long_after_it_could_not_be() -> None:
    async def main() -> None:
        factory = Factory()
        factory.bad["a"] = OSError("no key")
        async with pool_of(factory) as pool:
            assert (await pool.spawn_agents(agents("a")))["a"].startswith("error")
            factory.bad.clear()
            await pool.spawn_agents(agents("b"))
            await pool.run_parallel_tasks(tasks(*["b"] * 1001))
            with pytest.raises(UnknownTask, match="was forgotten"):
                pool.runtime.handle("spawn a")
            assert await pool.spawn_agents(agents("a")) == {"a": "running"}

    played(main)


def test_an_id_that_is_being_spawned_is_taken() -> None:
    async def main() -> None:
        async with pool_of(Factory()) as pool:
            spawning = asyncio.create_task(pool.spawn_agents(agents("a")))
            await asyncio.sleep(0)
            with pytest.raises(DuplicateId):
                await pool.spawn_agents(agents("a"))
            assert await spawning == {"a": "running"}

    played(main)


def test_whoever_stops_waiting_for_a_spawn_cancels_it_and_the_pool_is_as_before() -> None:
    async def main() -> None:
        factory = Factory(a=1, b=100)
        async with pool_of(factory) as pool:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await pool.spawn_agents(agents(*"ab"))
            assert pool.get_pool_status()["total_agents"] == 0
            await asyncio.sleep(0)
            assert factory.inside == 0
            assert list(pool.runtime.records("sessions").items()) == []

    played(main)


def test_what_an_entry_leaves_out_comes_from_the_configured_agent_then_from_the_defaults() -> None:
    async def main() -> None:
        cast = Cast()
        config = EngineConfig(
            default_model="small",
            default_system_prompt="Be brief.",
            agents={"a": {"model": "large", "temperature": 0.5}},
        )
        async with AgentPool(config, agent_factory=cast, ports=simulated_ports()) as pool:
            await pool.spawn_agents(
                [{"agent_id": "a", "system_prompt": "Be kind."}, {"agent_id": "b", "model": None}]
            )
            await pool.spawn_agents([{"agent_id": "c", "model": "other", "tools": ["x"]}])
            asked = await pool.run_parallel_tasks(tasks("a"))
            assert asked[0]["status"] == "success"
        assert cast.made == [
            {
                "agent_id": "a",
                "model": "large",
                "system_prompt": "Be kind.",
                "temperature": 0.5,
            },
            {"agent_id": "b", "model": "small", "system_prompt": "Be brief."},
            {
                "agent_id": "c",
                "model": "other",
                "system_prompt": "Be brief.",
                "tools": ["x"],
            },
        ]

    played(main)


def test_without_a_factory_and_without_an_agent_the_error_says_what_to_pass() -> None:
    async def main() -> None:
        config = EngineConfig("m", agents={"a": {"agent": lambda ctx: "here"}, "b": {"model": "m"}})
        async with AgentPool(config, ports=simulated_ports()) as pool:
            with pytest.raises(EngineError, match=r"'b': pass agent_factory=.*EngineConfig"):
                await pool.spawn_agents(agents("a", "b"))
            assert pool.get_pool_status()["total_agents"] == 0
            await pool.spawn_agents(agents("a"))
            assert of(await pool.run_parallel_tasks(tasks("a")), "output") == ["here"]

    played(main)


class Classy:
    def __init__(self, entry: dict[str, Any]) -> None:
        self.entry = entry

    async def run(self, ctx: TaskContext) -> str:
        return f"{self.entry['agent_id']} with {self.entry['model']}"


@pytest.mark.parametrize(
    ("factory", "answer"),
    [
        (Classy, "a with m"),
        (lambda entry: Classy({**entry, "model": "m"}), "a with m"),
        (lambda entry: lambda: entry["model"], "m"),
    ],
)
def test_a_factory_may_be_a_class_or_a_function_and_make_any_agent(
    factory: Any, answer: str
) -> None:
    async def main() -> None:
        async with pool_of(factory) as pool:
            await pool.spawn_agents(agents("a", model="m"))
            assert of(await pool.run_parallel_tasks(tasks("a")), "output") == [answer]

    played(main)


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        (lambda entry: 3, "error: NotAnAgent: 3 is no agent"),
        (lambda entry: Factory()({**entry}), "error: EngineError: agent_factory returned a corou"),
        (raising(AgentError("busy", "a")), "error: busy"),
        (raising(AgentError("", "a")), "error: AgentError"),
        (raising(OSError()), "error: OSError"),
        (raising(Unprintable()), "error: Unprintable: <it cannot be printed: LookupError>"),
        (raising(KeyboardInterrupt()), "error: KeyboardInterrupt"),
        (raising(SystemExit(3)), "error: SystemExit: the agent called sys.exit(3)"),
        (raising(BaseException("b")), "error: BaseException: b"),
    ],
)
def test_a_factory_that_makes_no_agent_fails_to_spawn_it(factory: Any, said: str) -> None:
    async def main() -> None:
        async with pool_of(factory) as pool:
            assert (await pool.spawn_agents(agents("a")))["a"].startswith(said)
            assert pool.get_pool_status()["total_agents"] == 0

    played(main)


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        ([{"model": "m"}], BlankId),
        ([{"agent_id": "  "}], BlankId),
        ([{"agent_id": "a", "model": 3}], InvalidOption),
        (["a"], InvalidOption),
        ("ab", InvalidOption),
        ({"agent_id": "a"}, InvalidOption),
    ],
)
def test_entries_that_are_none_are_refused_before_anything_is_spawned(
    entries: Any, error: type[Exception]
) -> None:
    async def main() -> None:
        cast = Cast()
        async with pool_of(cast) as pool:
            with pytest.raises(error):
                await pool.spawn_agents([*agents("ok"), *entries] if entries != "ab" else entries)
        assert not cast.made

    played(main)


@pytest.mark.parametrize(
    "options",
    [
        {"config": {"default_model": "m"}},
        {"agent_factory": 3},
        {"max_concurrent": 0},
        {"grace": -1},
    ],
)
def test_options_that_cannot_be_are_refused_at_once_by_their_names(options: Any) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        AgentPool(**options)


@pytest.mark.parametrize("wrong", [{"default_model": 3}, {"agents": {"a": 3}}, {"agents": ["a"]}])
def test_a_configuration_that_cannot_be_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(InvalidOption):
        EngineConfig(**wrong)
    with pytest.raises(BlankId):
        EngineConfig(agents={"": {}})


def test_the_breaker_of_a_model_stops_spawning_and_lets_exactly_one_probe_through() -> None:
    async def main() -> None:
        factory = Factory()
        factory.bad["a"] = ConnectionError("down")
        pool = pool_of(factory, breaker=Breaker(failures=3, cool_down=30))
        loop = asyncio.get_running_loop()
        async with pool:
            for _ in range(3):
                assert (await pool.spawn_agents(agents("a", model="m")))["a"].startswith("error")
            opened = loop.time()
            batch = asyncio.create_task(pool.spawn_agents(agents(*"bcde", model="m")))
            other = await pool.spawn_agents(agents("z", model="another"))
            assert other == {"z": "running"}
            assert factory.began == ["a", "a", "a", "z"]
            status = pool.get_pool_status()["agents"]
            assert {each["status"] for name, each in status.items() if name != "z"} == {"pending"}
            assert "3 failures in a row" in str(pool.runtime.why("spawn b"))
            await asyncio.sleep(opened + 30.5 - loop.time())  # half-open, and the probe is busy
            assert factory.began[4:] == ["b"]
            status = pool.get_pool_status()["agents"]
            assert [status[each]["status"] for each in "bcde"] == ["spawning", *["pending"] * 3]
            assert await batch == dict.fromkeys("bcde", "running")
            assert sorted(factory.began[5:]) == ["c", "d", "e"]

    played(main)


def test_a_factory_that_makes_errors_opens_no_breaker() -> None:
    async def main() -> None:
        factory = Factory()
        factory.bad["a"] = ValueError("no such prompt")
        async with pool_of(factory, breaker=Breaker(failures=3, cool_down=30)) as pool:
            for _ in range(4):
                assert (await pool.spawn_agents(agents("a", model="m")))["a"].startswith("error")
            began = asyncio.get_running_loop().time()
            assert await pool.spawn_agents(agents("b", model="m")) == {"b": "running"}
            assert asyncio.get_running_loop().time() - began < 30

    played(main)
