"""Agents that discuss: who knows what in which round, and who is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from interlock import (
    AgentError,
    AgentPool,
    Breaker,
    DuplicateId,
    EngineConfig,
    InvalidOption,
    Roundtable,
    ShuttingDown,
    TaskContext,
)
from interlock.patterns.roundtable.prompt import DiscussionTurn, prompt_for
from interlock.testing.virtual_run import simulate
from tests.unit.patterns.groups import played
from tests.unit.patterns.pools import Cast, agents, of, pool_of, raising, resting, stuck, tasks


def _round(ctx: TaskContext) -> int:
    """In which round an agent was asked."""
    return int((ctx.prompt or "")[len("[Round ")])


def by_round(**special: Any) -> Callable[[TaskContext], Any]:
    """Says who it is and when; in the rounds that are named (`r2=...`) it does something else."""

    async def does(ctx: TaskContext) -> str:
        number = _round(ctx)
        if f"r{number}" in special:
            found = await special[f"r{number}"](ctx)
            return str(found)
        return f"{ctx.session.agent_id}{number}"

    return does


async def _fails(ctx: TaskContext) -> None:
    raise OSError("line busy")


async def _spawned(cast: Cast, *ids: str, **options: Any) -> AgentPool:
    pool = pool_of(cast, **options)
    await pool.spawn_agents(agents(*ids))
    return pool


def test_in_round_three_each_prompt_holds_rounds_one_and_two_of_all_speakers() -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("abc", by_round()))
        async with await _spawned(cast, *"abc") as pool:
            table = Roundtable(EngineConfig(), pool)
            found = await table.discuss("tabs or spaces", [*"abc"])
        assert found == [
            {"round": n, "responses": {each: f"{each}{n}" for each in "abc"}} for n in (1, 2, 3)
        ]
        for agent_id in "abc":
            assert cast.prompts[agent_id] == [
                "[Round 1/3] Topic: tabs or spaces",
                "[Round 2/3] Topic: tabs or spaces\n\nRound 1:\na: a1\nb: b1\nc: c1",
                "[Round 3/3] Topic: tabs or spaces\n\nRound 1:\na: a1\nb: b1\nc: c1"
                "\n\nRound 2:\na: a2\nb: b2\nc: c2",
            ]

    played(main)


def test_a_topic_may_be_any_text() -> None:
    async def main() -> None:
        cast = Cast()
        async with await _spawned(cast, *"ab") as pool:
            await Roundtable(None, pool).discuss("half a character: \ud800", [*"ab"], rounds=1)
        assert cast.prompts["a"] == ["[Round 1/1] Topic: half a character: \ud800"]

    played(main)


def test_in_a_round_all_think_at_once() -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("abcd", resting(1)))
        async with await _spawned(cast, *"abcd") as pool:
            await Roundtable(None, pool).discuss("x", [*"abcd"], rounds=2)
        assert cast.most == 4
        assert asyncio.get_running_loop().time() == 2

    played(main)


@pytest.mark.parametrize(
    ("does", "mark"),
    [
        (_fails, "[Error: OSError: line busy]"),
        (resting(1000), "[Timeout]"),
        (stuck, "[Timeout]"),
    ],
)
def test_who_fails_or_hangs_in_round_two_is_marked_and_speaks_again_in_round_three(
    does: Any, mark: str
) -> None:
    async def main() -> None:
        cast = Cast(a=by_round(), b=by_round(r2=does), c=by_round())
        pool = await _spawned(cast, *"abc", grace=4000)
        found = await Roundtable(None, pool).discuss("x", [*"abc"], timeout_per_round=10)
        assert found[1]["responses"] == {"a": "a2", "b": mark, "c": "c2"}
        if does is not stuck:  # it does not even stop, so nobody can ask it anything
            assert found[2]["responses"] == {"a": "a3", "b": "b3", "c": "c3"}
            assert f"b: {mark}" in cast.prompts["b"][2]
            assert asyncio.get_running_loop().time() == (0 if does is _fails else 10)
        else:
            assert found[2]["responses"] == {"a": "a3", "b": mark, "c": "c3"}
            assert asyncio.get_running_loop().time() == pytest.approx(20)
        await pool.shutdown(timeout=4000)

    played(main)


class _Unspeakable:
    def __str__(self) -> str:
        raise LookupError("no text")


def test_an_answer_whose_text_cannot_be_had_is_the_failure_of_that_speaker_alone() -> None:
    async def main() -> None:
        cast = Cast(a=resting(1, _Unspeakable()), b=resting(1, 7), s=resting(1, _Unspeakable()))
        async with await _spawned(cast, *"abs") as pool:
            table = Roundtable(None, pool, synthesizer="s")
            found = await table.discuss("x", [*"ab"], rounds=1)
            assert found[0]["responses"] == {"a": "[Error: LookupError: no text]", "b": "7"}
            assert found[1]["responses"]["s"].startswith("[No synthesis of 'x': s gave [Error: ")
            assert pool.get_pool_status()["agents"]["a"]["consecutive_failures"] == 1
            assert of(await pool.run_parallel_tasks(tasks("b")), "output") == [7]

    played(main)


def test_the_time_of_a_round_is_for_the_round_as_a_whole_waiting_included() -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("abcd", resting(4, "said")))
        async with await _spawned(cast, *"abcd", max_concurrent=1) as pool:
            found = await Roundtable(None, pool).discuss(
                "x", [*"abcd"], rounds=1, timeout_per_round=10
            )
            assert [*found[0]["responses"].values()] == ["said", "said", "[Timeout]", "[Timeout]"]
            assert asyncio.get_running_loop().time() == pytest.approx(10)
            # Whoever did not get its turn has not failed; but it did not answer in time either.
            status = pool.get_pool_status()["agents"]
            assert [each["running"] for each in status.values()] == [0] * 4

    played(main)


@pytest.mark.parametrize(
    "trouble", [LookupError("a bad listener"), SystemExit(1), KeyboardInterrupt(), GeneratorExit()]
)
def test_turns_are_streamed_as_they_arrive_and_a_bad_listener_hurts_nobody(
    caplog: pytest.LogCaptureFixture, trouble: BaseException
) -> None:
    async def main() -> None:
        turns: list[tuple[float, Any]] = []
        loop = asyncio.get_running_loop()

        def on_turn(turn: dict[str, Any]) -> None:
            turns.append((loop.time(), turn))
            raise trouble

        cast = Cast(a=resting(3, "slow"), b=resting(1, "quick"))
        async with await _spawned(cast, *"ab") as pool:
            found = await Roundtable(None, pool, on_turn=on_turn).discuss("x", [*"ab"], rounds=1)
            assert found[0]["responses"] == {"a": "slow", "b": "quick"}
        assert turns == [
            (1, {"round": 1, "agent_id": "b", "response": "quick"}),
            (3, {"round": 1, "agent_id": "a", "response": "slow"}),
        ]

    played(main)
    assert "on_turn_failed" in caplog.text


def test_a_history_that_is_too_long_loses_its_oldest_turns_and_the_prompt_says_which() -> None:
    async def long(ctx: TaskContext) -> str:
        return str(_round(ctx)) * 100

    async def main() -> None:
        cast = Cast(a=long, b=long)
        async with await _spawned(cast, *"ab") as pool:
            await Roundtable(None, pool, max_history=300).discuss("x", [*"ab"], rounds=4)
        _, second, third, fourth = cast.prompts["a"]
        assert "Left out" not in second
        assert third.startswith(
            "[Round 3/4] Topic: x\n\n"
            "[Left out, because it is too long: of round 1 what was said by a]\n\n"
            f"Round 1:\nb: {'1' * 100}\n\nRound 2:\na: "
        )
        assert (
            "[Left out, because it is too long: round 1 and of round 2 what was said by a]"
            in fourth
        )
        assert f"b: {'2' * 100}" in fourth
        assert "1" * 100 not in fourth
        assert max(map(len, cast.prompts["a"])) < 500

    played(main)


@pytest.mark.parametrize(
    ("most", "left_out"),
    [
        (900, None),
        (700, "of round 1 what was said by a, b"),
        (600, "round 1"),
        (300, "rounds 1 to 2"),
        (200, "rounds 1 to 2 and of round 3 what was said by a"),
        (0, "rounds 1 to 3"),
    ],
)
def test_what_is_left_out_is_named_by_rounds_and_speakers(most: int, left_out: str | None) -> None:
    said = [DiscussionTurn(number, each, "x" * 100) for number in (1, 2, 3) for each in "abc"]
    lines = prompt_for(4, 4, "x", said, most).splitlines()
    noted = [each for each in lines if each.startswith("[Left out")]
    assert noted == ([f"[Left out, because it is too long: {left_out}]"] if left_out else [])
    assert sum("x" * 100 in each for each in lines) == most // 100


def test_a_synthesizer_sums_up_at_the_end_and_knows_everything() -> None:
    async def sums_up(ctx: TaskContext) -> str:
        return "all agree"

    async def main() -> None:
        cast = Cast(a=by_round(), b=by_round(), s=sums_up)
        async with await _spawned(cast, *"abs") as pool:
            turns: list[Any] = []
            table = Roundtable(None, pool, synthesizer="s", on_turn=turns.append)
            found = await table.discuss("x", [*"ab"], rounds=2)
        assert found[2:] == [{"round": "synthesis", "responses": {"s": "all agree"}}]
        assert turns[-1] == {"round": "synthesis", "agent_id": "s", "response": "all agree"}
        (prompt,) = cast.prompts["s"]
        assert prompt.startswith("[Synthesis] Topic: x\n\nRound 1:\na: a1\nb: b1\n\nRound 2:\n")

    played(main)


@pytest.mark.parametrize(
    ("does", "why"), [(_fails, "[Error: OSError: line busy]"), (resting(1000), "[Timeout]")]
)
def test_a_synthesis_that_fails_is_replaced_by_the_last_round(does: Any, why: str) -> None:
    async def main() -> None:
        cast = Cast(a=by_round(), b=by_round(), s=does)
        async with await _spawned(cast, *"abs") as pool:
            table = Roundtable(None, pool, synthesizer="s")
            found = await table.discuss("x", [*"ab"], rounds=2)
        assert found[2]["responses"]["s"] == (
            f"[No synthesis of 'x': s gave {why}. The last round instead:]\na: a2\nb: b2"
        )

    played(main)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"agent_ids": ["a"]}, InvalidOption),
        ({"agent_ids": []}, InvalidOption),
        ({"agent_ids": "ab"}, InvalidOption),
        ({"agent_ids": None}, InvalidOption),
        ({"agent_ids": ["a", ["b"]]}, InvalidOption),
        ({"agent_ids": ["a", "nobody"]}, AgentError),
        ({"agent_ids": ["a", "b", "a"]}, DuplicateId),
        ({"topic": " "}, InvalidOption),
        ({"rounds": 0}, InvalidOption),
        ({"rounds": 1.5}, InvalidOption),
        ({"timeout_per_round": -1}, InvalidOption),
    ],
)
def test_what_cannot_be_discussed_is_an_error_before_the_first_round(
    wrong: dict[str, Any], error: type[Exception]
) -> None:
    async def main() -> None:
        cast = Cast()
        async with await _spawned(cast, "a", "b") as pool:
            with pytest.raises(error):
                await Roundtable(None, pool).discuss(
                    **{"topic": "x", "agent_ids": ["a", "b"], **wrong}
                )
            with pytest.raises(AgentError, match="no agent 's'"):
                await Roundtable(None, pool, synthesizer="s").discuss("x", ["a", "b"])
        assert not cast.prompts

    played(main)


@pytest.mark.parametrize(
    "wrong",
    [
        {"config": {}},
        {"pool": None},
        {"on_turn": resting(1)},
        {"on_turn": Cast()},
        {"on_turn": 5},
        {"synthesizer": ["s"]},
        {"max_history": -1},
    ],
)
def test_a_table_that_cannot_be_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(wrong))):
        Roundtable(**{"config": None, "pool": pool_of(), **wrong})


def test_what_is_said_at_the_table_is_not_added_to_the_sessions_of_the_speakers() -> None:
    async def looks(ctx: TaskContext) -> str:
        return f"knows {len(ctx.session.messages)}"

    async def main() -> None:
        async with await _spawned(Cast(a=looks, b=looks), "a", "b") as pool:
            await pool.run_parallel_tasks(tasks("a"))
            found = await Roundtable(None, pool).discuss("x", ["a", "b"], rounds=2)
            assert found[1]["responses"] == {"a": "knows 2", "b": "knows 0"}
            again = await pool.run_parallel_tasks(tasks("a"))
            assert of(again, "output") == ["knows 2"]

    played(main)


def test_discussions_may_be_repeated_and_go_on_side_by_side() -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("abc", resting(1, "said")))
        async with await _spawned(cast, *"abc") as pool, Roundtable(None, pool) as table:
            async with asyncio.TaskGroup() as both:
                for ids in ("ab", "ab", "bc"):
                    both.create_task(table.discuss("x", [*ids], rounds=1))
            await table.discuss("x", ["a", "b"], rounds=1)
            assert cast.most_of == {"a": 1, "b": 1, "c": 1}  # nobody says two things at once
            names = {each.task_id for each in pool.runtime.outcomes if "round 1" in each.task_id}
            assert len(names) == 8

    played(main)


def test_whoever_stops_waiting_for_a_discussion_ends_it() -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("ab", resting(100)))
        async with await _spawned(cast, *"ab") as pool:
            table = Roundtable(None, pool)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await table.discuss("x", ["a", "b"])
            cast.does.clear()
            assert len(await table.discuss("y", ["a", "b"])) == 3
            assert asyncio.get_running_loop().time() == 5
            await pool.shutdown()
            with pytest.raises((ShuttingDown, AgentError)):
                await table.discuss("x", ["a", "b"])

    played(main)


@pytest.mark.parametrize("first", [_fails, resting(1000), raising(ConnectionError("gone"))])
def test_what_happens_in_one_round_does_not_end_the_next_ones(first: Any) -> None:
    async def main() -> None:
        cast = Cast(**dict.fromkeys("abcd", by_round(r1=first)))
        async with pool_of(cast, breaker=Breaker(failures=3, cool_down=30)) as pool:
            await pool.spawn_agents(agents(*"abcd", model="m"))
            table = Roundtable(None, pool)
            found = await table.discuss("x", [*"abcd"], rounds=3, timeout_per_round=20)
            assert all(each.startswith("[") for each in found[0]["responses"].values())
            for later in found[1:]:
                assert not any(each.startswith("[") for each in later["responses"].values())

    played(main)


async def story(seed: int) -> int:
    """A discussion with speakers that fail, hang, or do not stop; the number of placeholders."""
    chance = Random(seed)
    began: list[str] = []

    async def speaks(ctx: TaskContext) -> str:
        began.append(ctx.task.id)
        await asyncio.sleep(chance.choice((0, 1, 5, 20)))
        if chance.random() < 0.2:
            raise LookupError("lost")
        if chance.random() < 0.1:
            await asyncio.sleep(1e5)
        return f"{ctx.session.agent_id}{_round(ctx)}"

    cast = Cast(**dict.fromkeys("abcde", speaks))
    async with await _spawned(cast, *"abcde", max_concurrent=chance.choice((2, 5))) as pool:
        turns: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        asked = loop.time()
        table = Roundtable(None, pool, on_turn=turns.append)
        found = await table.discuss("x", [*"abcde"], rounds=3, timeout_per_round=10)
        assert loop.time() - asked <= 30.001
        assert [each["round"] for each in found] == [1, 2, 3]
        marked = 0
        for each in found:
            assert list(each["responses"]) == [*"abcde"]
            for agent_id, text in each["responses"].items():
                marked += text in ("[Timeout]", "[Error: LookupError: lost]")
                assert text.startswith("[") or text == f"{agent_id}{each['round']}"
        said = {(turn["round"], turn["agent_id"]): turn["response"] for turn in turns}
        assert len(turns) == len(said) == 15
        assert said == {
            (each["round"], agent_id): text
            for each in found
            for agent_id, text in each["responses"].items()
        }
        assert len(set(began)) == len(began)  # no turn was asked for twice
        assert cast.most <= 5
        assert not any(each["running"] for each in pool.get_pool_status()["agents"].values())
    return marked


def test_a_round_closes_at_its_deadline_and_every_speaker_has_one_turn_in_it() -> None:
    marked = 0
    for seed in range(100):
        run = simulate(lambda seed=seed: story(seed), seed=seed, deadline=1e6)  # type: ignore[misc]
        marked += run.value()
        assert not run.leaked
        assert not run.complaints
    assert marked > 100
