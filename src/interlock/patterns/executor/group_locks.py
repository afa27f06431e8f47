"""What one execution of a group holds: taken before anything runs, given back whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from interlock.errors import ResourceConflictError
from interlock.patterns.executor.events import (
    PARALLEL_LOCK_ACQUIRED,
    PARALLEL_LOCK_CONFLICT,
    PARALLEL_LOCK_RELEASE_ERROR,
    PARALLEL_LOCK_RELEASED,
    tell,
)
from interlock.patterns.executor.resource_locks import ResourceLock, WaitableLock
from interlock.runtime.shielded import shielded_to_completion


class GroupLocks:
    """The locks of a group: each of its agents is a holder of its own, for this execution only."""

    def __init__(
        self, lock: ResourceLock, execution: str, wanted: Mapping[str, Sequence[str]]
    ) -> None:
        self._lock = lock
        self._execution = execution
        """A name that nobody else uses, ever: two executions of one group are two holders."""
        self._wanted = wanted
        """The resources that each task is to hold."""
        self._touched: dict[str, None] = {}
        """Tasks that may hold something, also where an acquisition was cut off half-way."""

    @property
    def holders(self) -> tuple[str, ...]:
        """The tasks that may hold something."""
        return tuple(self._touched)

    def _holder(self, task_id: str) -> str:
        return f"{task_id} of {self._execution}"

    async def take(self, *, wait: bool) -> None:
        """Take everything, or raise; `release` has to follow either way."""
        while True:
            refused = await self._try()
            if refused is None:
                return
            if not wait:
                raise ResourceConflictError(
                    f"{refused!r} is held by {self._lock.holder_of(refused)!r}, so nothing was "
                    "started. Execute the group again when that is over, or give the executor "
                    "on_conflict='wait'"
                )
            # Holding nothing meanwhile: groups that wait for each other would wait for ever.
            await shielded_to_completion(self.release(self.holders))
            assert isinstance(self._lock, WaitableLock), "the executor takes no other"
            await self._lock.wait_until_free(refused)

    async def _try(self) -> str | None:
        """The first resource that could not be had; None when all are held."""
        for task_id, resources in self._wanted.items():
            holder = self._holder(task_id)
            for resource in resources:
                self._touched[task_id] = None
                if not await self._lock.acquire(resource, holder):
                    current = self._lock.holder_of(resource)
                    tell(
                        PARALLEL_LOCK_CONFLICT,
                        resource=resource,
                        holder=holder,
                        current_holder=current,
                    )
                    return resource
                tell(PARALLEL_LOCK_ACQUIRED, resource=resource, holder=holder)
        return None

    async def release(self, task_ids: Sequence[str]) -> None:
        """Give back what these hold. What goes wrong with one does not keep the others."""
        for task_id in task_ids:
            if task_id not in self._touched:
                continue
            holder = self._holder(task_id)
            try:
                count = await self._lock.release_all(holder)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a stranger's lock
                tell(PARALLEL_LOCK_RELEASE_ERROR, caused_by=error, holder=holder)
            else:
                tell(PARALLEL_LOCK_RELEASED, holder=holder, count=count)
            self._touched.pop(task_id, None)
