"""A run of each system, killed under 0.1.0, is resumed. `fixture_systems.py` has the programs."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from interlock.journal.reader import Reader
from interlock.model.stable_names import STABLE_NAMES
from tests.acceptance.old_journals import FIXTURES, copied

LEFT = {
    "pool": ["ada: stay", "thread: stay"],
    "chat": ["tutor: stay"],
    "roundtable": [
        "ben: [Round 2/3] Topic: Tabs? stay",
        "ada: [Round 3/3] Topic: Tabs?",
        "ben: [Round 3/3] Topic: Tabs?",
        "chair: [Synthesis] Topic: Tabs?",
    ],
    "executor": ["d1: stay"],
    "executor_refuses": ["d1: stay"],
    "queue": ["stay", "test"],
    "scheduler": ["stay"],
    "coordinator": ["stay", "bind"],
    "coordinator_async_class": ["stay", "bind"],
    "coordinator_async_agent": ["stay", "bind"],
    "coordinator_async_factory": ["stay", "bind"],
    "orchestrator": ["stay"],
}
"""What was still to be done when each program was killed."""


@pytest.fixture
def systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """The programs of the fixtures, whose agents end at once."""
    monkeypatch.syspath_prepend(str(FIXTURES))
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module("fixture_systems")
    monkeypatch.setattr(module, "patience", 0.0)
    module.called.clear()
    yield module
    module.called.clear()


def test_there_is_a_journal_of_every_program(systems: ModuleType) -> None:
    journals = {each.stem for each in FIXTURES.glob("systems/*.db")}
    assert journals == {*systems.PROGRAMS} == {*LEFT, "cron"}


@pytest.mark.parametrize("name", LEFT)
def test_a_system_of_0_1_0_goes_on_where_it_was_killed(
    tmp_path: Path, systems: ModuleType, name: str
) -> None:
    journal = copied(f"systems/{name}.db", tmp_path)
    result = systems.run(name, str(journal), True)
    assert sorted(systems.called) == sorted(LEFT[name])
    with Reader(journal) as reader:
        (run,) = reader.runs()
        assert not run.is_open
    # Sessions and outcomes from before the kill are in it.
    assert result == systems.run(name, "never-interrupted.db")


def test_a_firing_of_0_1_0_runs_again_and_the_state_of_its_jobs_is_known(
    tmp_path: Path, systems: ModuleType
) -> None:
    journal = copied("systems/cron.db", tmp_path)
    connection = sqlite3.connect(journal)
    query = "SELECT task_id FROM tasks WHERE task_id LIKE 'cron-often@%'"
    ((interrupted,),) = connection.execute(query).fetchall()
    connection.close()
    jobs = {each["job_id"]: each for each in systems.run("cron", str(journal), True)}
    assert "ends" not in systems.called
    assert [*jobs] == ["often", "manual", "disabled"]
    assert [jobs[each]["enabled"] for each in jobs] == [True, True, False]
    first = jobs["often"]["firings"][0]
    assert (first["task_id"], first["status"], first["trigger"]) == (
        interrupted,
        "success",
        "schedule",
    )
    for each in ("manual", "disabled"):
        assert jobs[each]["last_manual"]["status"] == "success"
        assert jobs[each]["last_manual"] == jobs[each]["firings"][0]


def test_every_agent_of_interlock_in_the_fixtures_has_a_stable_name() -> None:
    names: set[str] = set()
    for journal in FIXTURES.glob("**/*.db"):
        connection = sqlite3.connect(f"file:{journal}?mode=ro&immutable=1", uri=True)
        names |= {each for (each,) in connection.execute("SELECT agent FROM tasks")}
        connection.close()
    own = {each for each in names if each.startswith("interlock.")}
    assert own
    assert own <= {*STABLE_NAMES.values()}
