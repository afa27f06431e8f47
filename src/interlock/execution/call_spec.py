"""How an agent is called, found out once per agent by inspecting it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from interlock.errors import NotAnAgent
from interlock.execution.processes.process_agent import Process
from interlock.model.command import Command


class BackendKind(Enum):
    """Which backend runs an agent."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"
    COMMAND = "command"


class CallSpec(NamedTuple):
    """How to call an agent: `call(ctx, *args)` if it takes its context, else `call(*args)`."""

    call: Callable[..., Any]
    backend: BackendKind
    wants_context: bool
    signature: inspect.Signature | None
    """None where Python does not tell, as for many built-in functions."""

    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise NotAnAgent if the agent cannot be called with these arguments."""
        if self.signature is None or not (args or kwargs or self.signature.parameters):
            return
        given = (None, *args) if self.wants_context else args
        try:
            self.signature.bind(*given, **kwargs)
        except TypeError as error:
            if self.backend is BackendKind.COMMAND:
                raise NotAnAgent("a command has a prompt, and no arguments") from None
            raise NotAnAgent(f"{name_of(self.call)} cannot be called like that: {error}") from None


def call_spec_of(agent: Any) -> CallSpec:
    """Return how to call this agent; raise NotAnAgent for what is none."""
    if type(agent) is not FunctionType:
        return _call_spec(agent)
    shape = _SHAPES.get(agent)
    if shape is None:
        shape = _SHAPES[agent] = _call_spec(agent)[1:]
    return CallSpec(agent, *shape)


def name_of(agent: Any) -> str:
    """Return the name of an agent for ids and messages."""
    if isinstance(agent, functools.partial):
        return name_of(agent.func)
    if isinstance(agent, Process):
        return name_of(agent.function)
    if isinstance(agent, Command):
        return agent.name
    name = getattr(agent, "__name__", None) or type(agent).__name__
    return "task" if name == "<lambda>" else str(name)


_SHAPES: WeakKeyDictionary[FunctionType, tuple[BackendKind, bool, inspect.Signature | None]]
_SHAPES = WeakKeyDictionary()
"""What was found out about functions. Only functions: two objects may be equal and yet be called
differently. Without the function itself, which would keep alive whatever it closes over."""


def _call_spec(agent: Any) -> CallSpec:
    if isinstance(agent, Process):
        return CallSpec(agent.function, BackendKind.PROCESS, False, _signature(agent.function))
    if isinstance(agent, Command):
        call = functools.partial(_no_program, agent.name)
        return CallSpec(call, BackendKind.COMMAND, False, inspect.Signature())
    if isinstance(agent, type) and (hasattr(agent, "run") or hasattr(agent, "run_step")):
        raise NotAnAgent(f"{agent.__name__} is a class; submit an instance of it")
    if callable(agent):
        return _callable(agent)
    for method in ("run", "run_step"):
        found = getattr(agent, method, None)
        if callable(found):
            return _callable(found)._replace(wants_context=method == "run")
    raise NotAnAgent(
        f"{agent!r} is no agent: submit a function, or an object with run(ctx) or run_step()"
    )


def _no_program(name: str) -> None:
    """Stands in for a program in a backend that only knows functions, as that of a simulation."""
    raise NotImplementedError(f"the program {name!r} cannot be run here: give it a function")


def _callable(agent: Callable[..., Any]) -> CallSpec:
    inner: Any = agent
    while isinstance(inner, functools.partial):
        inner = inner.func
    if not inspect.isroutine(inner) and not isinstance(inner, type):
        inner = type(inner).__call__
    if inspect.isasyncgenfunction(inner) or inspect.isgeneratorfunction(inner):
        raise NotAnAgent(
            f"{name_of(agent)} is a generator; an agent returns its result, and reports its "
            "progress with ctx.report()"
        )
    signature = _signature(agent)
    backend = BackendKind.LOOP if inspect.iscoroutinefunction(inner) else BackendKind.THREAD
    return CallSpec(agent, backend, _wants_context(signature), signature)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def _wants_context(signature: inspect.Signature | None) -> bool:
    if signature is None or not signature.parameters:
        return False
    first = next(iter(signature.parameters.values()))
    if first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        return False
    # By name: the annotation may be text, and this room may not import the class.
    annotation = first.annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return first.name == "ctx" or named.rpartition(".")[2] == "TaskContext"
