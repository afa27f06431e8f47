"""One Runtime for several callers on a loop: entered by the first, left after the last."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from interlock.errors import AttemptsStillAlive, NotRunning, ShuttingDown, UsageError
from interlock.runtime.log import LOGGER
from interlock.runtime.runtime import Runtime
from interlock.runtime.shielded import shielded_to_completion


class _CalledOff(Exception):
    """What still runs is to be cancelled."""


class SharedRuntime:
    """For objects that can be used as they are, without `async with`, also by several at once.

    The Runtime lives in a task of its own, because whoever comes first may be gone before the
    others are. After the last one has left it is left too, and the next caller gets a new one.
    Attempts that will not stop are an error in the log; with `leaves_behind`, which is for threads
    that nobody waits for, a warning.
    """

    def __init__(
        self,
        make: Callable[[], Runtime],
        opened: Callable[[Runtime], None],
        *,
        leaves_behind: bool = False,
    ) -> None:
        self._make = make
        self._opened = opened
        self._leaves_behind = leaves_behind
        self._house: asyncio.Task[None] | None = None
        self._entered: asyncio.Future[Runtime]
        self._leave: asyncio.Future[bool]
        self.guests = 0
        """Those who have come in, or are about to, and have not left."""
        self._over = False

    @property
    def runtime(self) -> Runtime:
        """The Runtime that is open now."""
        if self._house is not None and self._entered.done():
            return self._entered.result()
        raise NotRunning("nothing runs here at the moment, so there is no Runtime to look at")

    @property
    def is_open(self) -> bool:
        """Whether there is a Runtime, be it one that is just being entered or left."""
        return self._house is not None

    async def enter(self) -> Runtime:
        """Come in; to be followed by `leave()`."""
        self.check_loop()
        while not self._over and self._house is not None and self._leave.done():
            await asyncio.wait([self._house])  # it is being left: the next one follows
        self.check_open()
        if self._house is None:
            self._open()
        self.guests += 1
        try:
            return await asyncio.shield(self._entered)
        except BaseException:
            self.leave()
            await shielded_to_completion(self.vacated())
            raise

    def leave(self) -> None:
        """One guest less; after the last one the Runtime is left."""
        self.guests -= 1
        if not self.guests and not self._leave.done():
            self._leave.set_result(False)

    async def vacated(self) -> None:
        """Wait until the Runtime has been left, if nobody is in there any more."""
        if self._house is not None and self._leave.done():
            await asyncio.wait([self._house])

    def check_open(self) -> None:
        """Raise if there is to be no new work."""
        if self._over:
            raise ShuttingDown("this has been shut down, and takes no new work")

    def check_loop(self) -> None:
        """Raise on any other event loop than that of the Runtime, while there is one."""
        if self._house is not None and self._house.get_loop() is not asyncio.get_running_loop():
            raise UsageError(
                "this is in use on another event loop, and can be awaited only there until it has "
                "been left; for this event loop make another one"
            )

    def refuse(self) -> None:
        """Let nobody in from now on."""
        self._over = True

    async def close(self, *, cancel: bool = False) -> None:
        """Let nobody in, wait for what runs or `cancel` it, and leave. Raises what leaving does."""
        self.check_loop()
        self.refuse()
        house = self._house
        if house is None:
            return
        if not self._leave.done():
            self._leave.set_result(cancel)
        cancelled: asyncio.CancelledError | None = None
        while not house.done():
            try:
                await asyncio.wait([house])
            except asyncio.CancelledError as error:
                cancelled = error
                house.cancel()  # nobody wants the rest; it is left all the same
        if not house.cancelled():
            house.result()
        if cancelled is not None:
            raise cancelled

    def _open(self) -> None:
        loop = asyncio.get_running_loop()
        self._entered, self._leave = loop.create_future(), loop.create_future()
        self._house = loop.create_task(self._live(), name="interlock")
        self._house.add_done_callback(self._left)

    async def _live(self) -> None:
        try:
            with contextlib.suppress(_CalledOff):
                async with self._make() as runtime:
                    # What taking up a run tells of is not meant for those who come in now.
                    await runtime.flush()
                    self._opened(runtime)
                    self._entered.set_result(runtime)
                    if await self._leave:
                        raise _CalledOff  # leaving the block by an error is how to cancel
        except BaseException as error:
            if not self._entered.done():
                self._entered.set_exception(error)
            raise

    def _left(self, house: asyncio.Task[None]) -> None:
        self._house = None
        error = None if house.cancelled() else house.exception()
        if not self._entered.done():  # it was cancelled before its first step
            self._entered.cancel()
        # Who could not come in was told by its `enter()`; who shut it down, by its `close()`.
        elif error is not None and self._entered.exception() is None and not self._over:
            if isinstance(error, AttemptsStillAlive) and self._leaves_behind:
                LOGGER.warning("%s", error)
            else:
                LOGGER.log(logging.ERROR, "left_in_trouble", exc_info=error)
