"""The locks of one execution: acquired before anything runs, released whatever happens.

The tasks of a group also claim their resources in the kernel, which keeps agents apart, records
the claims in the journal and explains waiting. The lock does what a claim cannot: it refuses a
group at once instead of letting it wait, for all of its tasks, also for those that wait for
`max_concurrency`; and a lock brought by the user may span processes and machines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from interlock.errors import ResourceConflictError
from interlock.patterns.executor.events import (
    PARALLEL_LOCK_ACQUIRED,
    PARALLEL_LOCK_CONFLICT,
    PARALLEL_LOCK_RELEASE_ERROR,
    PARALLEL_LOCK_RELEASED,
    log_event,
)
from interlock.patterns.executor.resource_locks import ResourceLock, WaitableLock
from interlock.runtime.shielded import shielded_to_completion


class GroupLocks:
    """The locks of a group. Each task is a holder of its own, in this execution only."""

    def __init__(
        self,
        lock: ResourceLock,
        run: str,
        resources: Mapping[str, Sequence[str]],
        ids: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._lock = lock
        self._run = run
        """Unique, so that two executions of one group are two holders."""
        self._resources = resources
        """The resources that each task needs."""
        self._ids = ids
        """The group, agent and task id of each task, for events."""
        self._touched: dict[str, None] = {}
        """Tasks that may hold something, including those whose acquisition was interrupted."""

    @property
    def holders(self) -> tuple[str, ...]:
        """The tasks that may hold something."""
        return tuple(self._touched)

    def _holder(self, task_id: str) -> str:
        return f"{task_id} of {self._run}"

    async def acquire(self, *, wait: bool) -> None:
        """Acquire everything or raise. `release` has to follow in either case."""
        while True:
            refused = await self._try_acquire()
            if refused is None:
                return
            if not wait:
                raise ResourceConflictError(
                    f"{refused!r} is held by {self._lock.holder_of(refused)!r}, so nothing was "
                    "started. Execute the group again once it is released, or create the executor "
                    "with on_conflict='wait'"
                )
            # Hold nothing while waiting: two groups that hold a part each would deadlock.
            await shielded_to_completion(self.release(self.holders))
            assert isinstance(self._lock, WaitableLock), "the executor accepts no other lock"
            await self._lock.wait_until_free(refused)

    async def _try_acquire(self) -> str | None:
        """Return the first resource that is not available; None when all are held."""
        for task_id, resources in self._resources.items():
            holder = self._holder(task_id)
            for resource in resources:
                self._touched[task_id] = None
                if not await self._lock.acquire(resource, holder):
                    current = self._lock.holder_of(resource)
                    log_event(
                        PARALLEL_LOCK_CONFLICT,
                        resource=resource,
                        holder=holder,
                        current_holder=current,
                        **self._ids[task_id],
                    )
                    return resource
                log_event(
                    PARALLEL_LOCK_ACQUIRED, resource=resource, holder=holder, **self._ids[task_id]
                )
        return None

    async def release(self, task_ids: Sequence[str]) -> None:
        """Release what these tasks hold. A failed release does not keep the others."""
        for task_id in task_ids:
            if task_id not in self._touched:
                continue
            holder, ids = self._holder(task_id), self._ids[task_id]
            try:
                count = await self._lock.release_all(holder)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the user's lock
                log_event(PARALLEL_LOCK_RELEASE_ERROR, caused_by=error, holder=holder, **ids)
            else:
                log_event(PARALLEL_LOCK_RELEASED, holder=holder, count=count, **ids)
            self._touched.pop(task_id, None)
