"""A disk that is full: nothing starts, nothing is lost, the user is told, and it goes on."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from interlock import InterlockError, Runtime, State
from interlock.journal.reader import Reader
from interlock.model.why import StuckJournal


@contextmanager
def no_room_for(journal: Path) -> Iterator[None]:
    """No file of this process can grow beyond what the log of the journal has now."""
    size = Path(f"{journal}-wal").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def _until(condition: object) -> None:
    while not condition():  # type: ignore[operator]
        await asyncio.sleep(0.001)


async def test_results_wait_for_room_and_nothing_starts_without_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal, may_end, ended = tmp_path / "j.db", asyncio.Event(), asyncio.Event()
    ran: list[str] = []

    async def running() -> str:
        await may_end.wait()
        ended.set()
        return "kept"

    async def next_one() -> None:
        ran.append("next")

    caplog.set_level(logging.INFO, logger="interlock")
    async with Runtime(journal=journal) as rt:
        first = rt.submit(running)
        second = rt.submit(next_one, after=first)
        await rt.flush()
        with no_room_for(journal):
            may_end.set()
            await ended.wait()
            await _until(lambda: rt.why(second).reasons[:1] and _is_stuck(rt, second))
            assert not first.done()  # what is not durable is not told
            assert ran == []
            stuck = rt.why(second).reasons[0]
            assert isinstance(stuck, StuckJournal)
            assert "journal" in str(rt.why(second))
            with Reader(journal) as reader:  # others can look meanwhile
                (run,) = reader.runs()
                assert reader.task(run, "running").state is State.RUNNING
        outcome = await first
        assert outcome.result == "kept"
        assert (await second).succeeded
        assert ran == ["next"]
        assert not [each for each in rt.why(second).reasons if isinstance(each, StuckJournal)]
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("journal_stuck") == messages.count("journal_works_again") == 1
    with Reader(journal) as reader:
        (run,) = reader.runs()
        assert not run.is_open


def _is_stuck(rt: Runtime, task: object) -> bool:
    return isinstance(rt.why(task).reasons[0], StuckJournal)  # type: ignore[arg-type]


async def test_a_signal_ends_a_program_whose_journal_is_stuck(tmp_path: Path) -> None:
    journal, may_end, ended = tmp_path / "j.db", asyncio.Event(), asyncio.Event()

    async def running() -> str:
        await may_end.wait()
        ended.set()
        return "kept"

    with pytest.raises(InterlockError, match="could not be written"), ExitStack() as limit:
        async with Runtime(journal=journal, grace=0.1) as rt:
            first = rt.submit(running)
            await rt.flush()
            limit.enter_context(no_room_for(journal))
            may_end.set()
            await ended.wait()
            await _until(lambda: rt.why(first).reasons and _is_stuck(rt, first))
            os.kill(os.getpid(), signal.SIGTERM)
            await first
    with Reader(journal) as reader:
        (run,) = reader.runs()
        assert run.is_open
    async with Runtime(journal=journal, resume=True) as rt:
        assert (await rt.submit(running)).result == "kept"
