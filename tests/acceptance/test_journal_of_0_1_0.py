"""Journals that 0.1.0 has written (`tests/fixtures/`) are opened, shown and resumed."""

from __future__ import annotations

import importlib
import json
import shutil
import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from interlock import Breaker, Kind, Rate, Retry, Runtime, State, Task, Template
from interlock.journal.reader import Reader
from interlock.journal.rows import checksum
from interlock.journal.schema.codec import Codec
from interlock.model.claim import Mode
from interlock.runtime.recorded_types import RECORDED_TYPES
from tests.acceptance.command_line import Folder, folder
from tests.acceptance.old_journals import FIXTURES, copied, moved

__all__ = ["folder"]

LIMITS: dict[str, Rate | Breaker] = {
    "model": Rate("60/min", "100k/min"),
    "slow": Rate("1/min"),
    "api": Breaker(2, 3600),
}
CAPACITY = {"gpu": 2, "memory_mb": 4096, "disks": 1}


@pytest.fixture(autouse=True)
def _every_journal_replays() -> None:
    """Not here: the kernel decides as it did then, but words its errors in another way."""


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The agents of the fixtures, which do not keep anybody waiting any more."""
    monkeypatch.syspath_prepend(str(FIXTURES))
    module = importlib.import_module("fixture_agents")
    monkeypatch.setattr(module, "patience", 0.0)
    return module


def runtime(journal: Path, **options: Any) -> Runtime:
    return Runtime(
        16,
        journal.parent,
        journal,
        True,
        limits=LIMITS,
        capacity=CAPACITY,
        secrets=["hunter2"],
        **options,
    )


@pytest.mark.parametrize("name", ["library.db", "closed.db", "project/dot-interlock/journal.db"])
def test_every_event_of_0_1_0_is_read_as_one_of_today(
    tmp_path: Path, agents: ModuleType, name: str
) -> None:
    kinds = set()
    with Reader(copied(name, tmp_path), Codec(RECORDED_TYPES)) as reader:
        for run in reader.runs():
            for event in reader.all_events(run):
                kinds.add(event.kind)
                if event.kind is Kind.COMMAND:
                    assert event.fields["command"]
                elif event.kind in (Kind.SETTLED, Kind.REUSED):
                    assert event.data == reader.outcome(run, event.task_id) or event.task_id
                if event.data is not None:
                    plain = Kind.RUN_STARTED, Kind.RUN_ENDED, Kind.REPORTED, Kind.LOGGED
                    of_a_class = event.kind not in (*plain, Kind.LAUNCHED, Kind.INTERRUPTED)
                    assert isinstance(event.data, dict) is not of_a_class
    assert kinds


def test_the_fixtures_hold_every_kind_of_event(tmp_path: Path) -> None:
    kinds: set[Kind] = set()
    for name in ("library.db", "closed.db", "project/dot-interlock/journal.db"):
        with Reader(copied(name, tmp_path), Codec(RECORDED_TYPES)) as reader:
            kinds |= {each.kind for run in reader.runs() for each in reader.all_events(run)}
    assert kinds == set(Kind) - {Kind.MISSED}


def test_the_records_of_0_1_0_come_back_as_what_they_were(
    tmp_path: Path, agents: ModuleType
) -> None:
    with Reader(copied("library.db", tmp_path), Codec(RECORDED_TYPES)) as reader:
        (run,) = reader.runs()
        outcome = reader.outcome(run, "everything")
        assert outcome is not None
        assert outcome.result == agents.values()
        assert reader.record("sessions", "b") == agents.values()
        large = reader.outcome(run, "large")
        assert large is not None
        assert large.result == "large " * 12_000
        tasks = {
            event.task_id: event.data
            for event in reader.all_events(run)
            if event.kind is Kind.SUBMITTED
        }
        assert tasks["needs-exclusive"].claims[0].mode is Mode.EXCLUSIVE
        assert tasks["fails~2"].labels == {"retry_of": "fails"}
        assert reader.task(run, "fails~2").labels == {"retry_of": "fails"}
        assert tasks["secret"].prompt == "the password is ***"


async def test_a_run_of_0_1_0_that_was_killed_is_resumed(
    tmp_path: Path, agents: ModuleType
) -> None:
    journal = copied("library.db", tmp_path)
    async with runtime(journal) as rt:
        unsubmitted = rt.unsubmitted
        assert {"holder", "asks", "unanswered", "parent", "retries", "exclusive"} <= {*unsubmitted}
        assert not {"everything", "paid", "fails", "cancelled", "parent/first"} & {*unsubmitted}
        done = [
            rt.submit(agents.everything, agents.values(), id="everything", labels={"team": "docs"}),
            rt.submit(agents.large, id="large"),
            rt.submit(agents.echo, "pay", id="paid-again", key="invoice-7"),
            rt.submit(agents.flaky, id="flaky", retry=Retry(3, 0.01)),
        ]
        assert [each.state for each in done] == [State.SUCCEEDED] * 4
        assert done[0].outcome is not None
        assert done[0].outcome.result == agents.values()
        failed = rt.submit(agents.fails, id="fails")
        assert failed.outcome is not None
        assert failed.outcome.reason == "LookupError: not today"
        assert rt.submit(agents.echo, id="skipped", after=["fails"]).state is State.SKIPPED
        holder = rt.submit(agents.stays, id="holder", writes="held/")
        extends = rt.submit(agents.waits_to_extend, id="waits-to-extend")
        exclusive = rt.submit(agents.stays, id="exclusive", uses="suite:tests!")
        needs = rt.submit(agents.echo, 1, id="needs-exclusive", uses=["suite:tests!", "gpu=2"])
        later = rt.submit(agents.echo, 5, id="goes-on", after=["holder"])
        assert later.task.priority == 7  # as it was set then
        gpu = rt.submit(agents.stays, id="one-gpu", uses="gpu")
        parent = rt.submit(agents.parent, id="parent", writes="a/")
        retries = rt.submit(agents.retries, id="retries", retry=Retry(3, 3600))
        rt.cancel(retries)  # it would go on with its second attempt, and fail again
        rt.submit(agents.echo, 5, id="paused")
        template = rt.submit(
            Task("template", agents.echo, prompt=Template("of {{paid.output}}"), priority=3)
        )
        asks = rt.submit(agents.asks, id="asks")
        unanswered = rt.submit(agents.unanswered, id="unanswered")
        questions: dict[str, str] = {}
        async for event in rt.events():
            if event.kind is Kind.NEEDS_YOU:
                questions = {each.task_id: each.question for each in rt.questions()}
                if {"asks", "unanswered"} <= questions.keys():
                    break
        assert questions["asks"] == "Which shape?"  # its first question is answered
        rt.answer("asks", "square")
        rt.answer("unanswered", "large")
        assert (await asks).result == "blue square"
        assert (await unanswered).result == "large"
        for each in (holder, extends, exclusive, needs, later, gpu, parent, template):
            assert (await each).succeeded, each
        assert {*rt.unsubmitted} == {"behind-breaker", "slow"}
    with Reader(journal, Codec(RECORDED_TYPES)) as reader:
        (run,) = reader.runs()
        assert run.is_open  # not all of its tasks were submitted
        assert reader._format() == 2  # migrated by the first write
        assert reader.task(run, "fails~2").labels == {"retry_of": "fails"}
        assert [each.number for each in reader.all_events(run)][-1] == reader.last(run)


async def test_a_closed_run_of_0_1_0_is_gone_on_from(tmp_path: Path, agents: ModuleType) -> None:
    journal = copied("closed.db", tmp_path)
    with Reader(journal) as reader:
        second = reader.runs()[1].id
    async with Runtime(16, tmp_path, journal, second) as rt:
        reused = [
            rt.submit(agents.echo, 1, id="one", key="key-1"),
            rt.submit(agents.echo, 2, id="two"),
            rt.submit(agents.everything, agents.values(), id="everything"),
            rt.submit(agents.echo, 4, id="wants-z", writes="z.txt"),
        ]
        assert [each.state for each in reused] == [State.SUCCEEDED] * 4
        failed = rt.submit(agents.fails, id="three")
        assert (await failed).status is State.FAILED
        await rt.flush()
    with Reader(journal, Codec(RECORDED_TYPES)) as reader:
        run = reader.last_run()
        assert run is not None
        assert run.inherits == second
        events = list(reader.all_events(run))
        assert [each.task_id for each in events if each.kind is Kind.REUSED] == [
            "one",
            "two",
            "everything",
            "wants-z",
        ]
        assert [each.task_id for each in events if each.kind is Kind.STARTED] == ["three"]


def test_the_command_line_shows_and_resumes_a_run_of_0_1_0(folder: Folder) -> None:
    project = FIXTURES / "project"
    for name in ("interlock.yaml", "plan.yaml", "done.txt"):
        shutil.copy(project / name, folder.path / name)
    shutil.copytree(project / "dot-interlock", folder.path / ".interlock")
    moved(folder.path / ".interlock" / "journal.db", folder.path)
    facts = folder.facts("status")
    states = {task["id"]: task["state"] for task in facts["tasks"]}
    assert (facts["active"], facts["ended_at"]) == (False, None)
    assert states == {
        "done": "succeeded",
        "fails~2": "failed",
        "skipped~2": "skipped",
        "held": "waiting",
        "alone": "blocked",
        "waits": "succeeded",
        "last": "blocked",
    }
    assert facts["tasks"][1]["retry_of"] == "fails"
    assert "fails~2" in folder.told("status")
    assert "held" in folder.told("why", "last")
    assert folder.told("logs", "fails~2") == "broken\n"
    lines = [json.loads(line) for line in folder.told("events", "--json").splitlines()]
    assert [each["number"] for each in lines] == list(range(1, len(lines) + 1))
    assert {each["kind"] for each in lines} <= {each.value for each in Kind}
    assert "drain" in folder.told("events")
    (folder.path / "go").touch()
    resumed = folder.json("run", "--resume", code=1)
    assert resumed["run_id"] == facts["run_id"]
    states = {task["id"]: task["state"] for task in resumed["tasks"]}
    assert [states[each] for each in ("held", "alone", "last")] == ["succeeded"] * 3
    assert (folder.path / "done.txt").read_text() == "done\n"  # not run again


@pytest.mark.parametrize(
    ("kind", "found", "known"),
    [
        ("teleported", "'teleported' has version 1", "knows nothing of that name"),
        ("settled/5", "'settled' has version 5", "knows versions up to 1 of it"),
    ],
)
def test_the_command_line_refuses_what_a_newer_interlock_has_written(
    folder: Folder, kind: str, found: str, known: str
) -> None:
    project = FIXTURES / "project"
    shutil.copy(project / "interlock.yaml", folder.path / "interlock.yaml")
    shutil.copy(project / "plan.yaml", folder.path / "plan.yaml")
    (folder.path / ".interlock").mkdir()
    journal = copied("project/dot-interlock/journal.db", folder.path / ".interlock")
    moved(journal, folder.path)
    connection = sqlite3.connect(journal)
    connection.create_function("checksum", -1, checksum)
    connection.execute("UPDATE events SET kind = ? WHERE kind = 'settled'", (kind,))
    connection.execute("UPDATE events SET checksum = checksum(data, file, seq, at, kind, task_id)")
    connection.commit()
    connection.close()
    before = journal.read_bytes()
    for words in (["run", "--resume"], ["status"], ["why", "last"], ["events"], ["logs", "held"]):
        done = folder.run(*words, code=1)
        assert done.err.startswith("interlock: "), words
        assert found in done.err, words
        assert known in done.err, words
        assert "Traceback" not in done.err
    assert journal.read_bytes() == before
