"""Running the steps of workspaces that do not answer at once: each is an asyncio task.

The tasks are not children of the run's TaskGroup, which is closed when the run ends: an attempt
that outlives its run still releases its workspace, if the event loop goes on.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

Then = Callable[[Any, BaseException | None], None]
"""Told what a step has answered, or why it has not."""


class WorkspaceSteps:
    """At most one step per attempt, by its token."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: dict[int, asyncio.Future[Any]] = {}
        self._uncancellable: set[int] = set()

    def run(
        self, token: int, name: str, answer: Awaitable[Any], then: Then, *, cancellable: bool = True
    ) -> None:
        """Await the answer in a task of that name, then tell of it on the event loop."""
        step: asyncio.Future[Any]
        if asyncio.isfuture(answer):
            # Not awaited in a task of ours: cancelling that one just after the answer is there
            # would lose the answer, and before its first step it would not reach this one.
            step = answer
        else:
            step = self._loop.create_task(_awaited(answer), name=name)
        self._running[token] = step
        if not cancellable:
            self._uncancellable.add(token)
        step.add_done_callback(partial(self._done, token, answer, then))

    def cancel(self, token: int) -> None:
        """Cancel the step of an attempt, if one is running that may be cancelled."""
        step = self._running.get(token)
        if step is not None and token not in self._uncancellable:
            step.cancel()

    def _done(
        self,
        token: int,
        answer: Awaitable[Any],
        then: Then,
        step: asyncio.Future[Any],
    ) -> None:
        del self._running[token]
        self._uncancellable.discard(token)
        if step.cancelled():
            # Before its first step: not a line of it has run, and Python would warn of that.
            if inspect.iscoroutine(answer):
                answer.close()
            then(None, asyncio.CancelledError())
        elif step is answer:
            error = step.exception()
            then(None if error is not None else step.result(), error)
        else:
            then(*step.result())


async def _awaited(answer: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    try:
        return await answer, None
    except GeneratorExit:
        raise  # the loop is thrown away with this task in it
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is this step's failure
        return None, error
