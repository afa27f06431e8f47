"""How a run begins and ends: orphans, backends, signals, grace.

However a run ends, the same five steps follow in this order, because each relies on the one before:
wait for the tasks or stop them; wait at most `grace` for attempts that do not stop; hold the claims
of those that still have not (they are orphans now); write what was decided; close the backends and
the journal. A cancellation that arrives meanwhile stops the tasks, but skips no step.

    leaving the block                   waits for all tasks, then as above
    leaving it by an exception          cancels all tasks, then as above
    shutdown()                          lets running attempts finish within its grace, then stops
    first signal                        the same, and the run can be resumed if it has a journal
    second signal                       stops everything now
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from interlock.errors import AttemptsStillAlive, FatalError
from interlock.execution.callables.coroutines import Coroutines
from interlock.execution.processes.main_script import refuse_to_start_again
from interlock.kernel import stimuli as s
from interlock.model.event import Kind
from interlock.model.outcome import State
from interlock.runtime.orphans import orphans_in
from interlock.runtime.ports import Ports
from interlock.runtime.recovery.known_tasks import WhenInterrupted
from interlock.runtime.recovery.restore import restore_run
from interlock.runtime.shell import Shell, ended_by
from interlock.runtime.signals import Signals, error_for

_TO_STOP = 1.0
"""Seconds that attempts have to stop after they had the grace of a shutdown to finish."""
_AT_ONCE = 0.5
"""Seconds that attempts have to stop after a second signal."""
_NOT_STARTED = (State.BLOCKED, State.WAITING, State.RETRYING)


class Lifecycle:
    """Begins one run and ends it."""

    def __init__(
        self,
        shell: Shell,
        ports: Ports,
        grace: float,
        when_interrupted: WhenInterrupted = "rerun",
        kernel_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.shell = shell
        self._kernel_options = kernel_options or {}
        """Recorded with the start of the run, for a replay."""
        self._when_interrupted = when_interrupted
        self._ports = ports
        self._grace = grace
        self._coroutines = Coroutines(f"interlock-{shell.run_id}")
        self._signals = Signals(shell.loop, self._signalled)
        self._signal: int | None = None
        self._interruption: asyncio.Task[None] | None = None
        self._latest = math.inf
        """The time of the loop at which waiting ends, whatever the grace."""
        self._next_look: asyncio.Future[None] | None = None
        self._host: asyncio.Task[object] | None = None
        self._ending = self._closed = False

    async def begin(self) -> None:
        """Open the backends, restore a resumed run, and hold the claims of orphans."""
        # A process agent imports the main script again. Without a guard in it, that import would
        # begin this run once more, in the child.
        refuse_to_start_again()
        shell = self.shell
        if shell.disk is not None:
            # Before anything can start: processes of a coordinator that was killed may still be
            # working, and the kernel of this run knows nothing of their claims.
            await self._ports.sweep(shell.disk, shell.workspace.root)
        self._host = asyncio.current_task()
        began = {"run": shell.run_id, "epoch": shell.clock.epoch, "kernel": self._kernel_options}
        shell.note(Kind.RUN_STARTED, "", began)
        await self._coroutines.open(self._task_group_crashed)
        backends = self._ports.backends(shell.loop, self._coroutines, self._orphaned)
        shell.attempts.open(backends, self._ports.workspaces(shell.workspace.root))
        if shell.known_tasks is not None and shell.known_tasks.past is not None:
            restore_run(shell, shell.known_tasks.past, self._when_interrupted)
        for orphan, claims in orphans_in(shell.workspace.root):
            shell.take_in(s.Occupy(orphan.name, claims))
            orphan.watch(partial(self._vacated, orphan.name))
        if shell.passed_over:
            shell.log.passed_over(shell.passed_over)
        # Last: a signal that comes while the run begins is the program's, as it was before.
        if self._ports.signals:
            self._signals.listen()

    def _vacated(self, name: str) -> None:
        """An attempt of an earlier run has ended. Called on any thread."""
        try:
            self.shell.loop.call_soon_threadsafe(self._vacate, name)
        except RuntimeError:
            return  # this run is over as well, and its loop is closed

    def _vacate(self, name: str) -> None:
        # The call may have waited in the queue of the loop until after the end of the run.
        if not self._closed and self.shell.broken is None:
            self.shell.take_in(s.Vacate(name))

    def _orphaned(self, token: int) -> None:
        """An attempt is gone, after its event loop was closed. Called on the attempt's thread."""
        # Not through the loop, which is closed: the orphan itself is safe to use from any thread.
        orphan = self.shell.attempts.orphans.get(token)
        if orphan is not None:
            orphan.release()

    def _task_group_crashed(self, error: BaseException) -> None:
        if not self._closed:
            self.shell.break_off(error)

    # -- the end ----------------------------------------------------------------------------

    async def end(self, error: BaseException | None) -> None:
        """Wait for all tasks, or cancel them if the block was left by an error; then close.

        A cancellation meanwhile cancels the tasks; every step of the end is carried out all the
        same.
        """
        self._ending = True
        try:
            cancelled, alive = await self._wait_for_all(error)
        except BaseException as bug:  # whatever it is, nothing may stay open
            self.shell.break_off(bug)
            raise
        finally:
            await self._close()
        # After closing: whatever is raised, the journal is free for the next run.
        self._raise(error, cancelled, alive)

    async def _wait_for_all(
        self, error: BaseException | None
    ) -> tuple[asyncio.CancelledError | None, list[str]]:
        cancelled = None
        if error is None:
            cancelled = await self._wait(self.shell.all_settled, None)
        if error is not None or cancelled is not None:
            self._stop_everything()
        elif self.shell.broken is None and not self.shell.suspended:
            self.shell.take_in(s.Drain())  # from here on, no code would wait for a new task
        cancelled = await self._wait(self.shell.is_quiet, self._grace) or cancelled
        # Attempts in processes are being killed now, which takes a moment.
        cancelled = await self._wait(self.shell.attempts.none_killable, _AT_ONCE) or cancelled
        alive = self.shell.attempts.leave_behind()
        return await self._finish(alive) or cancelled, alive

    def _stop_everything(self) -> None:
        shell = self.shell
        if shell.broken is not None or shell.suspended:
            return
        if shell.known_tasks is not None and shell.known_tasks.unbound:
            # The program failed before it had submitted all unfinished tasks again, so the run
            # stays open for them. The others must not be cancelled for that: an outcome is final.
            shell.suspend()
        else:
            shell.take_in(s.Shutdown())

    async def _wait(
        self, condition: Callable[[], bool], most: float | None, *, in_any_case: bool = False
    ) -> asyncio.CancelledError | None:
        """Wait for a condition, at most so long; returns the cancellation, if one came.

        The first cancellation stops all tasks, further ones change nothing.
        """
        loop = self.shell.loop
        cancelled: asyncio.CancelledError | None = None
        until = math.inf if most is None else loop.time() + most
        while not condition():
            left = (until if in_any_case else min(until, self._latest)) - loop.time()
            if left <= 0:
                break
            # A new future each time: the last one may have been resolved by a second signal,
            # which shortens `_latest` and wants this loop to look at it.
            self._next_look = look = self.shell.conditions.once(condition)
            try:
                await asyncio.wait([look], timeout=None if left == math.inf else left)
            except asyncio.CancelledError as caught:
                # Swallowed here and raised at the very end: leaving now would leave attempts
                # running and claims held with nothing to release them.
                if cancelled is None:
                    self._stop_everything()
                cancelled = caught
        return cancelled

    async def _finish(self, alive: list[str]) -> asyncio.CancelledError | None:
        """Let followers of the run end, once everything that happened is in the journal."""
        shell = self.shell
        unbound = () if shell.known_tasks is None else shell.known_tasks.unbound
        if unbound:
            shell.log.unbound(unbound)
        elif not shell.events.finished and not shell.suspended:
            # A suspended run has no end in its journal: that is how a resume recognizes it.
            shell.note(Kind.RUN_ENDED, "", {"run": shell.run_id, "still_alive": alive})
        # Without a time limit: decisions must not be lost. Unless the journal cannot be written and
        # a signal asks to end: no caller has been told of them, and their tasks run again.
        cancelled = await self._wait(self._is_written, None, in_any_case=True)
        shell.events.finish()
        return cancelled

    def _is_written(self) -> bool:
        gives_up = self._signal is not None and bool(self.shell.trouble)
        return self.shell.nothing_to_commit() or gives_up

    async def call_off(self, error: BaseException) -> None:
        """Release everything after a failed start. A run that was to be resumed stays open."""
        remembered = self.shell.known_tasks
        if remembered is not None and remembered.past is not None:
            self.shell.suspend()
        await self.end(error)

    async def _close(self) -> None:
        self._closed = True
        # Signals first: from here on the program's own handlers are right again. The journal last:
        # no other run may have it while something of this one is still open.
        self._signals.stop()
        self.shell.close()
        for backend in self.shell.attempts.backends.values() or (self._coroutines,):
            await backend.close()
        self.shell.journal.close()

    def _raise(
        self,
        error: BaseException | None,
        cancelled: asyncio.CancelledError | None,
        alive: list[str],
    ) -> None:
        """Raise what matters most, if anything. The block's own error is raised by Python."""
        shell = self.shell
        fatal = shell.attempts.fatal
        if shell.broken is not None:
            raise ended_by(shell.run_id, shell.broken) from shell.broken
        # A shutdown() inside the block may have raised it already.
        if alive and not isinstance(error, AttemptsStillAlive):
            raise AttemptsStillAlive(alive, self._grace) from error
        if self._signal is not None:
            raise error_for(self._signal) from error
        if error is None and cancelled is not None:
            raise cancelled
        if error is None and fatal is not None:
            outcomes = [each.outcome for each in shell.tasks if each.outcome is not None]
            raise FatalError(fatal[0], repr(fatal[1]), outcomes) from fatal[1]

    # -- shutdown and signals ---------------------------------------------------------------

    async def shut_down(self, grace: float, *, cancel: bool = False) -> None:
        """Start nothing more, let what runs finish within `grace`, then stop it.

        With `cancel` it is stopped at once, and the grace is for stopping.
        """
        shell = self.shell
        shell.take_in(s.Drain())
        for handle in list(shell.tasks):
            # Children may go on: their parents run, and may be waiting for them.
            if handle.outcome is None and handle.parent is None and handle.state in _NOT_STARTED:
                shell.take_in(s.Cancel(handle.task_id, "the run was shut down"))
        # Until nothing runs, not until all have ended: a task that fails now cannot run again.
        to_finish, to_stop = (0.0, grace) if cancel else (grace, _TO_STOP)
        if await self._wait(shell.is_idle, to_finish) is None:
            self._stop_everything()
            shell.attempts.remind(to_stop / 2)  # after that they are killed, if that is possible
        cancelled = await self._wait(shell.is_quiet, to_stop)
        alive = [context.task.id for context in shell.attempts.alive.values()]
        cancelled = await self._finish(alive) or cancelled
        if alive:
            self._latest = 0.0  # they had their grace: leaving the block waits no longer
            raise AttemptsStillAlive(alive, grace)
        if cancelled is not None:
            raise cancelled

    async def _suspend(self) -> None:
        """Let running attempts finish within the grace, then suspend the run for a resume."""
        shell = self.shell
        # Even if the journal cannot be written, or an attempt does not stop.
        self._latest = shell.loop.time() + self._grace + _TO_STOP
        if shell.broken is None and not shell.events.closed:
            shell.take_in(s.Drain())
            await self._wait(shell.is_idle, self._grace)
        shell.suspend()
        shell.attempts.remind(_TO_STOP / 2)

    def _signalled(self, number: int) -> None:
        if self._signal is None:
            self._signal = number
            self.shell.log.interrupted(len(self.shell.attempts.alive), self._grace)
            # Kept in an attribute: the loop holds only a weak reference to a task.
            self._interruption = self.shell.loop.create_task(
                self._interrupt(), name=f"shutdown-{self.shell.run_id}"
            )
            return
        self._latest = self.shell.loop.time() + _AT_ONCE
        if self.shell.is_durable:
            self.shell.suspend()
        else:
            self._stop_everything()
        self.shell.attempts.remind(_AT_ONCE / 2)
        if self._next_look is not None and not self._next_look.done():
            self._next_look.set_result(None)

    async def _interrupt(self) -> None:
        """After a signal: end the run, then cancel the code inside the block."""
        if self.shell.is_durable:
            await self._suspend()
        else:
            with contextlib.suppress(AttemptsStillAlive):  # leaving the block names them
                await self.shut_down(self._grace)
        # The code inside the block may wait for something that has nothing to do with this run.
        if not self._ending and self._host is not None:
            self._host.cancel()
