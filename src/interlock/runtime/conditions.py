"""Waiting for something to become true that only the turns of the loop can bring about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Conditions:
    """Who waits for which condition; looked at after every turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def once(self, condition: Callable[[], bool]) -> asyncio.Future[None]:
        """A future that is done as soon as the condition holds at the end of a turn."""
        met: asyncio.Future[None] = self._loop.create_future()
        if condition():
            met.set_result(None)
        else:
            self._waiting.append((condition, met))
        return met

    def look(self) -> None:
        """Tell those that wait for a condition which holds now."""
        if self._waiting:
            left = []
            for condition, met in self._waiting:
                if met.done():
                    continue
                if condition():
                    met.set_result(None)
                else:
                    left.append((condition, met))
            self._waiting = left
