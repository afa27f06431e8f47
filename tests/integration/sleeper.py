"""A blocking agent that sleeps until the test lets it go."""

from __future__ import annotations

import asyncio
import threading


class Sleeper:
    """An agent that ignores its timeout and its cancellation."""

    def __init__(self, log: list[str] | None = None) -> None:
        self.log = [] if log is None else log
        self._asleep = threading.Event()
        self._wake_up = threading.Event()

    def __call__(self) -> str:
        self._asleep.set()
        assert self._wake_up.wait(60), "nobody woke it up"
        self.log.append("the sleeper ends")
        return "too late"

    async def falls_asleep(self) -> None:
        """Wait until its thread runs."""
        assert await asyncio.to_thread(self._asleep.wait, 60)

    def wake_up(self) -> None:
        self._wake_up.set()
