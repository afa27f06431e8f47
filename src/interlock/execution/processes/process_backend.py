"""The backends of agents in processes of their own, which can be killed: functions and commands."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from interlock.execution.backend import AttemptJob, Caps, Launched
from interlock.execution.callables.threads import PATIENCE
from interlock.execution.commands.command_attempt import CommandAttempt
from interlock.execution.ending import Ending, raised
from interlock.execution.processes.function_attempt import FunctionAttempt
from interlock.execution.processes.main_script import refuse_to_start_again
from interlock.execution.processes.shortage import raise_limit_of_files
from interlock.execution.processes.supervised_attempt import SupervisedAttempt

LAST_RESORT = 5.0
"""Seconds after the grace until a supervisor is killed that has not ended its agent.

An agent may have stopped it (SIGSTOP)."""

LONGEST_GRACE = 4.0
"""Seconds that a program has after SIGTERM at most, however much grace the run gives to functions.

Cancelling a program is expected to end it, and to release its claims, within seconds."""


class Processes:
    """The backend of `interlock.process()`.

    Each attempt has a process, and here a thread that starts it, talks to it and waits for it. The
    attempt is gone when its process has ended, and so has everything that it started. If this
    process dies first, they are killed.
    """

    caps = Caps(kill=True)

    def __init__(self, loop: asyncio.AbstractEventLoop, on_orphan: Callable[[int], None]) -> None:
        self._loop = loop
        self._on_orphan = on_orphan
        self._attempts: dict[int, SupervisedAttempt] = {}
        self._last_resorts: dict[int, asyncio.TimerHandle] = {}

    def submit(self, job: AttemptJob) -> None:
        refuse_to_start_again()
        raise_limit_of_files()
        try:
            if not hasattr(os, "fork"):
                raise NotImplementedError("agents in processes need Linux or macOS")
            attempt = self._attempt(job)
            # Its last report arrives on this thread, so not before this method returns.
            self._attempts[job.token] = attempt
            attempt.start()
        except (OSError, RuntimeError) as error:  # no more descriptors or threads
            self._attempts.pop(job.token, None)
            job.sink.ended(job.token, raised(error))

    def _attempt(self, job: AttemptJob) -> SupervisedAttempt:
        return FunctionAttempt(job, self)

    def cancel(self, token: int, grace: float) -> None:
        attempt = self._attempts.get(token)
        if attempt is not None:
            attempt.cancel(grace)
            if token not in self._last_resorts:
                self._last_resorts[token] = self._loop.call_later(
                    grace + LAST_RESORT, attempt.do_without_supervisor
                )

    async def close(self) -> None:
        """Nothing idles here."""

    def launched(self, job: AttemptJob, launched: Launched) -> None:
        """Report that the process of an attempt has started. Called on the attempt's thread."""
        with suppress(RuntimeError):  # the loop is closed; `over` handles that
            self._loop.call_soon_threadsafe(job.sink.launched, job.token, launched)

    def ended(self, job: AttemptJob, ending: Ending) -> None:
        """Report an ending, while something of the attempt still runs. Called on its thread."""
        with suppress(RuntimeError):  # the loop is closed; `over` handles that
            self._loop.call_soon_threadsafe(partial(job.sink.ended, job.token, ending, gone=False))

    def over(self, job: AttemptJob, ending: Ending | None) -> None:
        """Report that the attempt is gone, and its ending if that is new. Its thread ends then."""
        heard = threading.Event()
        try:
            self._loop.call_soon_threadsafe(self._over, job, ending, heard)
        except RuntimeError:  # the loop was closed while the agent was still running
            self._on_orphan(job.token)
            return
        # A loop that is closed now drops the calls that it was asked to make.
        while not heard.wait(PATIENCE):
            if self._loop.is_closed() and not heard.is_set():
                self._on_orphan(job.token)
                return

    def _over(self, job: AttemptJob, ending: Ending | None, heard: threading.Event) -> None:
        heard.set()
        del self._attempts[job.token]
        last_resort = self._last_resorts.pop(job.token, None)
        if last_resort is not None:
            last_resort.cancel()
        if ending is None:
            job.sink.gone(job.token)
        else:
            job.sink.ended(job.token, ending)


class Commands(Processes):
    """The backend of `interlock.command()`.

    `containment` keeps the processes of a program together; None: the strongest that works here.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_orphan: Callable[[int], None],
        containment: str | None = None,
    ) -> None:
        super().__init__(loop, on_orphan)
        self._containment = containment

    def cancel(self, token: int, grace: float) -> None:
        super().cancel(token, min(grace, LONGEST_GRACE))

    def _attempt(self, job: AttemptJob) -> SupervisedAttempt:
        return CommandAttempt(job, self, self._containment)
