"""The runs of one host, one after another, and the callers of each.

Why it is right
---------------
*At most one Runtime at a time.* Every run is created with the previous one as its predecessor and
opens only after that has been closed. Two Runtimes of one object would not see each other's claims
and limits, and would compete for the lock of the journal.

*No caller is left without a Runtime, and none keeps it open for ever.* A caller is counted before
it waits for the opening, under a lock, together with the check that the run is not ending. So the
last caller to leave cannot close a run that another caller is about to use: either the newcomer is
counted first and the run stays open, or the run is ending and the newcomer gets the next one.
Callers leave with the Runtime that they entered. A caller whose run has ended by itself (a signal,
a broken journal, a closed event loop) therefore takes nothing away from the run that came after.

*The Runtime outlives its first caller.* It lives in a task of its own (or a thread), so that being
cancelled ends one caller and not the others.

*Nothing blocks an event loop.* The lock is held for a few statements and never while waiting. It is
reentrant because the garbage collector may close an abandoned generator, which leaves the host, at
any statement; `join` checks again after counting for the same reason.

*Threads and event loops are never mixed.* Coroutines belong to the loop on which they are awaited,
and a caller's loop may be closed at any time, so threads cannot rely on it. While callers of one
kind are inside, the other kind is refused with UsageError, and so is a second event loop. A loop
that was closed under its callers counts as empty.

*Ending is bounded.* Closing a Runtime takes at most its `grace` (plus the time to commit). What
closing raises is raised by the call that waits for it, and logged if no call does.

| | costs |
|---|---|
| entering or leaving a run that is open | a few statements under the lock, no turn of the loop |
| the first caller | one task (in a thread: one thread and one loop) and one Runtime |
| the last caller | closing the Runtime; nothing polls meanwhile |

Limits: a forked child cannot use a host that had callers in the parent (NotRunning). A caller that
never leaves keeps its run open until `close`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from typing import NamedTuple

from interlock.errors import AttemptsStillAlive, NotRunning, ShuttingDown, UsageError
from interlock.runtime.hosting.hosted_run import HostedRun
from interlock.runtime.log import LOGGER
from interlock.runtime.runtime import Runtime


class HostNames(NamedTuple):
    """How errors name the object, and the calls that use it in threads and on an event loop."""

    what: str
    thread_calls: str
    loop_calls: str


class RunChain:
    """Counts callers, starts a run for the first one, and lets the last one end it."""

    def __init__(
        self,
        make: Callable[[], Runtime],
        on_open: Callable[[Runtime], None],
        names: HostNames,
        *,
        leaves_zombies: bool,
    ) -> None:
        self._make = make
        self._on_open = on_open
        self._names = names
        self._leaves_zombies = leaves_zombies
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.newest: HostedRun | None = None
        """From the moment it is created until it is closed."""
        self.is_shut = False
        """Whether new callers are refused for good."""

    def check_open(self) -> None:
        """Raise ShuttingDown if new callers are refused."""
        if self.is_shut:
            raise ShuttingDown(f"{self._names.what} has been shut down, and takes no new work")

    # -- callers ----------------------------------------------------------------------------

    def join(self, loop: asyncio.AbstractEventLoop | None) -> HostedRun:
        """Count one more caller of the present run, or of a new one. `loop` is None in a thread."""
        if self.is_forked():
            self._after_fork()
        with self._lock:
            self._check_kind(loop)
            self.check_open()
            while True:
                run = self.newest
                if run is None or run.is_ending:
                    run = self.newest = self._start(loop, run)
                run.callers += 1
                if not run.is_ending:  # the collector may have closed a generator meanwhile
                    return run
                run.callers -= 1

    def replace(
        self, runtime: Runtime, loop: asyncio.AbstractEventLoop
    ) -> tuple[HostedRun, HostedRun]:
        """Start a successor, to which the only caller of a run moves; returns both.

        The old run takes no callers from here on. Ending it is left to the caller.
        """
        with self._lock:
            run = self.newest
            if run is None or run.runtime is not runtime or run.is_ending or run.callers != 1:
                raise UsageError("a run is renewed by its only caller")
            self._check_kind(loop)
            self.check_open()
            self.newest = successor = self._start(loop, run)
            successor.callers, run.callers = 1, 0
            run.seal()
            return run, successor

    def leave(self, run: HostedRun) -> None:
        """One caller less; the last one ends the run."""
        if self.is_last_to_leave(run):
            run.end()

    def is_last_to_leave(self, run: HostedRun) -> bool:
        """One caller less; True if it has to end the run, which takes no callers from here on."""
        with self._lock:
            run.callers -= 1
            if run.callers or run.is_ending:
                return False
            run.seal()
            return True

    # -- runs -------------------------------------------------------------------------------

    def unclosed(self) -> list[HostedRun]:
        """The runs that are not closed, the oldest first; mostly one."""
        runs: list[HostedRun] = []
        run = self.newest
        while run is not None and not run.is_abandoned:
            runs.insert(0, run)
            run = run.predecessor
        return runs

    def run_of(self, runtime: Runtime) -> HostedRun | None:
        """The run of a Runtime; None if it has ended, or belongs to the parent process."""
        if self.is_forked():
            return None
        return next((run for run in self.unclosed() if run.runtime is runtime), None)

    def _start(
        self, loop: asyncio.AbstractEventLoop | None, predecessor: HostedRun | None
    ) -> HostedRun:
        run = HostedRun(self._make_if_open, self._on_open, self._closed, predecessor)
        if loop is None:
            run.start_in_thread()
        else:
            run.start_on(loop)
        return run

    def _make_if_open(self) -> Runtime:
        self.check_open()  # again: closing the predecessor may have taken long
        return self._make()

    def _closed(self, run: HostedRun) -> None:
        """A run is closed. This is called on the thread of its loop."""
        with self._lock:
            if self.newest is run:
                self.newest = None
        error = run.error
        if run.runtime is None or run.has_waiter or error is None:
            return  # what keeps a run from opening is raised by `enter`
        if isinstance(error, asyncio.CancelledError):
            return
        if isinstance(error, AttemptsStillAlive) and self._leaves_zombies:
            LOGGER.warning("%s", error)
        else:
            LOGGER.log(logging.ERROR, "close_failed", exc_info=error)

    # -- which callers ----------------------------------------------------------------------

    def check_loop(self) -> None:
        """Raise UsageError if the object is in use elsewhere than on this event loop."""
        if self.is_forked():
            self._after_fork()  # a thread of the parent may have held the lock
        with self._lock:
            self._check_kind(asyncio.get_running_loop())

    def _check_kind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Refuse a caller if callers of the other kind, or of another loop, are inside."""
        run, names = self.newest, self._names
        if run is not None and run.is_abandoned:
            run = self.newest = None
        if run is None:
            return
        if run.in_thread:
            # A loop need not be refused for a run that is closing: it can wait for its end.
            if loop is not None and not run.is_ending:
                raise UsageError(
                    f"{names.thread_calls} of {names.what} is in progress in a thread, and two "
                    "runs at once would not see each other's claims: call it in a thread as well "
                    "(asyncio.to_thread), wait until it has ended, or make another object"
                )
        elif loop is None:
            raise UsageError(
                f"{names.loop_calls} of {names.what} is in progress on an event loop, and two runs "
                "at once would not see each other's claims: await it there, wait until it has "
                "ended, or make another object"
            )
        elif run.loop is not loop:
            raise UsageError(
                f"{names.what} is in use on another event loop, and can be awaited only there "
                "until it has been left; for this event loop make another one"
            )

    def is_forked(self) -> bool:
        """Whether this is a child of the process that uses the object."""
        return self._process != os.getpid()

    def _after_fork(self) -> None:
        """Threads and event loops are not copied into a forked child, and locks may be held."""
        run = self.newest
        if run is not None and run.callers:
            raise NotRunning(
                f"{self._names.what} was in use when this process was forked, and its run belongs "
                "to the parent process; make a new object here"
            )
        self.newest, self._process, self._lock = None, os.getpid(), threading.RLock()
