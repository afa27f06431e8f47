"""A process that writes a journal as fast as it can and says which appends were acknowledged.

`python -m tests.integration.journal_writer PATH DURABILITY` goes on until it is killed, or until a
line comes in. After each acknowledged append it prints the number of the last event in it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading

from interlock.journal.sqlite import SqliteJournal
from interlock.model.event import Event, Kind
from tests.unit.journal.story import KNOWN

IN_FLIGHT = 20


async def main(path: str, durability: str) -> None:
    journal = SqliteJournal(path, durability=durability, known=KNOWN)  # type: ignore[arg-type]
    run = await journal.begin("run", 1.0)
    numbers = iter(range(journal.last + 1, 10**9))
    stop = threading.Event()

    def listen() -> None:
        sys.stdin.readline()
        stop.set()

    threading.Thread(target=listen, daemon=True).start()

    async def work() -> None:
        while not stop.is_set():
            turn = [Event(next(numbers), 1.0, Kind.LOGGED, "", os.getpid()) for _ in range(3)]
            await journal.append(turn)
            # One write, so that a kill does not cut it off in the middle of a number.
            os.write(1, f"{turn[-1].number}\n".encode())

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(work())
    await journal.append([Event(next(numbers), 2.0, Kind.RUN_ENDED, "", {"run": run.id})])
    journal.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
