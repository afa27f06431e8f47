"""Fake agents: a few words say what they do, and the site records what they did.

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

Action = Callable[[Visit], Awaitable[None]]
"""Something that a fake agent does."""


class FakeAgent:
    """An async agent that performs its actions in order and ignores `swallows` cancellations.

    In a thread (`in_a_thread`) or process (`in_a_process`) it does the same as a blocking agent.
    """

    def __init__(self, site: Site, *actions: Action, swallows: int = 0) -> None:
        self.site = site
        self.actions = actions
        self.swallows = swallows

    async def run(self, ctx: TaskContext, /, *args: Any) -> Any:
        return await self._live(self.site.arrive(ctx), args)

    def in_a_thread(self) -> FakeThreadAgent:
        """The same agent as a blocking one."""
        return FakeThreadAgent(self)

    def in_a_process(self, task_id: str, claims: Iterable[Claim] = ()) -> Process[Any]:
        """The same agent in a process, where it has no context to find its id and claims in."""
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
            for action in self.actions:
                try:
                    await action(visit)
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


def works(seconds: float) -> Action:
    """Work for so many seconds, all of them, even if a cancellation is swallowed meanwhile."""

    async def action(visit: Visit) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            try:
                await asyncio.sleep(until - loop.time())
            except asyncio.CancelledError:
                if not visit.swallow():
                    raise

    return action


def hangs() -> Action:
    """Never end, until a cancellation comes that is not swallowed."""

    async def action(visit: Visit) -> None:
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                if not visit.swallow():
                    raise

    return action


def writes(path: str) -> Action:
    """Write a path."""

    async def action(visit: Visit) -> None:
        visit.touch(path, wrote=True)

    return action


def reads(path: str) -> Action:
    """Read a path."""

    async def action(visit: Visit) -> None:
        visit.touch(path, wrote=False)

    return action


def returns(value: Any) -> Action:
    """Return this at the end. An exception or a failed Outcome counts as a failure."""

    async def action(visit: Visit) -> None:
        visit.value = value

    return action


def raises(make: Callable[[], BaseException]) -> Action:
    """Raise something: `raises(OSError)`, `raises(lambda: AgentFailed("no", retryable=False))`."""

    async def action(visit: Visit) -> None:
        raise make()

    return action


def fails(times: int, make: Callable[[], BaseException] = RuntimeError) -> Action:
    """Raise in the first `times` attempts; later attempts go on to the next action."""

    async def action(visit: Visit) -> None:
        if visit.attempt <= times:
            raise make()

    return action
