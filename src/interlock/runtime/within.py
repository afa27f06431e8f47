"""Calling an agent inside the attempt of another, so that a system can wrap its agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from interlock.errors import AgentFailed
from interlock.execution.call_spec import BackendKind, call_spec_of
from interlock.model.claim import Mode
from interlock.runtime.context import TaskContext


def within(agent: Any) -> Callable[..., Awaitable[Any]]:
    """A function that calls any agent inside an attempt: `await call(ctx, **kwargs)`.

    An async agent becomes a part of that attempt. Any other becomes a child task, in a thread or a
    process, with the same prompt and session. The child has the exclusive claims of the attempt as
    its own, because a thread goes on when the attempt that waits for it is told to stop. Raises
    NotAnAgent.
    """
    spec = call_spec_of(agent)
    call = spec.call
    if spec.backend is BackendKind.LOOP:
        if spec.wants_context:
            return call

        async def without_context(_ctx: TaskContext, **kwargs: Any) -> Any:
            return await call(**kwargs)

        return without_context

    async def as_child(ctx: TaskContext, **kwargs: Any) -> Any:
        task = ctx.task
        outcome = await ctx.submit(
            agent,
            id=ctx.fresh_id("agent"),
            prompt=ctx.prompt,
            kwargs=kwargs,
            claims=[each for each in task.claims if each.mode is not Mode.USE],
            priority=task.priority,
            labels=task.labels,
        )
        # The caller sees the outcome of the attempt, not that of the child.
        if any(outcome.usage):
            ctx.usage(**outcome.usage._asdict())
        if outcome.succeeded:
            return outcome.result
        raise outcome.exception or AgentFailed(outcome.reason or str(outcome.status))

    return as_child
