"""The limits that a Runtime was given: checked, and sorted by the part that applies them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from interlock.errors import InvalidOption
from interlock.model.limits import Breaker, Rate
from interlock.model.load import Auto, Gate
from interlock.runtime.limits.breakers import ENOUGH

MaxParallel = int | Auto | Literal["auto"]


class Limits(NamedTuple):
    """Limits by the part that applies them."""

    slots: int
    auto: Auto | None
    gate: Gate | None
    capacities: dict[str, int]
    """Including those of breakers."""
    rates: dict[str, Rate]
    breakers: dict[str, Breaker]


def parse_limits(
    max_parallel: MaxParallel,
    capacity: Mapping[str, int] | None,
    limits: Mapping[str, Rate | Breaker] | None,
    gate: Gate | None,
) -> Limits:
    """Check the limits of a run and sort them; raises InvalidOption."""
    slots = slots_of(max_parallel)
    capacities, rates, breakers = dict(capacity or {}), {}, {}
    for name, limit in (limits or {}).items():
        if isinstance(limit, Breaker):
            if name in capacities:
                raise InvalidOption(f"{name!r} has a capacity and a breaker; keep one")
            capacities[name], breakers[name] = ENOUGH, limit
        elif isinstance(limit, Rate):
            rates[name] = limit
        else:
            raise InvalidOption(f"the limit {name!r} is {limit!r}; it can be a Rate or a Breaker")
    auto = slots if isinstance(slots, Auto) else None
    most = slots.most if isinstance(slots, Auto) else slots
    return Limits(most, auto, check_gate(gate), capacities, rates, breakers)


def slots_of(max_parallel: MaxParallel, option: str = "max_parallel") -> int | Auto:
    """Check a number of slots, or bounds for it; errors name the `option` it was given as."""
    if max_parallel == "auto":
        return Auto()
    if isinstance(max_parallel, Auto):
        return max_parallel
    if isinstance(max_parallel, bool) or not isinstance(max_parallel, int) or max_parallel < 1:
        raise InvalidOption(f"{option} is {max_parallel!r}; it must be a whole number, 1 or more")
    return max_parallel


def check_gate(gate: Gate | None) -> Gate | None:
    """Return the gate, or raise InvalidOption."""
    if gate is not None and not isinstance(gate, Gate):
        raise InvalidOption(f"gate is {gate!r}; write Gate(cpu=90, memory=80)")
    return gate


def quotas(name: str, rate: Rate) -> dict[str, tuple[int, float]]:
    """Amount and window of a rate, under the names that claims use."""
    found = {}
    if rate.requests is not None:
        found[name] = (rate.requests.amount, rate.requests.window)
    if rate.tokens is not None:
        found[f"{name}.tokens"] = (rate.tokens.amount, rate.tokens.window)
    return found
