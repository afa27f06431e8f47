"""`AgentRegistry`: make agents by name, and let one process at a time hold a name."""

from __future__ import annotations

import os
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from interlock.errors import AgentAlreadyRunningError, AgentError, InvalidOption
from interlock.system.lease import Lease, LeaseHolder

Factory = Callable[[], Any]
"""Makes an agent: a function, or an object with `run(ctx)`."""


class Registration:
    """A name that this process holds until `release()`, or until it ends."""

    def __init__(self, name: str, lease: Lease) -> None:
        self.name = name
        self._lease = lease

    def release(self) -> None:
        """Release the name. Idempotent."""
        self._lease.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class AgentRegistry:
    """The agents of this program, by name.

    `configure` sets the factory of an agent, `get` returns it. `register` holds a name exclusively
    among all processes that work on a workspace.
    """

    _factories: dict[str, Factory] = {}  # noqa: RUF012 - it is the registry of the process

    @classmethod
    def configure(cls, name: str, factory: Factory) -> None:
        """Set the factory for a name; it replaces an earlier one."""
        if not callable(factory):
            raise InvalidOption(f"{_check_name(name)}: {factory!r} is not callable as a factory")
        cls._factories[_check_name(name)] = factory

    @classmethod
    def get(cls, name: str) -> Factory:
        """Return the factory of a configured agent; AgentError for an unknown name."""
        found = cls._factories.get(name)
        if found is None:
            close = get_close_matches(str(name), cls._factories, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise AgentError(
                f"no agent is configured as {name!r}{hint} "
                f"Call AgentRegistry.configure({name!r}, factory) first",
                str(name),
            )
        return found

    @classmethod
    def register(cls, name: str, *, workspace: str | os.PathLike[str] = ".") -> Registration:
        """Hold a name exclusively: `with AgentRegistry.register("architect"): ...`.

        AgentAlreadyRunningError names the process that holds it, and since when. Within one
        process, too, a name can be registered once.
        """
        lease = _lease(name, workspace)
        holder = lease.acquire()
        if holder is not None:
            raise AgentAlreadyRunningError(name, holder.pid, holder.host, holder.since)
        return Registration(name, lease)

    @classmethod
    def holder(cls, name: str, *, workspace: str | os.PathLike[str] = ".") -> LeaseHolder | None:
        """Return the living process that has registered a name, or None."""
        return _lease(name, workspace).holder()


def _lease(name: str, workspace: str | os.PathLike[str]) -> Lease:
    folder = Path(workspace).resolve() / ".interlock" / "agents"
    return Lease(folder / f"{quote(_check_name(name), safe='')}.json")


def _check_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InvalidOption(f"the name of an agent must be text that is not blank, not {name!r}")
    return name.strip()
