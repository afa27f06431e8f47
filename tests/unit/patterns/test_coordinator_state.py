"""What a state manager is told, and that it can do no harm."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest

from interlock.patterns.coordinator.coordinated_call import CoordinatedCall
from interlock.patterns.coordinator.coordinated_run import RECORDS
from tests.unit.patterns.coordination import (
    Notebook,
    Team,
    coordinator,
    fails,
    part,
    sleeps,
    statuses,
)
from tests.unit.patterns.groups import played

RECORD = {
    "parent_task_id",
    "group",
    "subtask_ids",
    "num_agents",
    "agent_ids",
    "max_concurrent_agents",
    "success",
    "started_at",
    "ended_at",
    "agent_durations",
    "total_duration_seconds",
    "sequential_seconds",
    "speedup_factor",
    "wall_speedup",
    "failed_agents",
    "errors",
    "failure_reason",
    "attempts",
    "strategy",
}


def test_both_speedups_are_recorded_as_defined() -> None:
    async def main() -> None:
        notebook = Notebook()
        team = Team(s1=sleeps(10), s2=sleeps(20), s3=sleeps(30), s4=sleeps(7))
        coord = coordinator(team, notebook, max_parallel_agents=2)
        await coord.execute([part(1, 1), part(2, 1), part(3, 1), part(4, 2)], "T")
        first, second = notebook.records
        assert set(first) == RECORD
        wall = first["total_duration_seconds"]
        assert 30 <= wall < 60  # three on two places: never all at once, never one by one
        assert first["sequential_seconds"] == pytest.approx(60)
        assert first["speedup_factor"] == pytest.approx(60 / 30)
        assert first["wall_speedup"] == pytest.approx(60 / wall)
        assert first["ended_at"] - first["started_at"] == timedelta(seconds=wall)
        assert first["agent_durations"] == pytest.approx({1: 10, 2: 20, 3: 30})
        assert (first["parent_task_id"], first["group"], first["strategy"]) == (
            *("T", 1),
            "parallel_groups",
        )
        assert (first["subtask_ids"], first["num_agents"], first["success"]) == ([1, 2, 3], 3, True)
        assert (first["failed_agents"], first["attempts"]) == ([], {1: 1, 2: 1, 3: 1})
        assert second["speedup_factor"] == second["wall_speedup"] == pytest.approx(1)
        assert second["started_at"] >= first["ended_at"]

    played(main)


def test_a_group_that_failed_says_who_and_how_often() -> None:
    async def main() -> None:
        notebook = Notebook()
        team = Team(s1=fails(), s2=fails(1))
        await coordinator(team, notebook).execute([part(1, 1), part(2, 1), part(3, 1, 1)], "T")
        (record,) = notebook.records
        assert record["success"] is False
        assert record["failed_agents"] == [1, 3]
        assert record["attempts"] == {1: 3, 2: 2, 3: 0}
        assert record["num_agents"] == 2

    played(main)


class Database:
    """Stores records as the original's does: it fails for a required key that is missing."""

    REQUIRED = (
        "num_agents",
        "agent_ids",
        "subtask_ids",
        "success",
        "total_duration_seconds",
        "max_concurrent_agents",
        "parallelization_strategy",
        "started_at",
        "completed_at",
    )

    def __init__(self) -> None:
        self.rows: list[tuple[Any, dict[str, Any]]] = []

    def log_parallel_attempt(self, task_id: Any, attempt_data: dict[str, Any]) -> None:
        for name in self.REQUIRED:
            assert attempt_data[name] is not None
        self.rows.append((task_id, attempt_data))


class OtherNames(Database):
    def log_parallel_attempt(self, parent: Any, data: dict[str, Any], /) -> None:
        super().log_parallel_attempt(parent, data)


@pytest.mark.parametrize("manager", [Database, OtherNames])
def test_a_state_manager_that_takes_a_task_id_and_attempt_data_gets_every_record(
    manager: type[Database],
) -> None:
    async def main() -> None:
        database = manager()
        team = Team(s1=sleeps(2), s2=fails())
        parts = [part(1, 1), part(2, 1), part(3, 2, 2)]
        await coordinator(team, database, max_retries=0).execute(parts, "T")
        assert [task_id for task_id, _ in database.rows] == ["T", "T"]
        first, second = sorted((data for _, data in database.rows), key=lambda data: data["group"])
        assert (first["num_agents"], first["success"], first["failed_agent_count"]) == (2, False, 1)
        assert first["agent_ids"] == ["T/1#1", "T/2#1"]
        assert first["sequential_estimate_seconds"] == first["sequential_seconds"] > 0
        assert first["parallelization_strategy"] == "parallel_groups"
        assert first["failure_reason"] == "Subtask 2: LookupError: attempt 1"
        assert (second["num_agents"], second["agent_ids"]) == (0, [])

    played(main)


def test_a_record_carries_the_reasons_of_failures() -> None:
    async def main() -> None:
        notebook = Notebook()
        team = Team(s1=fails(), s2=sleeps(9))
        await coordinator(team, notebook, max_retries=0, agent_timeout_seconds=5).execute(
            [part(1, 1), part(2, 1), part(3, 1), part(4, 1, 1)], "T"
        )
        (record,) = notebook.records
        assert list(record["errors"]) == record["failed_agents"] == [1, 2, 4]
        assert record["errors"][1] == "LookupError: attempt 1"
        assert record["errors"][2] == "TimedOut: attempt 1 exceeded its timeout"
        assert record["errors"][4] == "subtask 1, on which it depends, was not completed"
        assert all(said in record["failure_reason"] for said in record["errors"].values())

    played(main)


