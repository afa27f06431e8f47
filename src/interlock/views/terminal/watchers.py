"""Show a run while it is in progress: drawn in a terminal, printed as lines, or not at all."""

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
from interlock.views.terminal.footer import LEAVES, run_hints
from interlock.views.terminal.frame import Why
from interlock.views.terminal.line_view import LineView
from interlock.views.terminal.live_view import LiveView
from interlock.views.terminal.status import status
from interlock.views.terminal.summary import summary
from interlock.views.terminal.writer_thread import LineWriter

_INTERVAL = 0.1
"""Seconds between two refreshes."""
_HURRIED = 1.0
"""Seconds for a slow terminal to accept the summary of an interrupted run."""


def watcher(*, silent: bool, headless: bool, grace: float) -> Watcher:
    """The watcher that fits the terminal and the options of the user."""
    console = make_console()
    if silent:
        return SilentWatcher()
    if can_be_live(console) and not headless:
        return LiveWatcher(console, grace)
    return LineWatcher(console)


class SilentWatcher:
    """Shows nothing, for `--json`: the facts are printed at the end."""

    def begin(self, run: WatchedRun) -> None:
        """Do nothing."""

    def event(self, event: Event) -> None:
        """Do nothing."""

    def end(self, *, hurry: bool = False) -> None:
        """Do nothing."""

    def give_up(self) -> None:
        """Do nothing."""


class _RefreshingWatcher:
    """Calls `refresh` a few times a second while the run is in progress."""

    _refreshing: asyncio.Task[None] | None = None
    _gave_up = False

    def refresh(self) -> None:
        raise NotImplementedError

    def _start_refreshing(self) -> None:
        self._refreshing = asyncio.get_running_loop().create_task(self._keep_refreshing())

    async def _keep_refreshing(self) -> None:
        while True:
            self.refresh()
            await asyncio.sleep(_INTERVAL)

    def _stop(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()

    def give_up(self) -> None:
        """Print no summary."""
        self._gave_up = True


class LiveWatcher(_RefreshingWatcher):
    """Shows the live view, and its summary at the end."""

    def __init__(self, console: Console, grace: float) -> None:
        self._console = console
        self._hints = run_hints(grace)
        self._view: LiveView | None = None

    def begin(self, run: WatchedRun) -> None:
        self._view = LiveView(
            self._console, run.facts, run.why, end=self._sum_up, hints=self._hints
        )
        self._view.start()
        self._start_refreshing()

    def _sum_up(self, facts: RunFacts) -> RenderableType:
        return Group() if self._gave_up else summary(facts)

    def event(self, event: Event) -> None:
        """Do nothing: the next refresh shows it."""

    def refresh(self) -> None:
        if self._view is not None:
            self._view.refresh()

    def end(self, *, hurry: bool = False) -> None:
        self._stop()
        if self._view is not None:
            with ignore_broken_pipe():
                self._view.stop(_HURRIED if hurry else None)


class LineWatcher(_RefreshingWatcher):
    """Prints one line per important event, and a summary at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._run: WatchedRun | None = None
        self._writer: LineWriter | None = None
        self._view: LineView | None = None

    def begin(self, run: WatchedRun) -> None:
        self._run = run
        self._writer = LineWriter(self._console.file)
        self._view = LineView(self._writer, run.facts)
        self._start_refreshing()

    def event(self, event: Event) -> None:
        if self._view is not None and self._run is not None:
            if event.kind is Kind.COMMAND and not self._run.facts().unfinished:
                return  # the run stops because every task has ended
            self._view.tell(event, self._run.task(event.task_id), self._run.started_at)

    def refresh(self) -> None:
        if self._view is not None:
            self._view.refresh()

    def end(self, *, hurry: bool = False) -> None:
        self._stop()
        pen, self._writer, self._view = self._writer, None, None
        if pen is None or self._run is None:
            return
        pen.finish(self._sum_up(self._run.facts()), _HURRIED if hurry else None)
        if pen.broken:
            discard_output()

    def _sum_up(self, facts: RunFacts) -> str:
        if self._gave_up:
            return ""
        # Even in a capture, Rich writes an empty text to the stream, which fails on a full disk.
        with ignore_broken_pipe():
            with self._console.capture() as told:
                self._console.print()
                self._console.print(summary(facts))
            return told.get()
        return ""


def watch(console: Console, following: FollowedRun, why: Why) -> None:
    """Draw a run that another process carries out, until it ends or Ctrl-C is pressed."""
    view = LiveView(
        console, following.facts, why, end=lambda facts: status(facts, why), hints=lambda _: LEAVES
    )
    pause = Flag()
    with contextlib.suppress(KeyboardInterrupt), view:
        while not following.is_over():
            view.refresh()
            pause.wait(_INTERVAL)
