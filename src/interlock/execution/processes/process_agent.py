"""`interlock.process(fn)`: an agent that runs in a process of its own, which can be killed."""

from __future__ import annotations

import functools
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Generic, TypeVar

from interlock.errors import NotAnAgent
from interlock.execution.processes import main_script
from interlock.model.stable_names import stable_name

T = TypeVar("T")

_INSTEAD = "Give interlock.process() a function that is defined at the top of a module."


@stable_name("process")
@dataclass(frozen=True, slots=True)
class Process(Generic[T]):
    """A function that a Runtime runs in a process of its own. Made by `interlock.process()`.

    Called directly, it runs the function in this process: useful in its tests.
    """

    function: Callable[..., T]

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        return self.function(*args, **kwargs)


def process(fn: Callable[..., T]) -> Process[T]:
    """Let a function, plain or async, run in a process of its own; also as a decorator.

    The function, its arguments and what it returns are sent by pickle. It has no TaskContext. When
    it is cancelled, `asyncio.CancelledError` is raised in it; after the grace it is killed, with
    all processes that it has started. What it leaves running is killed when it ends.
    """
    if isinstance(fn, Process):
        return fn
    if not (inspect.isroutine(fn) or isinstance(fn, functools.partial)):
        raise NotAnAgent(f"{fn!r} is no function. {_INSTEAD}")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise NotAnAgent(f"{_name(fn)} is a generator; an agent returns its result")
    _check_name(fn)
    _check_parameters(fn)
    if not isinstance(fn, FunctionType):
        # A plain function cannot be tried yet: inside a decorator, its name is not bound.
        try:
            pickle.dumps(fn)
        except Exception as error:  # pickling may run code of the user's
            raise NotAnAgent(
                f"{_name(fn)} cannot be sent to a process: {error}. {_INSTEAD}"
            ) from error
    return Process(fn)


def _check_name(fn: Callable[..., Any]) -> None:
    """Refuse what another process could not find by its module and name."""
    inner = _innermost(fn)
    if inner.__name__ == "<lambda>":
        raise NotAnAgent(f"a lambda cannot be sent to a process. {_INSTEAD}")
    if "<locals>" in inner.__qualname__:
        raise NotAnAgent(
            f"{inner.__qualname__} is defined inside a function, where no other process can find "
            f"it. {_INSTEAD}"
        )
    if inner.__module__ == "__main__" and main_script.find() is None:
        raise NotAnAgent(
            f"{inner.__qualname__} was typed in or comes from a notebook: there is no file from "
            f"which another process could import it. Move it to a module and import it from there."
        )


def _check_parameters(fn: Callable[..., Any]) -> None:
    try:
        first = next(iter(inspect.signature(fn).parameters.values()), None)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return
    if first is None:
        return
    annotation = getattr(first.annotation, "__name__", first.annotation)
    if first.name == "ctx" or str(annotation).rpartition(".")[2] == "TaskContext":
        raise NotAnAgent(
            f"{_name(fn)} takes a TaskContext, and a process has none. Pass it what it needs as "
            "arguments, or submit the function without interlock.process()."
        )


def _innermost(fn: Any) -> Any:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__func__", fn)


def _name(fn: Any) -> str:
    return str(getattr(_innermost(fn), "__qualname__", fn))
