"""The lock port: groups hold locks while they run, so that they exclude each other."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, runtime_checkable

from interlock.errors import InvalidOption
from interlock.model.patterns.overlap_index import OverlapIndex
from interlock.patterns.executor.events import PARALLEL_LOCK_CONFLICT, log_event


@runtime_checkable
class ResourceLock(Protocol):
    """Maps resources to holders. Bring your own to exclude other processes or machines."""

    async def acquire(self, resource: str, holder: str) -> bool:
        """Acquire without waiting; True also if this holder has the resource already."""
        ...

    async def release(self, resource: str, holder: str) -> None:
        """Release a resource; if another holder has it, log a warning and change nothing."""
        ...

    async def release_all(self, holder: str) -> int:
        """Release everything this holder has; return how many resources that was."""
        ...

    def is_locked(self, resource: str) -> bool:
        """Whether the resource has a holder."""
        ...

    def holder_of(self, resource: str) -> str | None:
        """Return the holder, or None."""
        ...


@runtime_checkable
class WaitableLock(ResourceLock, Protocol):
    """A lock that can also be waited for, which `on_conflict="wait"` requires."""

    async def wait_until_free(self, resource: str) -> None:
        """Return when the resource is free."""
        ...


class InMemoryResourceLock:
    """A lock for the groups of one event loop.

    Resources are compared as claims are: `src/` and `./src/a.py` exclude each other, and so do two
    patterns that match a common path. Text that is not a valid pattern conflicts only with itself.
    """

    def __init__(self, *, fold_case: bool = False) -> None:
        self._held = OverlapIndex(fold_case=fold_case)
        self._waiting: list[asyncio.Future[None]] = []

    async def acquire(self, resource: str, holder: str) -> bool:
        """Acquire without waiting; True also if this holder has the resource already."""
        for what, text in (("resource", resource), ("holder", holder)):
            if not isinstance(text, str) or not text.strip():
                raise InvalidOption(f"a {what} must be text that is not blank, not {text!r}")
        if self._held.against(resource, holder) is not None:
            return False
        self._held.add(resource, holder)
        return True

    async def release(self, resource: str, holder: str) -> None:
        """Release a resource; if another holder has it, log a warning and change nothing."""
        if self._held.remove(resource, holder):
            self._wake()
            return
        current = self._held.against(resource, holder)
        if current is not None:
            log_event(
                PARALLEL_LOCK_CONFLICT,
                level=logging.WARNING,
                resource=resource,
                holder=holder,
                current_holder=current.holder,
                reason="only its holder can release it",
            )

    async def release_all(self, holder: str) -> int:
        """Release everything this holder has; return how many resources that was."""
        held = self._held.of(holder)
        for resource in held:
            self._held.remove(resource, holder)
        if held:
            self._wake()
        return len(held)

    def is_locked(self, resource: str) -> bool:
        """Whether the resource, or a part of it, has a holder."""
        return self._held.against(resource, None) is not None

    def holder_of(self, resource: str) -> str | None:
        """Return the holder of the resource or of a part of it, or None."""
        held = self._held.against(resource, None)
        return None if held is None else held.holder

    async def wait_until_free(self, resource: str) -> None:
        """Return when the resource and all parts of it are free."""
        while self.is_locked(resource):
            released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(released)
            await released

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
