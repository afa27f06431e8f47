"""The configuration of a coordinator, validated once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Literal, cast

from interlock.errors import InvalidOption
from interlock.model.duration import seconds
from interlock.model.limits import Retry

Strategy = Literal["parallel_groups", "file_based"]

DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "max_parallel_agents": 5,
        "agent_timeout_seconds": 600,
        "retry_failed_agents": True,
        "max_retries": 2,
        "parallelization_strategy": "parallel_groups",
        "deadline_seconds": None,
        "retry_backoff_seconds": 1.0,
        "retry_max_backoff_seconds": 60.0,
        "complexity_threshold": 50,
    }
)
"""The last one is used by the Orchestrator."""
_SECTIONS = ("parallel_execution", "agent")


@dataclass(frozen=True)
class Settings:
    """The configuration in terms of the Runtime."""

    agent_config: Mapping[str, Any]
    """For `initialize(config)` of the agents: the section `agent`, or the whole configuration."""
    max_parallel: int
    timeout: float | None
    retry: Retry
    strategy: Strategy
    deadline: float | None
    threshold: float


def parse_settings(config: Mapping[str, Any] | None) -> Settings:
    """Validate a configuration; InvalidOption names the invalid entry.

    Other entries are allowed, for agents; a name that is close to one of ours is a typing error. It
    may have sections: ours are in `parallel_execution` then, and those for agents in `agent`.
    """
    if not isinstance(config, Mapping | None):
        raise InvalidOption(f"config is {config!r}; it must be a dict such as {dict(DEFAULTS)!r}")
    own = {name: value for name, value in (config or {}).items() if name not in _SECTIONS}
    own |= _section(config, "parallel_execution") or {}
    for name in own:
        close = get_close_matches(str(name), DEFAULTS, n=1, cutoff=0.85)
        if name not in DEFAULTS and close:
            raise InvalidOption(f"config has {name!r}; did you mean {close[0]!r}?")
    chosen = {**DEFAULTS, **own}
    agent_config = _section(config, "agent")
    if not isinstance(chosen["retry_failed_agents"], bool):
        raise _invalid(chosen, "retry_failed_agents", "True or False")
    if chosen["parallelization_strategy"] not in ("parallel_groups", "file_based"):
        raise _invalid(chosen, "parallelization_strategy", "'parallel_groups' or 'file_based'")
    attempts = 1 + whole_number(chosen, "max_retries", 0)
    backoff = _duration(chosen, "retry_backoff_seconds")
    max_backoff = _duration(chosen, "retry_max_backoff_seconds")
    threshold = chosen["complexity_threshold"]
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise _invalid(chosen, "complexity_threshold", "a number")
    return Settings(
        agent_config=MappingProxyType(chosen if agent_config is None else dict(agent_config)),
        max_parallel=whole_number(chosen, "max_parallel_agents", 1),
        timeout=_optional_duration(chosen, "agent_timeout_seconds"),
        retry=Retry(attempts if chosen["retry_failed_agents"] else 1, backoff, max_backoff),
        strategy=cast(Strategy, chosen["parallelization_strategy"]),
        deadline=_optional_duration(chosen, "deadline_seconds"),
        threshold=threshold,
    )


def _section(config: Mapping[str, Any] | None, name: str) -> Mapping[str, Any] | None:
    """Return a section of a configuration; None if there is none."""
    section = (config or {}).get(name)
    if not isinstance(section, Mapping | None):
        raise InvalidOption(f"config[{name!r}] is {section!r}; it must be a dict")
    return section


def whole_number(chosen: Mapping[str, Any], name: str, least: int) -> int:
    """Return an entry that has to be a whole number, `least` or more."""
    value = chosen[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _invalid(chosen, name, f"a whole number, {least} or more")
    return value


def _duration(chosen: Mapping[str, Any], name: str) -> float:
    return seconds(chosen[name], f"config[{name!r}]")


def _optional_duration(chosen: Mapping[str, Any], name: str) -> float | None:
    if chosen[name] is None:
        return None
    duration = _duration(chosen, name)
    if not duration:
        raise _invalid(chosen, name, "more than 0 seconds, or None")
    return duration


def _invalid(chosen: Mapping[str, Any], name: str, allowed: str) -> InvalidOption:
    return InvalidOption(f"config[{name!r}] is {chosen[name]!r}; it must be {allowed}")
