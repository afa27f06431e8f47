"""The messages between the runtime and the process of a function agent: a call, and its ending.

Both are pickles: a function agent is the user's own code, and as trusted as ours.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from importlib import import_module
from io import BytesIO
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

from interlock.execution.ending import Ending, raised
from interlock.execution.processes.main_script import AGAIN, MainScript
from interlock.execution.processes.process_agent import Process
from interlock.model.outcome import ErrorRecord, State

_MAGIC = b"ilock-1\n"
HEAD = len(_MAGIC) + 8


class NotAFrame(Exception):
    """The bytes are no message of ours: the agent has written into the socket."""


def frame(body: bytes) -> bytes:
    """Return the head of a message; the body has to follow."""
    return _MAGIC + len(body).to_bytes(8, "big")


def length(head: bytes) -> int:
    """Return the length of the body that follows this head."""
    if len(head) != HEAD or not head.startswith(_MAGIC):
        raise NotAFrame
    return int.from_bytes(head[len(_MAGIC) :], "big")


Agent: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function, its arguments, its keyword arguments."""


class FunctionCall(NamedTuple):
    """What a process needs before it can unpickle its agent, and the agent itself."""

    path: list[str]
    argv: list[str]
    script: MainScript | None
    """None if nothing that is sent was defined in the script."""
    agent: bytes

    def unpack(self) -> Agent:
        """Return the function and its arguments; their modules must be importable by now."""
        function, args, kwargs = pickle.loads(self.agent)
        return function, args, kwargs


def pack_call(agent: Agent, script: MainScript | None) -> bytes:
    """Return a call, ready to be sent. Raises what pickling raises."""
    buffer = BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(agent)
    sent = buffer.getvalue()
    needed = script if b"__main__" in sent else None
    return pickle.dumps(tuple(FunctionCall(list(sys.path), list(sys.argv), needed, sent)))


def unpack_call(body: bytes) -> FunctionCall:
    """Return a call that was received."""
    path, argv, script, agent = pickle.loads(body)
    return FunctionCall(path, argv, script, agent)


class _Pickler(pickle.Pickler):
    """Also sends functions that are decorated with `process`: their name leads to a Process."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FunctionType) and obj.__module__ in sys.modules:
            named = _find(obj.__module__, obj.__qualname__)
            if isinstance(named, Process) and named.function is obj:
                return _decorated, (obj.__module__, obj.__qualname__)
        return NotImplemented


def _find(module: str, name: str) -> Any:
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), _module(module))


def _module(name: str) -> Any:
    return sys.modules.get(name) or import_module(name)


def _decorated(module: str, name: str) -> Any:
    named = _find(module, name)
    return named.function if isinstance(named, Process) else named


class _Unpickler(pickle.Unpickler):
    """Maps the name that the script has in the agent's process back to `__main__`."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        return super().find_class("__main__" if module_name == AGAIN else module_name, global_name)


class RemoteTraceback(Exception):
    """The traceback in the agent's process, as the cause of an exception that came from there."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def pack_ending(ending: Ending) -> bytes:
    """Return an ending, ready to be sent; one that cannot be sent becomes a failure."""
    value = exception = None
    if ending.status is State.SUCCEEDED:
        try:
            value = pickle.dumps(ending.value, pickle.HIGHEST_PROTOCOL)
        except BaseException as error:  # noqa: BLE001 - pickling runs code of the user's
            ending = _unsent(type(ending.value), error)
    elif ending.exception is not None:
        try:
            exception = pickle.dumps(ending.exception, pickle.HIGHEST_PROTOCOL)
        except BaseException:  # noqa: BLE001 - the record of the error is sent instead
            exception = None
    wait = ending.retry_after, ending.rate
    return pickle.dumps((ending.status, value, ending.error, exception, *wait))


def unpack_ending(body: bytes) -> Ending:
    """Return an ending that was received."""
    status, value, error, exception, retry_after, rate = pickle.loads(body)
    if status is State.SUCCEEDED:
        try:
            return Ending(status, _loads(value))
        except BaseException as problem:  # noqa: BLE001 - unpickling runs code of the user's
            return _unreadable(problem)
    # Not fatal, even out of memory or stack: that was in a process which has ended.
    return Ending(status, None, error, _exception(exception, error), retry_after, False, rate)


def _loads(body: bytes) -> Any:
    return _Unpickler(BytesIO(body)).load()


def _exception(body: bytes | None, error: ErrorRecord | None) -> BaseException | None:
    if body is None:
        return None
    try:
        exception = _loads(body)
    except BaseException:  # noqa: BLE001 - the exception cannot be unpickled; its record can
        return None
    if not isinstance(exception, BaseException):
        return None
    if error is not None and error.traceback:
        exception.__cause__ = RemoteTraceback(error.traceback)
    return exception


def _unsent(kind: type[Any], problem: BaseException) -> Ending:
    return _not_sent(
        f"the result, a {kind.__qualname__}, cannot be sent from its process: %s. "
        "Return plain data, or the path of a file.",
        problem,
    )


def _unreadable(problem: BaseException) -> Ending:
    return _not_sent("the result of the process cannot be read here: %s", problem)


def _not_sent(text: str, problem: BaseException) -> Ending:
    ending = raised(problem)
    assert ending.error is not None
    message = text % ending.error.message
    error = replace(ending.error, type="ResultNotSent", message=message, retryable=False)
    # A result that is nested too deeply does not endanger our own stack.
    return ending._replace(error=error, fatal=isinstance(problem, MemoryError))
