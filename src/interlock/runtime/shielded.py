"""Work that has to be completed even if the task that waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def shielded_to_completion(work: Coroutine[Any, Any, None]) -> None:
    """Run work to its end even if the caller is cancelled, which is raised afterwards."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
