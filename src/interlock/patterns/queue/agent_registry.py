"""Agents by name: how one is made, and that there is only one of it at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from interlock.errors import AgentAlreadyRunningError, AgentError, InvalidOption
from interlock.patterns.queue.lease import Lease, LeaseHolder

Factory = Callable[[], Any]
"""Makes an agent: a function, or an object with `run(ctx)`."""


class Registration:
    """A name that this process has to itself until `release()`, or until it is gone."""

    def __init__(self, name: str, lease: Lease) -> None:
        self.name = name
        self._lease = lease

    def release(self) -> None:
        """Let others have the name. Doing it twice is fine."""
        self._lease.give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class AgentRegistry:
    """The agents of this program, by name.

    `configure` says how an agent is made, `get` hands that out. `register` makes sure that there
    is one of a name at a time, in all processes that work on a workspace.
    """

    _factories: dict[str, Factory] = {}  # noqa: RUF012 - it is the registry of the process

    @classmethod
    def configure(cls, name: str, factory: Factory) -> None:
        """Say how the agents of a name are made; a later factory takes the place of an earlier."""
        if not callable(factory):
            raise InvalidOption(f"{_named(name)}: {factory!r} cannot be called to make an agent")
        cls._factories[_named(name)] = factory

    @classmethod
    def get(cls, name: str) -> Factory:
        """The factory of a configured agent; AgentError for one that nobody has configured."""
        found = cls._factories.get(name)
        if found is None:
            close = get_close_matches(str(name), cls._factories, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise AgentError(
                f"no agent is configured as {name!r}{meant} "
                f"Write AgentRegistry.configure({name!r}, factory)",
                str(name),
            )
        return found

    @classmethod
    def register(cls, name: str, *, workspace: str | os.PathLike[str] = ".") -> Registration:
        """Have a name to yourself: `with AgentRegistry.register("architect"): ...`.

        AgentAlreadyRunningError says which process has it, and since when. Also in this process a
        name is given out once.
        """
        lease = _lease(name, workspace)
        holder = lease.take()
        if holder is not None:
            raise AgentAlreadyRunningError(name, holder.pid, holder.host, holder.since)
        return Registration(name, lease)

    @classmethod
    def holder(cls, name: str, *, workspace: str | os.PathLike[str] = ".") -> LeaseHolder | None:
        """Who has registered a name, if anybody has that is still alive."""
        return _lease(name, workspace).holder()


def _lease(name: str, workspace: str | os.PathLike[str]) -> Lease:
    folder = Path(workspace).resolve() / ".interlock" / "agents"
    return Lease(folder / f"{quote(_named(name), safe='')}.json")


def _named(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InvalidOption(f"an agent needs a name that is not blank, not {name!r}")
    return name.strip()
