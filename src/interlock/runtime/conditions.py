"""Waiting for a condition that only a turn of the loop can make true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Conditions:
    """Conditions that are waited for. They are evaluated after every turn.

    Evaluating beats notifying here: there are rarely more than two or three, and a condition that
    is computed from the state cannot miss a notification.
    """

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
        """Evaluate all conditions, and wake up the waiters of those that hold."""
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
