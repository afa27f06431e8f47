"""The coordinator on the deterministic loop: order, limits, attempts, clocks, ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import ShuttingDown, State
from tests.unit.patterns.coordination import (
    Notebook,
    Team,
    coordinator,
    fails,
    part,
    sleeps,
    statuses,
)
from tests.unit.patterns.groups import played, resists


def test_groups_run_one_after_another_in_ascending_order() -> None:
    async def main() -> None:
        team = Team(s1=sleeps(5), s2=sleeps(1), s3=sleeps(1), s4=sleeps(9), s5=fails())
        results = await coordinator(team, retry_failed_agents=False).execute(
            [part(4, 10), part(1, 2), part(2, 2), part(3, 1), part(5, 1)], "T"
        )
        assert [each["subtask_id"] for each in results] == [1, 2, 3, 4, 5]
        groups = [{"s3", "s5"}, {"s1", "s2"}, {"s4"}]
        lines = iter(team.story)
        for group in groups:
            assert {next(lines).split()[0] for _ in range(2 * len(group))} == group
        assert statuses(results)[5] == "failed"  # and nobody else suffered for it
        assert statuses(results)[4] == "completed"

    played(main)


def test_inside_a_group_they_run_at_the_same_time() -> None:
    async def main() -> None:
        team = Team(**{f"s{number}": sleeps(60) for number in range(5)})
        await coordinator(team).execute([part(number, 1) for number in range(5)], "T")
        assert team.most == 5
        assert asyncio.get_running_loop().time() < 70

    played(main)


def test_what_has_no_group_runs_after_the_groups_alone_and_by_id() -> None:
    async def main() -> None:
        team = Team(**{f"s{number}": sleeps(1) for number in range(1, 13)})
        await coordinator(team).execute([part(12), part(2), part(1), part(9, 5), part(10)], "T")
        assert [line for line in team.story if line.endswith("begins")] == [
            f"s{number} begins" for number in (9, 1, 2, 10, 12)
        ]
        assert team.most == 1

    played(main)


def test_what_has_no_group_comes_after_what_it_depends_on() -> None:
    async def main() -> None:
        team = Team()
        await coordinator(team).execute([part(1, None, 3), part(2), part(3)], "T")
        begun = [line for line in team.story if line.endswith("begins")]
        assert begun == ["s2 begins", "s3 begins", "s1 begins"]

    played(main)


def test_dependencies_hold_inside_a_group_and_across_groups() -> None:
    async def main() -> None:
        team = Team(s1=sleeps(3), s2=sleeps(1), s3=fails(), s4=sleeps(1), s6=sleeps(1))
        parts = [
            *(part(1, 1), part(2, 1, 1), part(3, 1)),
            *(part(4, 2, 3), part(5, 2, 4), part(6, 2, 1)),
        ]
        results = await coordinator(team, retry_failed_agents=False).execute(parts, "T")
        assert team.story.index("s2 begins") > team.story.index("s1 ends")
        assert statuses(results) == {
            **{1: "completed", 2: "completed", 3: "failed"},
            **{4: "skipped", 5: "skipped", 6: "completed"},
        }
        skipped = results[3]
        assert skipped["error"] == "subtask 3, on which it depends, was not completed"
        assert (skipped["attempts"], skipped["agent_id"], skipped["result"]) == (0, None, None)
        assert "s4" not in team.attempts

    played(main)


def test_a_limit_smaller_than_the_group_holds_and_the_rest_queues() -> None:
    async def main() -> None:
        team = Team(**{f"s{number}": sleeps(1) for number in range(20)})
        results = await coordinator(team, max_parallel_agents=3).execute(
            [part(number, 1) for number in range(20)], "T"
        )
        assert team.most == 3
        assert set(statuses(results).values()) == {"completed"}
        assert len(results) == 20

    played(main)


def test_the_limit_can_be_changed_while_agents_work() -> None:
    async def main() -> None:
        team = Team(**{f"s{number}": sleeps(10) for number in range(12)})
        coord = coordinator(team, max_parallel_agents=2)
        call = asyncio.create_task(coord.execute([part(number, 1) for number in range(12)], "T"))
        await asyncio.sleep(5)
        assert len(team.inside) == 2
        coord.set_max_parallel(6)
        await asyncio.sleep(1)
        assert len(team.inside) == 6
        coord.set_max_parallel(1)
        await asyncio.sleep(10)
        assert len(team.inside) == 1
        assert set(statuses(await call).values()) == {"completed"}

    played(main)


@pytest.mark.parametrize("seed", range(5))
def test_attempts_are_repeated_with_backoff_that_doubles_and_jitter(seed: int) -> None:
    async def main() -> list[float]:
        team = Team(s1=fails(2))
        (result,) = await coordinator(team, seed=seed, retry_backoff_seconds=8).execute(
            [part(1)], "T"
        )
        assert (result["status"], result["attempts"], result["result"]) == (
            "completed",
            3,
            "s1 done",
        )
        assert team.made == 3  # a fresh agent for each
        first, second, third = team.starts["s1"]
        assert 6 <= second - first <= 8
        assert 12 <= third - second <= 16
        return [second - first, third - second]

    assert played(main, seed) != [8, 16]


def test_backoff_holds_no_place() -> None:
    async def main() -> None:
        team = Team(s1=fails(1), s2=sleeps(1))
        await coordinator(team, max_parallel_agents=1, retry_backoff_seconds=60).execute(
            [part(1, 1), part(2, 1, minutes=0)], "T"
        )
        assert team.starts["s2"][0] < team.starts["s1"][1]

    played(main)


@pytest.mark.parametrize(
    ("config", "attempts"),
    [
        ({}, 3),
        ({"max_retries": 0}, 1),
        ({"retry_failed_agents": False}, 1),
        ({"max_retries": 4}, 5),
    ],
)
def test_after_the_last_attempt_a_subtask_has_failed_for_good(
    config: dict[str, Any], attempts: int
) -> None:
    async def main() -> None:
        team = Team(s1=fails())
        (result,) = await coordinator(team, **config).execute([part(1)], "T")
        assert (result["status"], result["attempts"]) == ("failed", attempts)
        assert result["error"] == f"LookupError: attempt {attempts}"
        assert result["result"] is None
        assert team.attempts["s1"] == attempts

    played(main)


def test_each_agent_has_its_own_clock_which_waiting_does_not_wind() -> None:
    async def main() -> None:
        team = Team(**{f"s{number}": sleeps(90) for number in range(4)})
        results = await coordinator(
            team, max_parallel_agents=1, agent_timeout_seconds=100, max_retries=0
        ).execute([part(number, 1) for number in range(4)], "T")
        assert set(statuses(results).values()) == {"completed"}

    played(main)


def test_an_attempt_that_is_out_of_time_is_repeated_and_then_a_timeout() -> None:
    async def main() -> None:
        team = Team(s1=sleeps(1_000), s2=sleeps(1))
        results = await coordinator(team, agent_timeout_seconds=100, max_retries=1).execute(
            [part(1, 1), part(2, 1)], "T"
        )
        assert statuses(results) == {1: "timeout", 2: "completed"}
        assert results[0]["attempts"] == team.attempts["s1"] == 2
        assert results[0]["error"]
        assert 200 < results[0]["duration_seconds"] < 205

    played(main)


def test_at_the_deadline_of_the_call_what_is_unfinished_is_a_timeout() -> None:
    async def main() -> None:
        team = Team(s1=sleeps(10), s2=sleeps(1_000), s4=sleeps(1))
        notebook = Notebook()
        results = await coordinator(team, notebook, deadline_seconds=50).execute(
            [part(1, 1), part(2, 1), part(3, 1, 2), part(4, 2), part(5)], "T"
        )
        assert asyncio.get_running_loop().time() == pytest.approx(50, abs=1)
        assert statuses(results) == {1: "completed", **dict.fromkeys((2, 3, 4, 5), "timeout")}
        assert not team.inside
        assert len(notebook.records) == 3
        assert notebook.states[4] == ["pending", "timeout"]

    played(main)


def test_cancel_ends_all_calls_and_their_results_say_so() -> None:
    async def main() -> None:
        team = Team(s1=sleeps(1), s2=sleeps(1_000))
        coord = coordinator(team)
        parts = [part(1, 1), part(2, 1), part(3, 1, 2), part(4, 2), part(5)]
        calls = [asyncio.create_task(coord.execute(parts, "T")) for _ in range(2)]
        await asyncio.sleep(500)
        coord.cancel()
        for call in calls:
            ends = statuses(await call)
            assert ends == {1: "completed", **dict.fromkeys((2, 3, 4, 5), "cancelled")}
        assert not team.inside
        results = await coord.execute([part(1)], "T")
        assert statuses(results) == {1: "completed"}

    played(main)


def test_whoever_is_cancelled_cancels_the_agents_and_leaves_nothing_behind() -> None:
    async def main() -> None:
        async def stubborn(attempt: int) -> None:
            await resists(5)()

        team, notebook = Team(s1=sleeps(1_000), s2=stubborn), Notebook()
        coord = coordinator(team, notebook)
        call = asyncio.create_task(coord.execute([part(1, 1), part(2, 1), part(3, 2)], "T"))
        await asyncio.sleep(1)
        assert team.inside == {"s1", "s2"}
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        assert not team.inside
        assert {each[-1] for each in notebook.states.values()} == {"cancelled"}

    played(main)


def test_calls_share_claims_and_the_limit_and_may_use_the_same_ids() -> None:
    async def main() -> None:
        team = Team(s1=sleeps(5), s2=sleeps(5), s3=sleeps(5))
        coord = coordinator(team, max_parallel_agents=2)
        async with coord, asyncio.TaskGroup() as calls:
            for _ in range(3):
                calls.create_task(coord.execute([part(1, 1), part(2, 1), part(3, 2)], "T"))
        assert team.most == 2
        assert team.attempts == {"s1": 3, "s2": 3, "s3": 3}
        with pytest.raises(ShuttingDown):
            await coord.execute([part(1)], "T")

    played(main)


def test_files_are_claimed_also_between_calls_and_in_any_spelling() -> None:
    async def main() -> None:
        team = Team(s1=sleeps(5), s2=sleeps(5))
        coord = coordinator(team, parallelization_strategy="file_based")
        async with coord, asyncio.TaskGroup() as calls:
            calls.create_task(coord.execute([part(1, files=["src/a.py"])], "T"))
            calls.create_task(coord.execute([part(2, files="./src/*.py")], "T"))
        assert team.most == 1

    played(main)


def test_file_based_ignores_groups_and_uses_claims() -> None:
    async def main() -> None:
        team = Team(**{f"s{number}": sleeps(5) for number in range(1, 5)})
        parts = [
            part(1, 1, files=["src/"]),
            part(2, 2, files=["docs/"]),
            part(3, 3, files=["src/a.py"]),
            part(4, 4, 2, files=["x.toml"]),
        ]
        notebook = Notebook()
        coord = coordinator(team, notebook, parallelization_strategy="file_based")
        results = await coord.execute(parts, "T")
        assert set(statuses(results).values()) == {"completed"}
        assert team.starts["s1"] == team.starts["s2"]
        assert team.story.index("s3 begins") > team.story.index("s1 ends")
        assert team.story.index("s4 begins") > team.story.index("s2 ends")
        assert [each["group"] for each in notebook.records] == [None]

    played(main)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("strategy", ["file_based", "parallel_groups"])
def test_a_test_runs_beside_nobody_in_any_strategy_nor_beside_another_call(
    seed: int, strategy: str
) -> None:
    async def main() -> None:
        alone: list[bool] = []

        async def looks(attempt: int) -> None:
            for _ in range(3):
                alone.append(len(team.inside) == 1)
                await asyncio.sleep(1)

        team = Team(s1=sleeps(3), s2=looks, s3=sleeps(3), s4=looks)
        coord = coordinator(team, parallelization_strategy=strategy)
        first = [part(1, 1), part(2, 2, description="run pytest"), part(3, 3)]
        second = [part(4, 1, is_test=True), part(3, 2)]
        async with coord, asyncio.TaskGroup() as calls:
            calls.create_task(coord.execute(first, "T"))
            calls.create_task(coord.execute(second, "T"))
        assert alone == [True] * 6

    played(main, seed)


def test_why_explains_who_waits_for_a_group_a_test_a_file_or_a_place() -> None:
    async def main() -> None:
        team = Team(s1=sleeps(50), s2=sleeps(50))
        async with coordinator(team, max_parallel_agents=2) as coord:
            parts = [part(1, 1, files="src/"), part(2, 1, files="src/a"), part(3, 2)]
            one = asyncio.create_task(coord.execute(parts, "T"))
            two = asyncio.create_task(coord.execute([part(4, is_test=True)], "T"))
            await asyncio.sleep(1)
            assert "depends on T:group 1, which has been running" in str(coord.runtime.why("T/3"))
            assert "T/1 has held write src/" in str(coord.runtime.why("T/2"))
            assert "T/1 has held tests run alone" in str(coord.runtime.why("T/4"))
            await one
            await two
            assert coord.runtime.handle("T/3").state is State.SUCCEEDED

    played(main)


def test_nothing_to_do_is_done_at_once() -> None:
    async def main() -> None:
        assert await coordinator(Team()).execute([], "T") == []

    played(main)
