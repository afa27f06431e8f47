"""One attempt at a subtask: a fresh agent is made, initialised, asked, and always cleaned up."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from interlock.errors import AgentException, DuplicateId, InvalidOption
from interlock.model.task import Task
from interlock.runtime.context import TaskContext
from interlock.runtime.data import copied
from interlock.runtime.handle import Handle
from interlock.runtime.log import LOGGER

AgentFactory = Callable[[], Any]
"""Makes an agent each time it is called; may be async."""

ATTEMPT = "/attempt "
"""Between the id of a subtask and the number of an attempt: who works for it."""
_OWN = ("initialize", "send_prompt", "cleanup")
_WORK = ("run", "run_step")
_FLAGS = ("is_initialized", "initialized")


class AgentLifecycle:
    """How the agents of one call live.

    An attempt begins where the factory belongs: an async one on the event loop, any other in a
    thread. If the agent that it makes belongs elsewhere, it works there as a child of the attempt,
    with the same claims: whatever becomes of the attempt, they stay held until the agent has ended.
    """

    def __init__(
        self, factory: AgentFactory, config: Mapping[str, Any], context: Mapping[str, Any]
    ) -> None:
        if not callable(factory):
            raise InvalidOption(f"agent_factory is {factory!r}; it is called to make an agent")
        self._factory = factory
        self._of_class = isinstance(factory, type) and _is_async(factory)
        self._config = config
        self._context = context
        self.agents: dict[tuple[str, int], str] = {}
        """What agents call themselves, by task and attempt."""

    def attempts(self) -> Callable[[TaskContext], Any]:
        """The agent for the Runtime; one for all subtasks of a call."""

        async def on_the_loop(ctx: TaskContext) -> Any:
            made = self._factory()
            if not isinstance(self._factory, type):
                made = await made
            agent = self._known(ctx, made)
            if not self._is_async(agent) and any(_methods(agent)):
                return await self._child(ctx, lambda ctx: self._in_a_thread(ctx, agent))
            return await self._on_the_loop(ctx, agent)

        def in_a_thread(ctx: TaskContext) -> Any:
            agent = self._known(ctx, self._factory())
            if self._is_async(agent):

                async def lives(ctx: TaskContext) -> Any:
                    return await self._on_the_loop(ctx, agent)

                return self._child(ctx, lives).wait()
            return self._in_a_thread(ctx, agent)

        return on_the_loop if _makes_async(self._factory) else in_a_thread

    def _is_async(self, agent: Any) -> bool:
        # What is known of a class need not be found out again of each of its objects.
        return self._of_class if type(agent) is self._factory else _is_async(agent)

    def _known(self, ctx: TaskContext, agent: Any) -> Any:
        if agent is None:
            raise AgentException("agent_factory() returned None instead of an agent")
        name = getattr(agent, "agent_id", None)
        if isinstance(name, str) and name.strip():
            self.agents[ctx.task.id, ctx.attempt] = name
        return agent

    # -- the two ways to live ---------------------------------------------------------------

    def _in_a_thread(self, ctx: TaskContext, agent: Any) -> Any:
        try:
            if _wants_initialize(agent):
                agent.initialize(dict(self._config))
            ctx.check_open()  # it may have been told to stop meanwhile
            work = self._work(ctx, agent)
            return self._child(ctx, agent).wait() if work is None else work()
        finally:
            try:
                if callable(cleanup := getattr(agent, "cleanup", None)):
                    cleanup()
            except BaseException:  # noqa: BLE001 - a stranger's clean-up; what was done stands
                _not_cleaned_up(ctx)

    async def _on_the_loop(self, ctx: TaskContext, agent: Any) -> Any:
        try:
            if _wants_initialize(agent):
                await _waited(agent.initialize(dict(self._config)))
            work = self._work(ctx, agent)
            if work is None:
                return await self._child(ctx, agent)
            answer = work()
            return await answer if isinstance(answer, Awaitable) else answer
        finally:
            try:
                if callable(cleanup := getattr(agent, "cleanup", None)):
                    await _waited(cleanup())
            except asyncio.CancelledError:
                raise
            except BaseException:  # noqa: BLE001 - a stranger's clean-up; what was done stands
                _not_cleaned_up(ctx)

    def _work(self, ctx: TaskContext, agent: Any) -> Callable[[], Any] | None:
        """What to call; None for a function, which knows best how and where it is called."""
        if callable(getattr(agent, "send_prompt", None)):
            return partial(agent.send_prompt, ctx.prompt, copied(dict(self._context)))
        if callable(agent) or not (found := [each for each in _WORK if hasattr(agent, each)]):
            return None
        return partial(agent.run, ctx) if found[0] == "run" else partial(agent.run_step)

    def _child(self, ctx: TaskContext, agent: Any) -> Handle[Any]:
        """Have somebody work for this attempt; what becomes of it becomes of the attempt."""
        name = f"{ctx.task.id}{ATTEMPT}{ctx.attempt}"
        while True:
            try:
                return ctx.submit(Task(name, agent, prompt=ctx.prompt, claims=ctx.task.claims))
            except DuplicateId:  # there is a subtask that is called like this
                name += "'"


def _makes_async(factory: AgentFactory) -> bool:
    """Whether it is async itself, or the class of async agents."""
    if isinstance(factory, type):
        return _is_async(factory)
    called = factory if inspect.isroutine(factory) else type(factory).__call__
    return inspect.iscoroutinefunction(factory) or inspect.iscoroutinefunction(called)


def _methods(agent: Any) -> Iterator[Any]:
    """What would be called of an object; nothing of a function."""
    names = _OWN if callable(agent) and not isinstance(agent, type) else (*_OWN, *_WORK)
    found = (getattr(agent, name, None) for name in names)
    return (each for each in found if callable(each))


def _is_async(agent: Any) -> bool:
    return any(inspect.iscoroutinefunction(each) for each in _methods(agent))


def _wants_initialize(agent: Any) -> bool:
    if not callable(getattr(agent, "initialize", None)):
        return False
    for name in _FLAGS:
        flag = getattr(agent, name, False)
        # By identity: there are objects that have every attribute one asks for.
        if (flag() if inspect.isroutine(flag) else flag) is True:
            return False
    return True


async def _waited(value: Any) -> Any:
    return await value if isinstance(value, Awaitable) else value


def _not_cleaned_up(ctx: TaskContext) -> None:
    LOGGER.exception("cleanup_failed", extra={"interlock": {"task": ctx.task.id}})
