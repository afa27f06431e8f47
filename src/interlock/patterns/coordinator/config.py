"""The configuration of a coordinator, checked once."""

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
"""The last one is the Orchestrator's."""


@dataclass(frozen=True)
class Settings:
    """What the configuration says, in the terms of the Runtime."""

    given: Mapping[str, Any]
    """All of it, for `initialize(config)` of the agents."""
    at_once: int
    timeout: float | None
    retry: Retry
    strategy: Strategy
    deadline: float | None
    threshold: float


def settings(config: Mapping[str, Any] | None) -> Settings:
    """The settings; InvalidOption names the entry that cannot be.

    A configuration may say other things as well, to agents; what is nearly one of our names is
    taken for a slip of the pen.
    """
    if not isinstance(config, Mapping | None):
        raise InvalidOption(f"config is {config!r}; it is a dict such as {dict(DEFAULTS)!r}")
    for name in config or ():
        close = get_close_matches(str(name), DEFAULTS, n=1, cutoff=0.85)
        if name not in DEFAULTS and close:
            raise InvalidOption(f"config has {name!r}; did you mean {close[0]!r}?")
    chosen = {**DEFAULTS, **(config or {})}
    if not isinstance(chosen["retry_failed_agents"], bool):
        raise _wrong(chosen, "retry_failed_agents", "True or False")
    if chosen["parallelization_strategy"] not in ("parallel_groups", "file_based"):
        raise _wrong(chosen, "parallelization_strategy", "'parallel_groups' or 'file_based'")
    attempts = 1 + whole(chosen, "max_retries", 0)
    backoff = _time(chosen, "retry_backoff_seconds")
    most = _time(chosen, "retry_max_backoff_seconds")
    threshold = chosen["complexity_threshold"]
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise _wrong(chosen, "complexity_threshold", "a number")
    return Settings(
        given=MappingProxyType(chosen),
        at_once=whole(chosen, "max_parallel_agents", 1),
        timeout=_some_time(chosen, "agent_timeout_seconds"),
        retry=Retry(attempts if chosen["retry_failed_agents"] else 1, backoff, most),
        strategy=cast(Strategy, chosen["parallelization_strategy"]),
        deadline=_some_time(chosen, "deadline_seconds"),
        threshold=threshold,
    )


def whole(chosen: Mapping[str, Any], name: str, least: int) -> int:
    """A whole number that is not too small."""
    value = chosen[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _wrong(chosen, name, f"a whole number, {least} or more")
    return value


def _time(chosen: Mapping[str, Any], name: str) -> float:
    return seconds(chosen[name], f"config[{name!r}]")


def _some_time(chosen: Mapping[str, Any], name: str) -> float | None:
    if chosen[name] is None:
        return None
    if not (time := _time(chosen, name)):
        raise _wrong(chosen, name, "more than 0 seconds, or None")
    return time


def _wrong(chosen: Mapping[str, Any], name: str, allowed: str) -> InvalidOption:
    return InvalidOption(f"config[{name!r}] is {chosen[name]!r}; it must be {allowed}")
