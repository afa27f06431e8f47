"""The disk fails at every operation in turn: nothing acknowledged is lost, nothing is there twice.

On a virtual loop, with the real store and real files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.journal.files import LARGE
from interlock.journal.reader import Reader
from interlock.journal.schema.codec import Codec
from interlock.journal.sqlite import SqliteJournal
from interlock.model.event import Event, Kind
from interlock.model.outcome import State
from interlock.model.task import Task
from interlock.testing.virtual_run import VirtualRun, simulate
from tests.simulation.faulty_disk import DiskFault, FaultyDisk
from tests.simulation.loop_writer import LoopWriter
from tests.unit.journal.story import AGENT, KNOWN, Story

PASSING = (DiskFault.ERROR, DiskFault.FULL, DiskFault.SHORT, DiskFault.UNSURE)
CRASHES = (DiskFault.CRASH_BEFORE, DiskFault.CRASH_AFTER)


class Program:
    """Appends turns with everything in them that a journal can hold, and notes what it was told."""

    def __init__(self, path: Path, disk: FaultyDisk) -> None:
        self.path = path
        self.disk = disk
        self.turns: list[list[Event]] = []
        self.acknowledged = 0
        self.record: int | None = None
        self.troubles: list[Exception | None] = []
        self.journal: SqliteJournal | None = None

    async def main(self) -> None:
        self.journal = journal = SqliteJournal(
            self.path,
            known=KNOWN,
            disk=self.disk,
            writer=LoopWriter,
            on_trouble=self.troubles.append,
        )
        await journal.begin("r1", 1000.0)
        story = Story()
        self.turns = [
            [story.tell(Kind.RUN_STARTED)],
            [*story.begun(Task("a", AGENT, key="ka")), *story.begun(Task("b", AGENT))],
            story.ended("a", "x" * (LARGE + 1)),
            story.ended("b", status=State.FAILED),
            story.life(Task("c", AGENT), "small", takes=2.0),
            [story.tell(Kind.RUN_ENDED)],
        ]
        for number, turn in enumerate(self.turns):
            done = journal.append(turn)
            if number == 3:
                await journal.records("ns").put("k", number)
                self.record = number
            await done
            self.acknowledged = number + 1
        journal.close()

    def simulate(self) -> VirtualRun[None]:
        run = simulate(self.main)
        if run.crashed and self.journal is not None:
            self.journal.abandon()
        return run


def strike(
    tmp_path: Path, fault: DiskFault, times: int = 1
) -> list[tuple[Program, VirtualRun[None]]]:
    """The program with the fault at each of its operations."""
    plain = Program(tmp_path / "plain.db", FaultyDisk())
    plain.simulate().value()
    assert plain.disk.operations > 25
    struck = []
    for at in range(1, plain.disk.operations + 1):
        program = Program(tmp_path / f"{at}.db", FaultyDisk(at, fault, times))
        struck.append((program, program.simulate()))
        assert program.disk.struck >= 1
    return struck


def look(program: Program, use: Callable[[Any], Any]) -> Any:
    with Reader(program.path, Codec(KNOWN)) as reader:
        return use(reader)


def found(program: Program) -> list[Event]:
    with Reader(program.path, Codec(KNOWN)) as reader:
        return [event for run in reader.runs() for event in reader.all_events(run)]


@pytest.mark.parametrize("times", [1, 8])
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_costs_time_and_nothing_else(
    tmp_path: Path, fault: DiskFault, times: int
) -> None:
    for program, run in strike(tmp_path, fault, times):
        run.value()
        assert found(program) == [event for turn in program.turns for event in turn]
        assert look(program, lambda reader: reader.record("ns", "k")) == 3
        history = look(program, lambda reader: reader.estimate(AGENT))
        assert history == pytest.approx((2, 1.0, 2**0.5))
        assert look(program, lambda reader: reader.success("ka").outcome.task_id) == "a"
        # Each trouble was told of once, and once that it was over.
        assert all(program.troubles[::2])
        assert program.troubles[1::2] == [None] * len(program.troubles[::2])


@pytest.mark.parametrize("fault", CRASHES)
def test_a_crash_anywhere_loses_nothing_acknowledged_and_tears_no_turn(
    tmp_path: Path, fault: DiskFault
) -> None:
    for program, run in strike(tmp_path, fault):
        assert run.crashed
        events = found(program)
        whole = [turn for turn in program.turns if turn[-1].number <= len(events)]
        assert events == [event for turn in whole for event in turn]
        assert len(whole) >= program.acknowledged
        if program.record is not None:
            assert look(program, lambda reader: reader.record("ns", "k")) == program.record


@pytest.mark.parametrize("fault", CRASHES)
def test_after_a_crash_anywhere_the_folded_tasks_tell_the_same_as_the_story(
    tmp_path: Path, fault: DiskFault
) -> None:
    for program, _ in strike(tmp_path, fault):
        last = {
            event.task_id: event.kind
            for event in found(program)
            if event.kind in (Kind.SUBMITTED, Kind.STARTED, Kind.SETTLED)
        }
        folded = look(
            program,
            lambda reader: {
                task.task_id: task.settled is not None
                for run in reader.runs()
                for task in reader.tasks(run)
            },
        )
        assert folded == {name: kind is Kind.SETTLED for name, kind in last.items()}


def test_a_crashed_journal_is_opened_again_and_goes_on(tmp_path: Path) -> None:
    for program, _ in strike(tmp_path, DiskFault.CRASH_AFTER):
        before = len(found(program))

        async def again(path: Path = program.path) -> int:
            journal = SqliteJournal(path, known=KNOWN, disk=FaultyDisk(), writer=LoopWriter)
            await journal.begin("r1", 1000.0)
            first = journal.last + 1
            await journal.append([Event(first, 1.0, Kind.LOGGED, "", "again")])
            journal.close()
            return first

        assert simulate(again).value() == before + 1
        assert found(program)[-1].data == "again"


def test_a_disk_that_stays_full_is_told_of_and_closing_says_what_is_lost(tmp_path: Path) -> None:
    program = Program(tmp_path / "j.db", FaultyDisk(5, DiskFault.FULL, times=10**9))

    async def main() -> None:
        journal = SqliteJournal(
            program.path,
            known=KNOWN,
            disk=program.disk,
            writer=LoopWriter,
            on_trouble=program.troubles.append,
        )
        await journal.begin("r1", 1000.0)
        story = Story()
        for n in range(5):
            journal.append([story.tell(Kind.LOGGED, "a", n)])
        with pytest.raises(Exception, match=r"could not be written .*full"):
            journal.close()

    simulate(main).value()
