"""What `AgentPool` and `SessionManager` share: their options, their engine, and how they end."""

from __future__ import annotations

import os
from typing import Any, Self

from interlock.model.duration import Duration, seconds
from interlock.model.limits import Breaker
from interlock.patterns.pool.agent_engine import AgentEngine
from interlock.patterns.pool.engine_config import AgentFactory, EngineConfig
from interlock.patterns.pool.pooled_agent import PooledAgent
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime


class EngineUser:
    """Can be used as it is, from the first call until `shutdown()`; `async with` shuts it down.

    `journal`, `resume`, `workspace` and `grace` are those of Runtime. Every model has a `breaker`:
    after several failures in a row that mean an outage, no agent of the model is spawned for a
    while.
    """

    def __init__(
        self,
        config: EngineConfig | None = None,
        *,
        max_concurrent: int = 5,
        agent_factory: AgentFactory | None = None,
        journal: str | os.PathLike[str] | None = None,
        resume: bool | str | None = None,
        workspace: str | os.PathLike[str] = ".",
        grace: Duration = 30.0,
        breaker: Breaker | None = None,
        ports: Ports | None = None,
    ) -> None:
        self.engine = AgentEngine(
            config,
            agent_factory,
            max_concurrent,
            breaker=breaker,
            resume=resume,
            ports=ports,
            journal=journal,
            workspace=workspace,
            grace=grace,
        )
        """For other systems that use these agents."""
        self._max_concurrent = max_concurrent
        self._agents: dict[str, PooledAgent] = {}
        self._is_shut_down = False

    @property
    def runtime(self) -> Runtime:
        """The Runtime, from the first call until the shutdown.

        Spawning agent `a` of a pool is the task `spawn a` there, and its messages are `a#1`,
        `a#2`, ...; those of a session are `session#1`. In an id, `#` and `~` are doubled.
        """
        return self.engine.runtime

    async def shutdown(self, timeout: Duration = 30.0) -> list[str]:
        """Cancel running work and end; returns the agents that did not stop. Idempotent.

        All agents share one `timeout`.
        """
        return await self._end(seconds(timeout, "timeout"), cancel=True)

    async def __aenter__(self) -> Self:
        await self.engine.open()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self._end(None, cancel=error is not None)

    async def _end(self, timeout: float | None, *, cancel: bool) -> list[str]:
        self._is_shut_down = True
        return await self.engine.close(timeout, cancel=cancel)
