"""Locks that groups hold while they run, so that several groups exclude each other."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, runtime_checkable

from interlock.errors import InvalidOption
from interlock.patterns.executor.events import PARALLEL_LOCK_CONFLICT, tell
from interlock.patterns.executor.held_resources import HeldResources


@runtime_checkable
class ResourceLock(Protocol):
    """Who holds which resource. Bring your own to exclude other processes or machines."""

    async def acquire(self, resource: str, holder: str) -> bool:
        """Take it, at once or not at all; True also if this holder has it already."""
        ...

    async def release(self, resource: str, holder: str) -> None:
        """Give it back; a warning, and no change, if somebody else holds it."""
        ...

    async def release_all(self, holder: str) -> int:
        """Give back all that this holder has; how many that was."""
        ...

    def is_locked(self, resource: str) -> bool:
        """Whether anybody holds it."""
        ...

    def holder_of(self, resource: str) -> str | None:
        """Who holds it."""
        ...


@runtime_checkable
class WaitableLock(ResourceLock, Protocol):
    """A lock that can be waited for, as `on_conflict="wait"` needs it."""

    async def wait_until_free(self, resource: str) -> None:
        """Return when nobody holds the resource."""
        ...


class InMemoryResourceLock:
    """A lock for the groups of one event loop.

    Resources are compared as claims are: `src/` and `./src/a.py` exclude each other, and so do two
    patterns that have a path in common. What cannot be read as a pattern means just itself.
    """

    def __init__(self, *, fold_case: bool = False) -> None:
        self._held = HeldResources(fold_case=fold_case)
        self._waiting: list[asyncio.Future[None]] = []

    async def acquire(self, resource: str, holder: str) -> bool:
        """Take it, at once or not at all; True also if this holder has it already."""
        for what, text in (("resource", resource), ("holder", holder)):
            if not isinstance(text, str) or not text.strip():
                raise InvalidOption(f"a {what} is text that is not blank, not {text!r}")
        if self._held.against(resource, holder) is not None:
            return False
        self._held.add(resource, holder)
        return True

    async def release(self, resource: str, holder: str) -> None:
        """Give it back; a warning, and no change, if somebody else holds it."""
        if self._held.remove(resource, holder):
            self._wake()
            return
        current = self._held.against(resource, holder)
        if current is not None:
            tell(
                PARALLEL_LOCK_CONFLICT,
                level=logging.WARNING,
                resource=resource,
                holder=holder,
                current_holder=current.holder,
                reason="only its holder can release it",
            )

    async def release_all(self, holder: str) -> int:
        """Give back all that this holder has; how many that was."""
        held = self._held.of(holder)
        for resource in held:
            self._held.remove(resource, holder)
        if held:
            self._wake()
        return len(held)

    def is_locked(self, resource: str) -> bool:
        """Whether anybody holds it, or a part of it."""
        return self._held.against(resource, None) is not None

    def holder_of(self, resource: str) -> str | None:
        """Who holds it, or a part of it."""
        held = self._held.against(resource, None)
        return None if held is None else held.holder

    async def wait_until_free(self, resource: str) -> None:
        """Return when nobody holds the resource, nor a part of it."""
        while self.is_locked(resource):
            released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(released)
            await released

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
