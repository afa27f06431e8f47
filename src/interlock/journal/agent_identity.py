"""The identity of an agent, the same in every process: its name and its settings.

Two agents of one name that would do different work must not be mistaken for each other when a run
is resumed. So the settings of an agent count: the arguments of a partial, the fields of a
dataclass, defaults, the variables of a closure, the object of a bound method.

State that changes while an agent works must not count, or the agent would be another one after a
restart. So only constants are taken from closures and from objects of unknown shape, and each agent
is examined once, when this process first sees it. Of objects of unknown shape, texts count and
numbers do not: those are often counters, process ids or file descriptors. A dataclass declares its
fields, so all of them count.

The name of a user's agent is Python's: module and qualified name. Renaming it makes it another
agent. Interlock's own agents, which its systems submit around those of the user, have stable names
instead (`model/stable_names.py`): they can be renamed and moved. Their settings are like any
other's. So they take no constants, functions or partials from outside, or keep the names of those
variables.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import weakref
from enum import Enum
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from interlock.journal.schema.names import RECORDS
from interlock.journal.schema.user_types import name_of
from interlock.model.command import Command
from interlock.model.stable_names import STABLE_NAMES, stable_name_of

if TYPE_CHECKING:
    from interlock.journal.schema.encoding import Walk

NOT_STORED = RECORDS["not_stored"].tag
_WRAPPED = 20
"""How many wrappers around an agent are opened, and how deep objects are examined."""
_CONSTANTS = (str, int, bytes, type(None), PurePath, Enum)
"""Floats are left out: most of them are times, which differ after a restart."""

_seen: dict[int, tuple[weakref.ref[Any], Any]] = {}
"""The settings of agents when they were first seen, by `id()`: not every agent has a hash."""


def agent_name(agent: Any) -> str:
    """The name of an agent: `module:qualified name`, a stable name, or that of a command."""
    if type(agent) is FunctionType:
        return name_of(agent)
    for _ in range(_WRAPPED):
        inner = _wrapped(agent)
        if inner is None:
            break
        agent = inner
    if agent is None or isinstance(agent, str):
        return agent or ""
    if isinstance(agent, Command):
        return agent.name
    return name_of(agent if inspect.isroutine(agent) or isinstance(agent, type) else type(agent))


def _wrapped(agent: Any) -> Any:
    """What a partial or an agent for a process calls; None for anything else.

    By type and not by attribute: a mock, for example, has every attribute.
    """
    kind = type(agent)
    if kind is FunctionType:  # most agents are one
        return None
    if issubclass(kind, functools.partial):
        return agent.func
    if stable_name_of(kind) == STABLE_NAMES["process"]:
        return agent.function
    return None


def settings(walk: Walk, agent: Any) -> Any:
    """What makes an agent besides its name, as a tree; None for a plain function or a class."""
    return _made_of(walk, agent, _WRAPPED)


def _made_of(walk: Walk, agent: Any, deeper: int) -> Any:
    if agent is None or isinstance(agent, type | str) or not deeper:
        return None
    if type(agent) is FunctionType and not (
        agent.__defaults__ or agent.__kwdefaults__ or agent.__closure__
    ):
        return None
    if type(agent) is MethodType:  # a new object at each access
        return [_made_of(walk, agent.__self__, deeper - 1), _made_of(walk, agent.__func__, deeper)]
    known = _seen.get(id(agent))
    if known is not None and known[0]() is agent:
        return known[1]
    made = _looked_at(walk, agent, deeper)
    with contextlib.suppress(TypeError):  # of some kinds there are no weak references
        _seen[id(agent)] = (weakref.ref(agent, _forget(id(agent))), made)
    return made


def _forget(name: int) -> Any:
    def gone(dead: weakref.ref[Any]) -> None:
        if name in _seen and _seen[name][0] is dead:
            del _seen[name]

    return gone


def _looked_at(walk: Walk, agent: Any, deeper: int) -> Any:
    if isinstance(agent, FunctionType):
        return _of_function(walk, agent, deeper)
    if issubclass(type(agent), functools.partial):
        inner = _made_of(walk, agent.func, deeper - 1)
        return walk.tree([agent.args, sorted(agent.keywords.items()), inner])
    inner = _wrapped(agent)
    if inner is not None:
        return _made_of(walk, inner, deeper - 1)
    if inspect.isroutine(agent):
        return None
    whole = walk.tree(agent)
    if not (isinstance(whole, dict) and whole.get("$") == NOT_STORED):
        return whole
    try:
        own = object.__getattribute__(agent, "__dict__")
    except AttributeError:
        own = {}
    named = {name: value for name, value in own.items() if not isinstance(value, int)}
    return [name_of(type(agent)), _parts(walk, named, deeper)]


def _of_function(walk: Walk, agent: FunctionType, deeper: int) -> Any:
    cells = zip(agent.__code__.co_freevars, agent.__closure__ or (), strict=True)
    outside = {
        name: cell.cell_contents
        for name, cell in cells
        if name not in _assigned(agent.__code__) and _is_set(cell)
    }
    return [
        [_part(walk, each, deeper) for each in agent.__defaults__ or ()],
        _parts(walk, agent.__kwdefaults__ or {}, deeper),
        _parts(walk, outside, deeper),
    ]


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - to look at an empty one raises
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=1024)
def _assigned(code: CodeType) -> frozenset[str]:
    """The closure variables that a function assigns: they are its state, not its settings."""
    return frozenset(
        each.argval for each in dis.get_instructions(code) if each.opname == "STORE_DEREF"
    )


def _parts(walk: Walk, named: dict[str, Any], deeper: int) -> Any:
    parts = {name: _part(walk, value, deeper) for name, value in list(named.items())}
    return sorted(([str(name), part] for name, part in parts.items() if part is not None), key=repr)


def _part(walk: Walk, value: Any, deeper: int) -> Any:
    """What a part contributes to the identity; None if it may change, or contributes nothing."""
    kind = type(value)
    if kind is tuple or kind is frozenset:
        parts = [_part(walk, each, deeper) for each in value]
        return sorted(parts, key=repr) if kind is frozenset else parts
    if issubclass(kind, _CONSTANTS):
        return [walk.tree(value)]
    if kind is FunctionType or kind is MethodType or issubclass(kind, functools.partial):
        return [agent_name(value), _made_of(walk, value, deeper - 1)]
    return None
