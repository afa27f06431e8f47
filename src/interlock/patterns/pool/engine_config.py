"""The agents of a pool: what is configured, what an entry says, and how an agent is made."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from interlock.errors import AgentError, BlankId, EngineError, InvalidOption
from interlock.model.stable_names import stable_name
from interlock.runtime.within import within

Entry = Mapping[str, Any]
AgentFactory = Callable[[dict[str, Any]], Any]
"""Called with an entry (`agent_id`, `model`, `system_prompt` and its other keys); returns an agent.
It may be async, or blocking: then it is called in a thread."""


@stable_name("data.engine_config")
@dataclass(frozen=True)
class EngineConfig:
    """The configured agents by id, and the defaults for all agents.

    An agent is configured with `model`, `system_prompt`, `agent` (any agent, used as it is) and
    further keys for the factory. What is left out comes from the defaults.
    """

    default_model: str | None = None
    default_system_prompt: str | None = None
    agents: Mapping[str, Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_texts("the defaults", self.default_model, self.default_system_prompt)
        if not isinstance(self.agents, Mapping):
            raise InvalidOption(f"agents is {self.agents!r}; it maps agent ids to their settings")
        for agent_id, settings in self.agents.items():
            _check_id(agent_id, "an id of a configured agent")
            if not isinstance(settings, Mapping):
                raise InvalidOption(
                    f"agent {agent_id!r} is configured as {settings!r}; it must be a mapping"
                )
            _check_texts(f"agent {agent_id!r}", *map(settings.get, ("model", "system_prompt")))
        kept = {name: MappingProxyType(dict(each)) for name, each in self.agents.items()}
        object.__setattr__(self, "agents", MappingProxyType(kept))

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that the configuration names."""
        named = (self.default_model, *(each.get("model") for each in self.agents.values()))
        return tuple(dict.fromkeys(each for each in named if each is not None))

    def filled(self, entry: Entry) -> dict[str, Any]:
        """A complete entry. What it leaves out comes from the configured agent, then the defaults.

        None counts as left out.
        """
        said = {name: value for name, value in entry.items() if value is not None}
        default = {"model": self.default_model, "system_prompt": self.default_system_prompt}
        return {**default, **self.agents.get(entry["agent_id"], {}), **said}


class AgentMaker:
    """Makes agents from entries."""

    def __init__(self, config: EngineConfig | None, factory: AgentFactory | None) -> None:
        if not isinstance(config, EngineConfig | None):
            raise InvalidOption(f"config is {config!r}; write EngineConfig(default_model=...)")
        if factory is not None and not callable(factory):
            raise InvalidOption(f"agent_factory is {factory!r}; it must be a function of an entry")
        self.config = config or EngineConfig()
        self._factory = factory

    def entry(self, given: Any, where: str) -> dict[str, Any]:
        """A complete entry; raises if no agent can be made from it."""
        if not isinstance(given, Mapping):
            raise InvalidOption(f"{where} is {given!r}; write {{'agent_id': ..., 'model': ...}}")
        _check_id(given.get("agent_id"), f"the agent_id of {where}")
        _check_texts(where, given.get("model"), given.get("system_prompt"))
        entry = self.config.filled(given)
        if "agent" not in entry and self._factory is None:
            raise EngineError(
                f"there is no way to make agent {entry['agent_id']!r}: pass agent_factory=, a "
                "function that takes an entry and returns an agent, or give EngineConfig the agent "
                "itself: "
                f"agents={{{entry['agent_id']!r}: {{'agent': ...}}}}"
            )
        return entry

    def making(self, entry: Entry, made: Callable[[Callable[..., Any]], None]) -> Any:
        """An agent whose task makes the agent of an entry, and calls `made` with how to call it.

        Its argument differs from process to process, so that a resumed run makes the agent again:
        agents are not data, and do not survive their process.
        """
        agent_id: str = entry["agent_id"]
        factory = self._factory

        def take(agent: Any) -> None:
            if inspect.isawaitable(agent):
                if inspect.iscoroutine(agent):
                    agent.close()
                raise EngineError("agent_factory returned a coroutine; make it an async function")
            made(within(agent))

        if "agent" in entry:

            @stable_name("pool.given")
            async def given(process: str) -> None:
                with _naming(agent_id):
                    take(entry["agent"])

            return given
        assert factory is not None
        known = {name: value for name, value in entry.items() if name != "agent"}
        if is_async(factory):

            @stable_name("pool.make")
            async def make(process: str) -> None:
                with _naming(agent_id):
                    take(await factory(dict(known)))

            return make

        @stable_name("pool.make_in_thread")
        def make_in_a_thread(process: str) -> None:
            with _naming(agent_id):
                take(factory(dict(known)))

        return make_in_a_thread


@contextlib.contextmanager
def _naming(agent_id: str) -> Iterator[None]:
    """Turn every failure inside into an AgentError that names the agent."""
    try:
        yield
    except AgentError:
        raise
    except Exception as error:
        raise AgentError(_described(error), agent_id) from error


def _described(error: Exception) -> str:
    kind = type(error).__name__
    try:
        said = str(error)
    except Exception as broken:  # noqa: BLE001 - foreign code
        said = f"<it cannot be printed: {type(broken).__name__}>"
    return f"{kind}: {said}" if said else kind


def is_async(function: Any) -> bool:
    """Whether calling it returns an awaitable."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - to look at it, not whether it is there
    )


def _check_id(agent_id: Any, what: str) -> None:
    if not isinstance(agent_id, str) or not agent_id.strip():
        raise BlankId(f"{what} is {agent_id!r}; it must be non-blank text")


def _check_texts(where: str, *texts: Any) -> None:
    for text in texts:
        if not isinstance(text, str | None):
            raise InvalidOption(f"{where}: {text!r}; a model or system prompt must be text")


def listed(given: Any, what: str) -> list[Any]:
    """The entries that a caller has passed, as a list."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidOption(f"{what} takes a list of entries, not {given!r}")
    return list(given)
