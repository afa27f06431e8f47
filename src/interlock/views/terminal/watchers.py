"""How a run is shown while it goes on: drawn in a terminal, told in lines, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from threading import Event as Flag

from rich.console import Console, Group, RenderableType

from interlock.journal.state.run_facts import RunFacts
from interlock.model.event import Event, Kind
from interlock.service.coordinator import WatchedRun, Watcher
from interlock.views.cli.last_run import FollowedRun
from interlock.views.terminal.console import (
    can_be_live,
    discard_output,
    ignore_broken_pipe,
    make_console,
)
from interlock.views.terminal.footer import LEAVES
from interlock.views.terminal.frame import Why
from interlock.views.terminal.line_view import LineView
from interlock.views.terminal.live_view import LiveView
from interlock.views.terminal.status import status
from interlock.views.terminal.summary import summary
from interlock.views.terminal.writer_thread import LineWriter

_LOOKS = 0.1
"""Seconds between two looks at whether there is something new to draw."""
_HURRIED = 1.0
"""Seconds for somebody to read the summary of a run that was interrupted."""


def watcher(*, silent: bool, headless: bool) -> Watcher:
    """What fits the terminal and the wishes of the user."""
    console = make_console()
    if silent:
        return SilentWatcher()
    return LiveWatcher(console) if can_be_live(console) and not headless else LineWatcher(console)


class SilentWatcher:
    """For programs, which get the facts at the end."""

    def begin(self, look: WatchedRun) -> None:
        """Nothing is shown."""

    def event(self, event: Event) -> None:
        """Nothing is shown."""

    def end(self, *, hurry: bool = False) -> None:
        """Nothing is shown."""

    def give_up(self) -> None:
        """Nothing is shown."""


class _RefreshingWatcher:
    """Calls `refresh` a few times a second while the run goes on."""

    _refreshing: asyncio.Task[None] | None = None
    _gave_up = False

    def refresh(self) -> None:
        raise NotImplementedError

    def _go_on(self) -> None:
        self._refreshing = asyncio.get_running_loop().create_task(self._every_so_often())

    async def _every_so_often(self) -> None:
        while True:
            self.refresh()
            await asyncio.sleep(_LOOKS)

    def _stop(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()

    def give_up(self) -> None:
        """There will be nothing to sum up."""
        self._gave_up = True


class LiveWatcher(_RefreshingWatcher):
    """The live view; it leaves its summary on the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._view: LiveView | None = None

    def begin(self, look: WatchedRun) -> None:
        self._view = LiveView(self._console, look.facts, look.why, end=self._sum_up)
        self._view.start()
        self._go_on()

    def _sum_up(self, facts: RunFacts) -> RenderableType:
        return Group() if self._gave_up else summary(facts)

    def event(self, event: Event) -> None:
        """The next look will see it."""

    def refresh(self) -> None:
        if self._view is not None:
            self._view.refresh()

    def end(self, *, hurry: bool = False) -> None:
        self._stop()
        if self._view is not None:
            with ignore_broken_pipe():
                self._view.stop(_HURRIED if hurry else None)


class LineWatcher(_RefreshingWatcher):
    """One line for each event that matters."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._look: WatchedRun | None = None
        self._writer: LineWriter | None = None
        self._view: LineView | None = None

    def begin(self, look: WatchedRun) -> None:
        self._look = look
        self._writer = LineWriter(self._console.file)
        self._view = LineView(self._writer, look.facts)
        self._go_on()

    def event(self, event: Event) -> None:
        if self._view is not None and self._look is not None:
            if event.kind is Kind.COMMAND and not self._look.facts().unfinished:
                return  # the run ends because everything has
            self._view.tell(event, self._look.task(event.task_id), self._look.started_at)

    def refresh(self) -> None:
        if self._view is not None:
            self._view.refresh()

    def end(self, *, hurry: bool = False) -> None:
        self._stop()
        pen, self._writer, self._view = self._writer, None, None
        if pen is None or self._look is None:
            return
        pen.finish(self._sum_up(self._look.facts()), _HURRIED if hurry else None)
        if pen.broken:
            discard_output()

    def _sum_up(self, facts: RunFacts) -> str:
        if self._gave_up:
            return ""
        # Rich writes an empty text to the stream even so, which a full disk refuses.
        with ignore_broken_pipe():
            with self._console.capture() as told:
                self._console.print()
                self._console.print(summary(facts))
            return told.get()
        return ""


def watch(console: Console, following: FollowedRun, why: Why) -> None:
    """Draw a run that somebody else carries out, until it ends or the watcher has seen enough."""
    view = LiveView(
        console, following.facts, why, end=lambda facts: status(facts, why), hints=LEAVES
    )
    pause = Flag()
    with contextlib.suppress(KeyboardInterrupt), view:
        while not following.is_over():
            view.refresh()
            pause.wait(_LOOKS)
