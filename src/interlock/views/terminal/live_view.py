"""The live view: draws a run in a terminal while it goes on, and leaves its summary there."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType

from interlock.journal.state.run_facts import RunFacts
from interlock.views.forecast import seconds_left
from interlock.views.terminal.footer import Hints
from interlock.views.terminal.frame import Why, frame
from interlock.views.terminal.running_rows import RunningRows
from interlock.views.terminal.screen import Screen
from interlock.views.terminal.summary import summary
from interlock.views.terminal.suspension import Suspension

FRAMES = 8
"""At most so many a second."""
_SHARE = 10
"""Drawing takes at most one part in so many of the time, however many tasks there are."""


class LiveView:
    """Draws what `facts` says whenever `refresh` is called and something has changed.

    Call `refresh` at every event, and a few times a second for the clock and the size of the
    window: it costs nothing when there is nothing new. It never waits for the terminal. `stop`
    leaves what `end` makes of the last facts on the screen. `hints` say what Ctrl-C does, where it
    does something else than to drain. An error of `facts` or `why` is raised
    when the terminal is as it was before.
    """

    def __init__(
        self,
        console: Console,
        facts: Callable[[], RunFacts],
        why: Why,
        *,
        end: Callable[[RunFacts], RenderableType] = summary,
        hints: Hints | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._facts = facts
        self._why = why
        self._end = end
        self._hints = hints
        self._now = now
        self._screen = Screen(console)
        self._suspension = Suspension(self._screen.give_back, self._again)
        self._lanes = RunningRows()
        self._forecast: tuple[int, float | None] = (-1, None)
        self._seen: object = None
        self._next_at = -math.inf
        self._running = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Take the terminal and draw."""
        if not self._running:
            self._running = True
            self._screen.take()
            self._suspension.watch()
            self.refresh()

    def refresh(self) -> None:
        """Draw, if it is time and something has changed."""
        if not self._running or self._now() < self._next_at:
            return
        try:
            self._draw()
        except BaseException:
            self._leave()  # or the error could not be read
            raise

    def stop(self, patience: float | None = None) -> None:
        """Give the terminal back and print the end. A second time it does nothing.

        A terminal that takes nothing is waited for, no longer than the `patience`.
        """
        if self._running:
            self._leave(patience)
            end = self._end(self._facts())
            if not self._screen.gone:
                self._console.print(end)

    def _leave(self, patience: float | None = None) -> None:
        self._running = False
        self._suspension.leave()
        self._screen.give_back(patience)

    def _again(self) -> None:
        """The terminal was somebody else's for a while."""
        self._seen, self._next_at = None, -math.inf
        self._screen.take()
        self.refresh()

    def _draw(self) -> None:
        began = self._now()
        facts = self._facts()
        width, height = self._console.size
        second = int(facts.at - facts.started_at)
        # Times are shown in whole seconds: a moment later there is nothing new to see.
        seen = width, height, replace(facts, at=second)
        if seen == self._seen:
            return
        if self._forecast[0] != second:
            self._forecast = second, seconds_left(facts)
        lanes = self._lanes.place(facts.tasks)
        left = self._forecast[1]
        lines = frame(facts, self._why, width, height, lanes=lanes, left=left, hints=self._hints)
        self._screen.draw(lines, width)
        self._seen = seen
        self._next_at = began + max(1 / FRAMES, _SHARE * (self._now() - began))
