"""Following looks at most four times a second."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from interlock.journal.follow import follow_async
from interlock.journal.reader import Reader, Run
from interlock.journal.schema.codec import Codec
from interlock.model.event import Event, Kind
from interlock.testing.virtual_run import simulate
from tests.simulation.faulty_disk import FaultyDisk
from tests.simulation.loop_writer import LoopWriter
from tests.unit.journal.story import KNOWN, Story, opened


class CountingReader(Reader):
    looks = 0

    def events(self, run: Run, since: int = 0, most: int = 1000) -> list[Event]:
        self.looks += 1
        return super().events(run, since, most)


def test_a_quiet_run_is_looked_at_four_times_a_second(tmp_path: Path) -> None:
    async def main() -> tuple[list[Any], int]:
        journal = await opened(tmp_path / "j.db", disk=FaultyDisk(), writer=LoopWriter)
        story = Story()

        async def write() -> None:
            for number in range(10):
                await journal.append([story.tell(Kind.LOGGED, "", number)])
                await asyncio.sleep(1.0)
            await journal.append([story.tell(Kind.RUN_ENDED)])

        writing = asyncio.create_task(write())
        reader = CountingReader(tmp_path / "j.db", Codec(KNOWN))
        run = journal.run
        assert run is not None
        seen = [event.data async for event in follow_async(reader, run)]
        await writing
        reader.close()
        journal.close()
        return seen, reader.looks

    seen, looks = simulate(main).value()
    assert seen == [*range(10), None]
    assert looks <= 4 * 10 + 2
