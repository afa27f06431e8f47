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

`run_chain.py` has the argument for why this is right. `close` and `shutdown` must be awaited on the
loop of the callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from interlock.errors import NotRunning, WouldBlockTheLoop
from interlock.runtime.hosting.hosted_run import HostedRun
from interlock.runtime.hosting.run_chain import HostNames, RunChain
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
        self._what = what
        names = HostNames(what, thread_calls, loop_calls)
        self._runs = RunChain(make, on_open, names, leaves_zombies=leaves_zombies)

    # -- any caller, any thread -------------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """The Runtime that is open, or else the one being closed; NotRunning if there is none."""
        run = self._runs.newest
        while run is not None:
            if run.runtime is not None:
                return run.runtime
            run = run.predecessor
        raise NotRunning(f"{self._what} is not in use at the moment, so it has no Runtime")

    @property
    def is_open(self) -> bool:
        """Whether there is a Runtime that new callers may share."""
        run = self._runs.newest
        return run is not None and run.runtime is not None and not run.is_ending

    @property
    def is_closed(self) -> bool:
        """Whether there is no Runtime, nor one that is being opened or closed."""
        return self._runs.newest is None

    @property
    def callers(self) -> int:
        """How many callers have entered the present run, or are about to, and have not left."""
        run = self._runs.newest
        return 0 if run is None else run.callers

    @property
    def is_shut(self) -> bool:
        """Whether new callers are refused for good."""
        return self._runs.is_shut

    def refuse(self) -> None:
        """Refuse new callers from now on; those inside are not disturbed."""
        self._runs.is_shut = True

    def check_open(self) -> None:
        """Raise ShuttingDown if new callers are refused."""
        self._runs.check_open()

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function on the thread of the event loop; here, if there is no run."""
        run = self._runs.newest
        if run is None or run.loop_thread is None or run.is_abandoned:
            return function(*args)
        return run.loop_thread.call(function, *args)

    # -- callers on an event loop -----------------------------------------------------------

    async def enter(self) -> Runtime:
        """Get the Runtime, opened if need be. To be followed by `leave`."""
        return await self._until_open(self._runs.join(asyncio.get_running_loop()))

    def leave(self, runtime: Runtime) -> None:
        """Stop using a Runtime. After its last caller it is closed; see `wait_closed`."""
        run = self._runs.run_of(runtime)
        if run is not None:
            self._runs.leave(run)

    async def wait_closed(self) -> None:
        """Wait until the present run is closed, if its last caller has left."""
        run = self._runs.newest
        if run is not None and run.is_ending:
            await run.closed.wait()

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
        run, successor = self._runs.replace(runtime, asyncio.get_running_loop())
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
            self._runs.leave(successor)
            raise
        finally:
            run.end()
        return await self._until_open(successor)

    def check_loop(self) -> None:
        """Raise UsageError if the host is in use elsewhere than on this event loop."""
        self._runs.check_loop()

    async def close(self, *, cancel: bool = False) -> None:
        """Refuse new callers, wait for work or `cancel` it, and close. Raises what closing raises.

        Cancelling this call cancels the work, and still waits until everything is closed.
        """
        self.check_loop()
        self.refuse()
        runs = self._runs.unclosed()
        for run in runs:
            run.has_waiter = True
            run.end(cancel=cancel)
        cancelled: asyncio.CancelledError | None = None
        for run in runs:
            while not run.closed.is_reached():
                try:
                    await run.closed.wait()
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
        run = self._runs.join(None)
        try:
            self._refuse_own_thread(run)
            run.opened.wait_in_thread()
            return self._opened(run)
        except BaseException:  # also Ctrl-C in the middle of it
            self._runs.leave(run)
            raise

    def leave_from_thread(self, runtime: Runtime) -> None:
        """Stop using a Runtime. The last caller closes it, waits, and gets what closing raises.

        It does not wait for zombies: closing then goes on in the background, and the next caller
        waits for it, at most for the grace.
        """
        run = self._runs.run_of(runtime)
        if run is None or not self._runs.is_last_to_leave(run):
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
            run.closed.wait_in_thread()
            run.raise_error()
        elif runtime.is_durable and not on_own_thread:
            with suppress(TimeoutError):
                run.closed.wait_in_thread(_ZOMBIE_PATIENCE)

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
        run = self._runs.newest
        try:
            if run is None or run.loop is None or run.closed.is_reached() or self._runs.is_forked():
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
        if self._runs.is_forked():
            return
        runs = self._runs.unclosed()
        for run in runs:
            run.has_waiter = run.has_waiter or wait
            run.end(cancel=cancel)
        if wait:
            for run in runs:
                run.closed.wait_in_thread(timeout)
                run.raise_error()

    def shutdown_from_thread(self, timeout: float) -> None:
        """Refuse new callers, let running work finish within `timeout`, then stop it.

        The callers leave, and close the run, when they have their outcomes. AttemptsStillAlive
        names the tasks that did not stop. A run on an event loop is left to its callers.
        """
        self.refuse()
        run = self._runs.newest
        if run is None or not run.in_thread or self._runs.is_forked():
            return
        run.opened.wait_in_thread()
        runtime = run.runtime
        if runtime is None or run.closed.is_reached():
            return
        try:
            runtime.loop_thread.wait(lambda: runtime.shutdown(timeout), None)
        except (NotRunning, asyncio.CancelledError):
            # The last caller has left meanwhile; then closing tells what would not stop.
            run.has_waiter = True
            run.closed.wait_in_thread()
            run.raise_error()

    def __enter__(self) -> Runtime:
        return self.enter_from_thread()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self.close_from_thread(cancel=error is not None)

    # -- opening ----------------------------------------------------------------------------

    async def _until_open(self, run: HostedRun) -> Runtime:
        try:
            await run.opened.wait()
            return self._opened(run)
        except BaseException:
            self._runs.leave(run)
            if run.is_ending:
                await shielded_to_completion(run.closed.wait())
            raise

    def _opened(self, run: HostedRun) -> Runtime:
        if run.runtime is None:
            if run.error is not None:
                raise run.error
            self.check_open()
            raise NotRunning(f"{self._what} was left before it was open")
        return run.runtime

    def _refuse_own_thread(self, run: HostedRun) -> None:
        predecessor = run.predecessor
        if predecessor is not None and predecessor.is_own_thread():
            raise WouldBlockTheLoop(
                f"this is the event loop's own thread of {self._what}, whose run is being closed: "
                "waiting here for the next run would wait for ever"
            )
