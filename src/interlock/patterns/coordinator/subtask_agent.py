"""One attempt at a subtask: make a fresh agent, initialise it, prompt it, clean it up."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from interlock.errors import AgentException, DuplicateId, InvalidOption
from interlock.model.stable_names import stable_name
from interlock.model.task import Task
from interlock.runtime.context import TaskContext
from interlock.runtime.data import copied
from interlock.runtime.handle import Handle
from interlock.runtime.log import LOGGER

AgentFactory = Callable[[], Any]
"""Makes an agent each time it is called; may be async."""

_ATTEMPT = "/attempt "
"""The child task of an attempt is named `SUBTASK/attempt NUMBER`."""
_PLUGIN_METHODS = ("initialize", "send_prompt", "cleanup")
_AGENT_METHODS = ("run", "run_step")
_INITIALIZED_FLAGS = ("is_initialized", "initialized")


class AgentLifecycle:
    """Makes, runs and cleans up the agents of one call.

    An attempt starts where its factory has to run: an async factory on the event loop, any other in
    a thread. If the agent that it makes has to run elsewhere, it does so as a child task with the
    same claims. So whatever happens to the attempt, the claims stay held until the agent has ended.
    """

    def __init__(
        self, factory: AgentFactory, config: Mapping[str, Any], context: Mapping[str, Any]
    ) -> None:
        if not callable(factory):
            raise InvalidOption(f"agent_factory is {factory!r}; it must return an agent")
        self._factory = factory
        self._class_is_async = isinstance(factory, type) and _is_async(factory)
        self._config = config
        self._context = context
        self.agent_ids: dict[tuple[str, int], str] = {}
        """The `agent_id` of agents that have one, by task and attempt."""

    def as_agent(self) -> Callable[[TaskContext], Any]:
        """Return the agent for the Runtime; one for all subtasks of a call."""

        @stable_name("coordinator.attempt_on_loop")
        async def on_the_loop(ctx: TaskContext) -> Any:
            made = self._factory()
            if not isinstance(self._factory, type):
                made = await made
            agent = self._noted(ctx, made)
            if not self._is_async(agent) and any(_methods(agent)):

                @stable_name("coordinator.agent_in_thread")
                def in_its_thread(ctx: TaskContext) -> Any:
                    return self._in_a_thread(ctx, agent)

                return await self._child(ctx, in_its_thread)
            return await self._on_the_loop(ctx, agent)

        @stable_name("coordinator.attempt_in_thread")
        def in_a_thread(ctx: TaskContext) -> Any:
            agent = self._noted(ctx, self._factory())
            if self._is_async(agent):

                @stable_name("coordinator.agent_on_loop")
                async def on_its_loop(ctx: TaskContext) -> Any:
                    return await self._on_the_loop(ctx, agent)

                return self._child(ctx, on_its_loop).wait()
            return self._in_a_thread(ctx, agent)

        return on_the_loop if _is_async_factory(self._factory) else in_a_thread

    def _is_async(self, agent: Any) -> bool:
        # Inspect a class once, not each of its instances.
        return self._class_is_async if type(agent) is self._factory else _is_async(agent)

    def _noted(self, ctx: TaskContext, agent: Any) -> Any:
        if agent is None:
            raise AgentException("agent_factory() returned None instead of an agent")
        name = getattr(agent, "agent_id", None)
        if isinstance(name, str) and name.strip():
            self.agent_ids[ctx.task.id, ctx.attempt] = name
        return agent

    # -- in a thread, on the event loop -----------------------------------------------------

    def _in_a_thread(self, ctx: TaskContext, agent: Any) -> Any:
        try:
            if _wants_initialize(agent):
                agent.initialize(dict(self._config))
            ctx.check_open()  # the attempt may have been cancelled meanwhile
            work = self._work(ctx, agent)
            return self._child(ctx, agent).wait() if work is None else work()
        finally:
            try:
                if callable(cleanup := getattr(agent, "cleanup", None)):
                    cleanup()
            except BaseException:  # noqa: BLE001 - the user's clean-up; the result stands
                _log_cleanup_failure(ctx)

    async def _on_the_loop(self, ctx: TaskContext, agent: Any) -> Any:
        try:
            if _wants_initialize(agent):
                await _await_if_needed(agent.initialize(dict(self._config)))
            work = self._work(ctx, agent)
            if work is None:
                return await self._child(ctx, agent)
            answer = work()
            return await answer if isinstance(answer, Awaitable) else answer
        finally:
            try:
                if callable(cleanup := getattr(agent, "cleanup", None)):
                    await _await_if_needed(cleanup())
            except asyncio.CancelledError:
                raise
            except BaseException:  # noqa: BLE001 - the user's clean-up; the result stands
                _log_cleanup_failure(ctx)

    def _work(self, ctx: TaskContext, agent: Any) -> Callable[[], Any] | None:
        """Return what to call; None for a function, which the Runtime itself knows how to call."""
        if callable(getattr(agent, "send_prompt", None)):
            return partial(agent.send_prompt, ctx.prompt, copied(dict(self._context)))
        if callable(agent) or not (
            found := [each for each in _AGENT_METHODS if hasattr(agent, each)]
        ):
            return None
        return partial(agent.run, ctx) if found[0] == "run" else partial(agent.run_step)

    def _child(self, ctx: TaskContext, agent: Any) -> Handle[Any]:
        """Submit an agent as a child task; its outcome is the outcome of the attempt."""
        name = f"{ctx.task.id}{_ATTEMPT}{ctx.attempt}"
        while True:
            try:
                return ctx.submit(Task(name, agent, prompt=ctx.prompt, claims=ctx.task.claims))
            except DuplicateId:  # a subtask has this name
                name += "'"


def _is_async_factory(factory: AgentFactory) -> bool:
    """Whether a factory is async itself, or a class of async agents."""
    if isinstance(factory, type):
        return _is_async(factory)
    called = factory if inspect.isroutine(factory) else type(factory).__call__
    return inspect.iscoroutinefunction(factory) or inspect.iscoroutinefunction(called)


def _methods(agent: Any) -> Iterator[Any]:
    """Yield the methods of an object that would be called; none for a function."""
    is_function = callable(agent) and not isinstance(agent, type)
    names = _PLUGIN_METHODS if is_function else (*_PLUGIN_METHODS, *_AGENT_METHODS)
    found = (getattr(agent, name, None) for name in names)
    return (each for each in found if callable(each))


def _is_async(agent: Any) -> bool:
    return any(inspect.iscoroutinefunction(each) for each in _methods(agent))


def _wants_initialize(agent: Any) -> bool:
    if not callable(getattr(agent, "initialize", None)):
        return False
    for name in _INITIALIZED_FLAGS:
        flag = getattr(agent, name, False)
        # By identity: mocks have every attribute.
        if (flag() if inspect.isroutine(flag) else flag) is True:
            return False
    return True


async def _await_if_needed(value: Any) -> Any:
    return await value if isinstance(value, Awaitable) else value


def _log_cleanup_failure(ctx: TaskContext) -> None:
    LOGGER.exception("cleanup_failed", extra={"interlock": {"task": ctx.task.id}})
