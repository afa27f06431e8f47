"""Models that are down: each has a breaker, which spawning waits for.

Messages do not use that breaker: what a batch has accepted is carried out. How they end is reported
to it, so that no agent is spawned into an outage.

Messages use `model NAME` instead, a breaker that is never reported to. In 0.1.0 it was the breaker
of the model. It is part of the tasks in journals of that version: without it, they could not be
resumed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from interlock.errors import InterlockError
from interlock.model.limits import Breaker
from interlock.model.outcome import Outcome, State
from interlock.patterns.pool.outages import is_outage
from interlock.patterns.pool.pooled_agent import PooledAgent
from interlock.runtime.runtime import Runtime


def model_of(model: str) -> str:
    """The name of what the messages to a model use."""
    return f"model {model}"


def breaker_of(model: str) -> str:
    """The name of the breaker of a model, which spawning uses."""
    return f"spawning {model}"


class ModelBreakers:
    """The breakers of a run. Only what means an outage of the model opens them."""

    def __init__(self, rule: Breaker) -> None:
        self._rule = rule
        self._models: set[str] = set()

    def attach(self, runtime: Runtime, models: tuple[str, ...]) -> None:
        """Add the breakers of these models to a new run."""
        self._models.clear()
        for model in models:
            self._add(runtime, model)

    def used_by_spawning(self, runtime: Runtime, agent: PooledAgent) -> tuple[str, ...]:
        """What the task that makes an agent uses: the breaker of its model, if it has one."""
        return () if agent.model is None else (breaker_of(self._add(runtime, agent.model)),)

    def used_by_messages(self, runtime: Runtime, agent: PooledAgent) -> tuple[str, ...]:
        """What a message to an agent uses."""
        return () if agent.model is None else (model_of(self._add(runtime, agent.model)),)

    def _add(self, runtime: Runtime, model: str) -> str:
        if model not in self._models:
            for name in (model_of(model), breaker_of(model)):
                runtime.set_limit(name, self._rule, counts="reports")
            self._models.add(model)
        return model

    def settled(self, runtime: Runtime, agent: PooledAgent, outcome: Outcome[Any]) -> None:
        """Report how a message, or the making of an agent, has ended.

        A timeout, a cancellation and an error of the agent itself say nothing about the model.
        """
        outage = outcome.status is State.FAILED and is_outage(outcome.exception)
        if agent.model is not None and (outage or outcome.succeeded):
            with suppress(InterlockError):  # the run may have ended
                self._add(runtime, agent.model)
                runtime.report(breaker_of(agent.model), outcome.reason if outage else None)
