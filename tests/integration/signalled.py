"""A program that gets signals: `python signalled.py FOLDER resume? stubborn?`."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any

from interlock import Handle, Runtime, TaskContext

GRACE = 1.0


class Program:
    def __init__(self, folder: Path, stubborn: bool) -> None:
        self._folder = folder
        self._stubborn = stubborn

    def _tell(self, line: str) -> None:
        os.write(1, f"{line}\n".encode())  # in one piece: a thread speaks at the same time

    async def quick(self, number: int) -> int:
        self._tell(f"ran quick-{number}")
        return number

    async def finishing(self) -> str:
        """Ends within the grace."""
        self._tell("ran finishing")
        await asyncio.sleep(GRACE / 2)
        return "finished"

    async def endless(self, ctx: TaskContext) -> str:
        self._tell("ran endless")
        if (self._folder / "over").exists():
            return "over"
        await asyncio.Event().wait()
        return "never"

    def deaf(self) -> None:
        """A thread that nobody can stop."""
        self._tell("ran deaf")
        if not (self._folder / "over").exists():
            threading.Event().wait()

    async def main(self, resume: bool) -> None:
        async with Runtime(4, self._folder, self._folder / "j.db", resume, grace=GRACE) as rt:
            for number in range(3):
                await rt.submit(self.quick, number, id=f"quick-{number}")
            long: list[Handle[Any]] = [rt.submit(self.finishing), rt.submit(self.endless)]
            if self._stubborn:
                long.append(rt.submit(self.deaf))
            # They wait for a slot or for the others, and must not start after the signal.
            later: list[Handle[Any]] = [
                rt.submit(self.quick, 9, id="later", after=["finishing", "endless"])
            ]
            later += [rt.submit(self.endless, id=f"more-{number}") for number in range(4)]
            await rt.flush()
            while any(each.state == "waiting" for each in long):
                await asyncio.sleep(0)
            self._tell("ready")
            for handle in (*long, *later):
                outcome = await handle
                self._tell(f"told {outcome.task_id} {outcome.status}")
        self._tell("closed")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    asyncio.run(Program(folder, "stubborn" in sys.argv).main("resume" in sys.argv))
