"""The live view: draws a run in a terminal while it is in progress, then prints its summary."""

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
from interlock.views.terminal.footer import RUN_HINTS, Hints
from interlock.views.terminal.frame import Why, frame
from interlock.views.terminal.running_rows import RunningRows
from interlock.views.terminal.screen import Screen
from interlock.views.terminal.summary import summary
from interlock.views.terminal.suspension import Suspension

FRAMES = 8
"""The maximum number of frames per second."""
_SHARE = 10
"""Drawing takes at most one part in this many of the time, however many tasks there are."""


class LiveView:
    """Draws what `facts` returns whenever `refresh` is called and something has changed.

    Call `refresh` at every event, and a few times a second for the clock and the size of the
    window. It costs nothing when there is nothing new, and never waits for the terminal. `stop`
    prints what `end` makes of the last facts. `hints` returns what Ctrl-C
    does. An error of `facts` or `why` is raised after the terminal has been restored.
    """

    def __init__(
        self,
        console: Console,
        facts: Callable[[], RunFacts],
        why: Why,
        *,
        end: Callable[[RunFacts], RenderableType] = summary,
        hints: Callable[[RunFacts], Hints] = RUN_HINTS,
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
        self._running_rows = RunningRows()
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
        """Take over the terminal and draw."""
        if not self._running:
            self._running = True
            self._screen.take()
            self._suspension.watch()
            self.refresh()

    def refresh(self) -> None:
        """Draw, if it is time to and something has changed."""
        if not self._running or self._now() < self._next_at:
            return
        try:
            self._draw()
        except BaseException:
            self._leave()  # so that the error can be read
            raise

    def stop(self, patience: float | None = None) -> None:
        """Restore the terminal and print the end. Calling it again does nothing.

        Waits for a slow terminal, for at most `patience` seconds.
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
        """Take the terminal again after a suspension."""
        self._seen, self._next_at = None, -math.inf
        self._screen.take()
        self.refresh()

    def _draw(self) -> None:
        began = self._now()
        facts = self._facts()
        width, height = self._console.size
        second = int(facts.at - facts.started_at)
        # Times are shown in whole seconds: within a second they do not change the frame.
        seen = width, height, replace(facts, at=second)
        if seen == self._seen:
            return
        if self._forecast[0] != second:
            self._forecast = second, seconds_left(facts)
        rows = self._running_rows.place(facts.tasks)
        left = self._forecast[1]
        lines = frame(
            facts, self._why, width, height, running_rows=rows, left=left, hints=self._hints(facts)
        )
        self._screen.draw(lines, width)
        self._seen = seen
        self._next_at = began + max(1 / FRAMES, _SHARE * (self._now() - began))
