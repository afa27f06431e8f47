"""`RuntimeHost`: opens a Runtime for the first caller, shares it, and closes it after the last.

There is one instance per object of a system (per pool, per queue, ...). Choose by the caller:

A call on the event loop of the caller, which may share the Runtime with other such calls:

    host = RuntimeHost(lambda: Runtime(max_parallel=4), on_open=self._opened, what="this executor")
    async with host.shared() as runtime:
        await runtime.run(tasks)

The same where entering and leaving are far apart (`leave` may be called from a callback):

    runtime = await host.enter()
    ...
    host.leave(runtime)
    await host.wait_closed()        # only waits if that was the last caller

A call in a thread, with an event loop in a thread of the host's own:

    with host.shared_from_thread() as runtime:
        runtime.run(tasks).wait()
        future = host.start(coroutine())        # on that loop

An object that is open from its first use until it is shut down:

    runtime = await host.keep()
    ...
    await host.shutdown(timeout)

One Runtime for a block, after which the object is used up: `async with host as runtime:` on an
event loop, `with host as runtime:` in a thread.

A service that runs for years and starts a new run from time to time:

    if host.callers == 1 and run_has_grown_old:
        runtime = await host.renew(runtime, finish=save_state)

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
any statement; `_join` checks again after counting for the same reason.

*Threads and event loops are never mixed.* Coroutines belong to the loop on which they are awaited,
and a caller's loop may be closed at any time, so threads cannot rely on it. While callers of one
kind are inside, the other kind is refused with UsageError, and so is a second event loop. A loop
that was closed under its callers counts as empty.

*Ending is bounded.* Closing a Runtime takes at most its `grace` (plus the time to commit). What
closing raises is raised by the call that waits for it (`close`, or the last one to leave in a
thread), and logged if no call does.

Limits: a forked child cannot use a host that had callers in the parent (NotRunning). `shutdown` and
`close` must be awaited on the loop of the callers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from interlock.errors import (
    AttemptsStillAlive,
    NotRunning,
    ShuttingDown,
    UsageError,
    WouldBlockTheLoop,
)
from interlock.runtime.hosting.hosted_run import HostedRun, until
from interlock.runtime.log import LOGGER
from interlock.runtime.runtime import Runtime
from interlock.runtime.shielded import shielded_to_completion

T = TypeVar("T")

_ZOMBIE_PATIENCE = 0.25
"""Seconds that the last thread to leave a durable run waits for zombies. Most are threads about to
end, and the lock of the journal, which a resuming caller needs, is released only after them."""


class RuntimeHost:
    """One Runtime for the callers of one object; see the module for how each kind uses it.

    `make` makes a Runtime; it is called for every run. `on_open` is called on the event loop with
    each Runtime before any caller gets it. `what` names the object in errors, and `thread_calls`
    and `loop_calls` the calls that use it from threads and on an event loop.

    Attempts that outlive the grace after the last caller has left are logged as an error; with
    `leaves_zombies`, for objects whose contract allows that, as a warning.
    """

    def __init__(
        self,
        make: Callable[[], Runtime],
        on_open: Callable[[Runtime], None] = lambda runtime: None,
        *,
        what: str = "this object",
        thread_calls: str = "a call",
        loop_calls: str = "a call",
        leaves_zombies: bool = False,
    ) -> None:
        self._make = make
        self._on_open = on_open
        self._what = what
        self._thread_calls = thread_calls
        self._loop_calls = loop_calls
        self._leaves_zombies = leaves_zombies
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._run: HostedRun | None = None
        """The newest run, from the moment it is created until it is closed."""
        self._is_shut = False

    # -- any caller, any thread -------------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """The Runtime that is open, or else the one being closed; NotRunning if there is none."""
        run = self._run
        while run is not None:
            if run.runtime is not None:
                return run.runtime
            run = run.predecessor
        raise NotRunning(f"{self._what} is not in use at the moment, so it has no Runtime")

    @property
    def is_open(self) -> bool:
        """Whether there is a Runtime that new callers may share."""
        run = self._run
        return run is not None and run.runtime is not None and not run.is_ending

    @property
    def is_closed(self) -> bool:
        """Whether there is no Runtime, nor one that is being opened or closed."""
        return self._run is None

    @property
    def callers(self) -> int:
        """How many callers have entered the present run, or are about to, and have not left."""
        run = self._run
        return 0 if run is None else run.callers

    @property
    def is_shut(self) -> bool:
        """Whether new callers are refused for good."""
        return self._is_shut

    def refuse(self) -> None:
        """Refuse new callers from now on; those inside are not disturbed."""
        self._is_shut = True

    def check_open(self) -> None:
        """Raise ShuttingDown if new callers are refused."""
        if self._is_shut:
            raise ShuttingDown(f"{self._what} has been shut down, and takes no new work")

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function on the thread of the event loop; here, if there is no run."""
        run = self._run
        if run is None or run.loop_thread is None or run.is_abandoned:
            return function(*args)
        return run.loop_thread.call(function, *args)

    # -- callers on an event loop -----------------------------------------------------------

    async def enter(self) -> Runtime:
        """Get the Runtime, opened if need be. To be followed by `leave`."""
        return await self._until_open(self._join(asyncio.get_running_loop()))

    def leave(self, runtime: Runtime) -> None:
        """Stop using a Runtime. After its last caller it is closed; see `wait_closed`."""
        run = self._run_of(runtime)
        if run is not None:
            self._leave(run)

    async def wait_closed(self) -> None:
        """Wait until the present run is closed, if its last caller has left."""
        run = self._run
        if run is not None and run.is_ending:
            await until(run.closed)

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[Runtime]:
        """The Runtime for a block of one caller. The last one waits until it is closed."""
        runtime = await self.enter()
        try:
            yield runtime
        finally:
            self.leave(runtime)
            await shielded_to_completion(self.wait_closed())

    async def keep(self) -> Runtime:
        """The Runtime, opened by the first such call and open until `close` or `shutdown`."""
        self.check_loop()
        self.check_open()
        return self.runtime if self.is_open else await self.enter()

    def renew(
        self, runtime: Runtime, finish: Callable[[Runtime], Awaitable[None]] | None = None
    ) -> Coroutine[Any, Any, Runtime]:
        """Replace the run by a new one, for its only caller, which stays inside; await the result.

        Callers that arrive from now on wait for the new one. `finish` is the last that is done in
        the old one. If the new one cannot be opened, this raises why, and the caller has left.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            run = self._run
            if run is None or run.runtime is not runtime or run.is_ending or run.callers != 1:
                raise UsageError("a run is renewed by its only caller")
            self._check_kind(loop)
            self.check_open()
            self._run = successor = self._start(loop, run)
            successor.callers, run.callers = 1, 0
            run.seal()
        return self._renew(run, runtime, successor, finish)

    async def _renew(
        self,
        run: HostedRun,
        runtime: Runtime,
        successor: HostedRun,
        finish: Callable[[Runtime], Awaitable[None]] | None,
    ) -> Runtime:
        try:
            if finish is not None:
                await finish(runtime)
        except BaseException:
            self._leave(successor)
            raise
        finally:
            run.end()
        return await self._until_open(successor)

    def check_loop(self) -> None:
        """Raise UsageError if the host is in use elsewhere than on this event loop."""
        with self._lock:
            self._check_kind(asyncio.get_running_loop())

    async def close(self, *, cancel: bool = False) -> None:
        """Refuse new callers, wait for work or `cancel` it, and close. Raises what closing raises.

        Cancelling this call cancels the work, and still waits until everything is closed.
        """
        self.check_loop()
        self.refuse()
        runs = self._chain()
        for run in runs:
            run.has_waiter = True
            run.end(cancel=cancel)
        cancelled: asyncio.CancelledError | None = None
        for run in runs:
            while not run.closed.done():
                try:
                    await until(run.closed)
                except asyncio.CancelledError as error:
                    cancelled = error
                    run.cancel()
        for run in runs:
            run.raise_error()
        if cancelled is not None:
            raise cancelled

    async def shutdown(self, timeout: float, *, cancel: bool = False) -> None:
        """Refuse new callers, let running work finish within `timeout`, stop it, and close.

        Work that has not started is cancelled at once; with `cancel`, running work as well, and
        `timeout` is what it gets to stop. AttemptsStillAlive names the tasks that did not.
        """
        self.check_loop()
        self.refuse()
        try:
            with suppress(NotRunning):
                await self.runtime.shutdown(timeout, cancel=cancel)
        finally:
            await self.close(cancel=cancel)

    async def __aenter__(self) -> Runtime:
        return await self.enter()

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self.close(cancel=error is not None)

    # -- callers in threads -----------------------------------------------------------------

    def enter_from_thread(self) -> Runtime:
        """Get the Runtime, on a loop in a thread of its own. To be followed by a leave."""
        run = self._join(None)
        try:
            self._refuse_own_thread(run)
            run.opened.result()
            return self._opened(run)
        except BaseException:  # also Ctrl-C in the middle of it
            self._leave(run)
            raise

    def leave_from_thread(self, runtime: Runtime) -> None:
        """Stop using a Runtime. The last caller closes it, waits, and gets what closing raises.

        It does not wait for zombies: closing then goes on in the background, and the next caller
        waits for it, at most for the grace.
        """
        run = self._run_of(runtime)
        if run is None or not self._is_last_to_leave(run):
            return
        waits, on_own_thread = False, run.is_own_thread()
        try:
            with suppress(NotRunning):
                # Asked before the end: a loop that is being closed may not answer any more.
                waits = not on_own_thread and not runtime.progress().zombies
        finally:
            run.has_waiter = run.has_waiter or waits
            run.end()
        if waits:
            run.closed.result()
            run.raise_error()
        elif runtime.is_durable and not on_own_thread:
            wait_for_futures([run.closed], _ZOMBIE_PATIENCE)

    @contextmanager
    def shared_from_thread(self) -> Iterator[Runtime]:
        """The Runtime for a block of one caller in a thread."""
        runtime = self.enter_from_thread()
        try:
            yield runtime
        finally:
            self.leave_from_thread(runtime)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop of the open run; cancelling the Future cancels it."""
        run = self._run
        try:
            if run is None or run.loop is None or run.closed.done() or self._is_forked():
                raise NotRunning(f"{self._what} has been closed")
            return asyncio.run_coroutine_threadsafe(work, run.loop)
        except BaseException as error:
            work.close()
            if isinstance(error, RuntimeError):  # the loop was closed at this moment
                raise NotRunning(f"{self._what} has been closed") from None
            raise

    def close_from_thread(
        self, *, cancel: bool = False, timeout: float | None = None, wait: bool = True
    ) -> None:
        """Refuse new callers, wait for work or `cancel` it, and close. Raises what closing raises.

        Without `wait` this returns at once, and the run is closed when its work has ended. After
        `timeout` seconds of waiting it raises TimeoutError, and closing goes on.
        """
        self.refuse()
        if self._is_forked():
            return
        runs = self._chain()
        for run in runs:
            run.has_waiter = run.has_waiter or wait
            run.end(cancel=cancel)
        if wait:
            for run in runs:
                run.closed.result(timeout)
                run.raise_error()

    def shutdown_from_thread(self, timeout: float) -> None:
        """Refuse new callers, let running work finish within `timeout`, then stop it.

        The callers leave, and close the run, when they have their outcomes. AttemptsStillAlive
        names the tasks that did not stop. A run on an event loop is left to its callers.
        """
        self.refuse()
        run = self._run
        if run is None or not run.in_thread or self._is_forked():
            return
        run.opened.result()
        runtime = run.runtime
        if runtime is None or run.closed.done():
            return
        try:
            runtime.loop_thread.wait(lambda: runtime.shutdown(timeout), None)
        except (NotRunning, asyncio.CancelledError):
            # The last caller has left meanwhile; then closing tells what would not stop.
            run.has_waiter = True
            run.closed.result()
            run.raise_error()

    def __enter__(self) -> Runtime:
        return self.enter_from_thread()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self.close_from_thread(cancel=error is not None)

    # -- one run after another --------------------------------------------------------------

    def _join(self, loop: asyncio.AbstractEventLoop | None) -> HostedRun:
        """Count one more caller of the present run, or of a new one. `loop` is None in a thread."""
        if self._is_forked():
            self._after_fork()
        with self._lock:
            self._check_kind(loop)
            self.check_open()
            while True:
                run = self._run
                if run is None or run.is_ending:
                    run = self._run = self._start(loop, run)
                run.callers += 1
                if not run.is_ending:  # the collector may have closed a generator meanwhile
                    return run
                run.callers -= 1

    def _start(
        self, loop: asyncio.AbstractEventLoop | None, predecessor: HostedRun | None
    ) -> HostedRun:
        run = HostedRun(self._make_checked, self._on_open, self._closed, predecessor)
        if loop is None:
            run.start_in_thread()
        else:
            run.start_on(loop)
        return run

    def _make_checked(self) -> Runtime:
        self.check_open()  # again: the predecessor may have taken its time
        return self._make()

    async def _until_open(self, run: HostedRun) -> Runtime:
        try:
            await until(run.opened)
            return self._opened(run)
        except BaseException:
            self._leave(run)
            if run.is_ending:
                await shielded_to_completion(until(run.closed))
            raise

    def _opened(self, run: HostedRun) -> Runtime:
        if run.runtime is None:
            if run.error is not None:
                raise run.error
            self.check_open()
            raise NotRunning(f"{self._what} was left before it was open")
        return run.runtime

    def _leave(self, run: HostedRun) -> None:
        if self._is_last_to_leave(run):
            run.end()

    def _is_last_to_leave(self, run: HostedRun) -> bool:
        """One caller less; True if it has to end the run, which takes no callers from here on."""
        with self._lock:
            run.callers -= 1
            if run.callers or run.is_ending:
                return False
            run.seal()
            return True

    def _chain(self) -> list[HostedRun]:
        """The runs that are not closed, the oldest first; mostly one."""
        runs: list[HostedRun] = []
        run = self._run
        while run is not None and not run.is_abandoned:
            runs.insert(0, run)
            run = run.predecessor
        return runs

    def _run_of(self, runtime: Runtime) -> HostedRun | None:
        """The run of a Runtime; None if it has ended, or belongs to the parent process."""
        if self._is_forked():
            return None
        return next((run for run in self._chain() if run.runtime is runtime), None)

    def _closed(self, run: HostedRun) -> None:
        """A run is closed, on whichever thread that was."""
        with self._lock:
            if self._run is run:
                self._run = None
        error = run.error
        if run.runtime is None or run.has_waiter or error is None:
            return  # what keeps it from opening is raised by `enter`
        if isinstance(error, asyncio.CancelledError):
            return
        if isinstance(error, AttemptsStillAlive) and self._leaves_zombies:
            LOGGER.warning("%s", error)
        else:
            LOGGER.log(logging.ERROR, "close_failed", exc_info=error)

    # -- which callers ----------------------------------------------------------------------

    def _check_kind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Refuse a caller if callers of the other kind, or of another loop, are inside."""
        run = self._run
        if run is not None and run.is_abandoned:
            run = self._run = None
        if run is None:
            return
        if run.in_thread:
            # A loop need not be refused for a run that is closing: it can wait for its end.
            if loop is not None and not run.is_ending:
                raise UsageError(
                    f"{self._thread_calls} of {self._what} is in progress in a thread, and two "
                    "runs at once would not see each other's claims: call it in a thread as well "
                    "(asyncio.to_thread), wait until it has ended, or make another object"
                )
        elif loop is None:
            raise UsageError(
                f"{self._loop_calls} of {self._what} is in progress on an event loop, and two runs "
                "at once would not see each other's claims: await it there, wait until it has "
                "ended, or make another object"
            )
        elif run.loop is not loop:
            raise UsageError(
                f"{self._what} is in use on another event loop, and can be awaited only there "
                "until it has been left; for this event loop make another one"
            )

    def _refuse_own_thread(self, run: HostedRun) -> None:
        predecessor = run.predecessor
        if predecessor is not None and predecessor.is_own_thread():
            raise WouldBlockTheLoop(
                f"this is the event loop's own thread of {self._what}, whose run is being closed: "
                "waiting here for the next run would wait for ever"
            )

    def _is_forked(self) -> bool:
        return self._process != os.getpid()

    def _after_fork(self) -> None:
        """Threads and event loops are not copied into a forked child, and locks may be held."""
        run = self._run
        if run is not None and run.callers:
            raise NotRunning(
                f"{self._what} was in use when this process was forked, and its run belongs to the "
                "parent process; make a new object here"
            )
        self._run, self._process, self._lock = None, os.getpid(), threading.RLock()
