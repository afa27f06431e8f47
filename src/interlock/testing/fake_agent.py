"""Fake agents: what they do is said in a few words, and the site keeps what they did.

site = Site()
slow = FakeAgent(site, works(60), writes("src/a.py"), returns("done"))
flaky = FakeAgent(site, fails(times=2), returns("third time lucky"))
stubborn = FakeAgent(site, hangs(), swallows=3)
rt.submit(slow, writes="src/a.py")
rt.submit(slow.in_a_thread(), writes="src/a.py")
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from interlock.execution.processes.process_agent import Process
from interlock.model.claim import Claim
from interlock.runtime.context import TaskContext
from interlock.testing.simulated_backends import Blocking
from interlock.testing.site import Site, Visit

Deed = Callable[[Visit], Awaitable[None]]
"""Something that an agent does."""


class FakeAgent:
    """An async agent that does one deed after another; `swallows` cancellations leave it cold.

    In a thread (`in_a_thread`) or process (`in_a_process`) it does the same as a blocking agent.
    """

    def __init__(self, site: Site, *deeds: Deed, swallows: int = 0) -> None:
        self.site = site
        self.deeds = deeds
        self.swallows = swallows

    async def run(self, ctx: TaskContext, /, *args: Any) -> Any:
        return await self._live(self.site.arrive(ctx), args)

    def in_a_thread(self) -> FakeThreadAgent:
        """The same agent, blocking."""
        return FakeThreadAgent(self)

    def in_a_process(self, task_id: str, claims: Iterable[Claim] = ()) -> Process[Any]:
        """The same agent in a process, where it has no context to look up its task in."""
        listed = tuple(claims)

        def work(*args: Any) -> Blocking[Any]:
            visit = self.site.arrive_without_context(task_id, listed)
            return Blocking(self._live(visit, args), lambda: self._killed(visit))

        return Process(work)

    def _killed(self, visit: Visit) -> None:
        visit.killed = True
        self.site.leave(visit)

    async def _live(self, visit: Visit, args: tuple[Any, ...]) -> Any:
        visit.given = args
        visit.swallows = self.swallows
        try:
            for deed in self.deeds:
                try:
                    await deed(visit)
                except asyncio.CancelledError:
                    if not visit.swallow():
                        raise
        except GeneratorExit:
            raise  # Its loop is gone: it has not ended, and there is no time at which it left.
        except BaseException as error:
            visit.ended_by = error
            self.site.leave(visit)
            raise
        self.site.leave(visit)
        return visit.value


class FakeThreadAgent:
    """A FakeAgent that blocks a thread."""

    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent

    def run(self, ctx: TaskContext, /, *args: Any) -> Blocking[Any]:
        return Blocking(self._agent._live(self._agent.site.arrive(ctx), args))


def works(seconds: float) -> Deed:
    """Take some time, all of it, even if a cancellation is swallowed meanwhile."""

    async def deed(visit: Visit) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            try:
                await asyncio.sleep(until - loop.time())
            except asyncio.CancelledError:
                if not visit.swallow():
                    raise

    return deed


def hangs() -> Deed:
    """Never come to an end; only a cancellation that is not swallowed helps."""

    async def deed(visit: Visit) -> None:
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                if not visit.swallow():
                    raise

    return deed


def writes(path: str) -> Deed:
    """Write a path."""

    async def deed(visit: Visit) -> None:
        visit.touch(path, wrote=True)

    return deed


def reads(path: str) -> Deed:
    """Read a path."""

    async def deed(visit: Visit) -> None:
        visit.touch(path, wrote=False)

    return deed


def returns(value: Any) -> Deed:
    """Return this in the end. An exception or a failed Outcome is a failure that is returned."""

    async def deed(visit: Visit) -> None:
        visit.value = value

    return deed


def raises(make: Callable[[], BaseException]) -> Deed:
    """Raise something: `raises(OSError)`, `raises(lambda: AgentFailed("no", retryable=False))`."""

    async def deed(visit: Visit) -> None:
        raise make()

    return deed


def fails(times: int, make: Callable[[], BaseException] = RuntimeError) -> Deed:
    """Raise in the first attempts, so many times, and go on to the next deed after that."""

    async def deed(visit: Visit) -> None:
        if visit.attempt <= times:
            raise make()

    return deed