def test_where_no_time_goes_by_there_is_no_speedup() -> None:
    async def main() -> None:
        notebook = Notebook()
        await coordinator(Team(), notebook).execute([part(1, 1)], "T")
        assert notebook.records[0]["speedup_factor"] == 1.0
        assert notebook.records[0]["wall_speedup"] == 1.0

    played(main)


def test_every_state_is_written_through() -> None:
    async def main() -> None:
        seen: list[tuple[Any, str, bool]] = []

        class Manager:
            def update_subtask(self, subtask_id: Any, state: str) -> None:
                seen.append((subtask_id, state, f"s{subtask_id}" in team.inside))

        team = Team(s1=sleeps(5), s2=fails(), s4=fails(1))
        parts = [part(1, 1), part(2, 1), part(3, 2, 2), part(4, 2)]
        await coordinator(team, Manager(), max_retries=1).execute(parts, "T")
        states = {n: [state for m, state, _ in seen if m == n] for n in (1, 2, 3, 4)}
        assert states == {
            1: ["pending", "in_progress", "completed"],
            2: ["pending", "in_progress", "failed"],
            3: ["pending", "skipped"],
            4: ["pending", "in_progress", "completed"],
        }
        assert [each[1] for each in seen[:4]] == ["pending"] * 4  # before anybody starts
        assert not any(inside for _, state, inside in seen if state != "in_progress")

    played(main)


def test_a_failing_state_manager_harms_nothing_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        def update_subtask(self, subtask_id: Any, state: str) -> None:
            raise OSError("disk")

        def log_parallel_attempt(self, **record: Any) -> None:
            raise OSError("disk")

    async def main() -> None:
        parts = [part(1, 1), part(2, 2)]
        results = await coordinator(Team(), Broken()).execute(parts, "T")
        assert statuses(results) == {1: "completed", 2: "completed"}

    with caplog.at_level(logging.ERROR, "interlock"):
        played(main)
    told = [each for each in caplog.records if each.message == "state_manager_failed"]
    assert len(told) == 8
    assert {each.interlock["method"] for each in told} == {  # type: ignore[attr-defined]
        "update_subtask",
        "log_parallel_attempt",
    }


@pytest.mark.parametrize("manager", [None, object()])
def test_without_one_the_journal_keeps_the_records(manager: Any) -> None:
    async def main() -> None:
        async with coordinator(Team(s1=sleeps(3)), manager) as coord:
            await coord.execute([part(1, 1), part(2, 2)], "T")
            kept = dict(coord.runtime.records(RECORDS).items())
            assert [each.rpartition("/")[2] for each in kept] == ["1", "2"]
            assert all(set(each) == RECORD for each in kept.values())
            assert {"T/1", "T/2"} <= {each.task_id for each in coord.runtime.outcomes}

    played(main)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_in_the_state_manager_cancels_its_call_and_is_its_callers(
    interruption: type[BaseException],
) -> None:
    class Interrupted(Notebook):
        def update_subtask(self, subtask_id: Any, state: str) -> None:
            super().update_subtask(subtask_id, state)
            if (subtask_id, state) == (1, "completed"):
                raise interruption

    async def main() -> None:
        notebook = Interrupted()
        async with coordinator(Team(s1=sleeps(1), s2=sleeps(50)), notebook) as coord:
            with pytest.raises(interruption):
                await coord.execute([part(1, 1), part(2, 1), part(3, 2)], "T")
            assert notebook.states[2] == ["pending", "in_progress", "cancelled"]
            assert notebook.states[3] == ["pending", "cancelled"]
            # The run goes on for others.
            assert statuses(await coord.execute([part(4)], "T")) == {4: "completed"}

    played(main)


def test_a_state_manager_that_seems_cancelled_does_no_harm() -> None:
    class Cancelled(Notebook):
        def update_subtask(self, subtask_id: Any, state: str) -> None:
            raise asyncio.CancelledError

    async def main() -> None:
        results = await coordinator(Team(), Cancelled()).execute([part(1)], "T")
        assert statuses(results) == {1: "completed"}

    played(main)


def test_a_coordinator_that_lasts_keeps_only_the_latest_outcomes_and_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("interlock.patterns.coordinator.coordinator._MAX_OUTCOMES", 3)

    async def main() -> None:
        team = Team(s29=sleeps(50), s30=sleeps(50))
        async with coordinator(team, max_parallel_agents=1) as coord:
            parts = [part(number, 1 + number // 10) for number in range(20)]
            assert set(statuses(await coord.execute(parts, "T")).values()) == {"completed"}
            for _ in range(9):
                await coord.execute([part(1)], "T")
            assert len(coord.runtime.outcomes) == 3
            assert len(list(coord.runtime.records(RECORDS).items())) == 3
            call = asyncio.create_task(coord.execute([part(n, 1) for n in range(20, 31)], "T"))
            await asyncio.sleep(60)
            coord.cancel()  # also what has ended and was forgotten belongs to it
            assert sorted(statuses(await call).values()).count("cancelled") == 1

    played(main)


def test_a_name_is_found_without_counting_up_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    ids = CoordinatedCall.ids

    def watched(self: CoordinatedCall, name: str) -> list[str]:
        looked.append(name)
        return ids(self, name)

    monkeypatch.setattr(CoordinatedCall, "ids", watched)

    async def main() -> None:
        async with coordinator(Team()) as coord:
            for _ in range(30):
                await coord.execute([part(1)], "T")
            await coord.execute([part(2)], "T")
            assert coord.runtime.handle("T~30/1").state.is_end
            assert coord.runtime.handle("T/2").state.is_end

    played(main)
    assert len(looked) <= 3 * 31
