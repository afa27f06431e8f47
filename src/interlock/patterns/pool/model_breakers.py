"""Models that are down: each has a breaker, and messages that would wait for it are rejected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from interlock.model.limits import Breaker
from interlock.model.outcome import Outcome, State
from interlock.model.throttled import OpenBreaker
from interlock.patterns.pool.pooled_agent import PooledAgent
from interlock.runtime.handle import Handle
from interlock.runtime.runtime import Runtime


def breaker_of(model: str) -> str:
    """The name of the breaker of a model."""
    return f"model {model}"


class ModelBreakers:
    """The breakers of a run. Spawning an agent waits for them; a message is rejected."""

    def __init__(self, rule: Breaker) -> None:
        self._rule = rule
        self._names: set[str] = set()
        self._open: dict[str, OpenBreaker] = {}
        self._unsettled: dict[str, tuple[str, Handle[Any]]] = {}
        """Messages without an outcome, by the ids of their tasks, with their models."""
        self._rejected: set[str] = set()

    def attach(self, runtime: Runtime, models: tuple[str, ...]) -> None:
        """Follow a new run, which has the breakers of these models already."""
        self._names = {*map(breaker_of, models)}
        self._open.clear()
        if models:  # events cost something as soon as there is a listener
            runtime.on_throttle(self._throttled)

    def claims_of(self, runtime: Runtime, agent: PooledAgent) -> tuple[str, ...]:
        """What the tasks of an agent use: the breaker of its model, if it has one."""
        if agent.model is None:
            return ()
        name = breaker_of(agent.model)
        if name not in self._names:
            if not self._names:
                runtime.on_throttle(self._throttled)
            self._names.add(name)
            runtime.set_limit(name, self._rule)
        return (name,)

    def submitted(self, agent: PooledAgent, handle: Handle[Any]) -> None:
        """Reject this message if it would wait for its model, now or later."""
        if agent.model is not None:
            self._unsettled[handle.task_id] = agent.model, handle
            if breaker_of(agent.model) in self._open:
                self._reject_waiting()

    def settled(self, handle: Handle[Any]) -> None:
        """A message has its outcome."""
        self._unsettled.pop(handle.task_id, None)

    def as_answered(self, outcome: Outcome[Any]) -> Outcome[Any]:
        """The outcome for the caller: a message that was rejected has failed."""
        if outcome.task_id not in self._rejected:
            return outcome
        self.forget(outcome.task_id)
        return replace(outcome, status=State.FAILED)

    def forget(self, task_id: str) -> None:
        """No caller will be answered."""
        self._rejected.discard(task_id)

    def _throttled(self, resource: str, reason: object) -> None:
        if isinstance(reason, OpenBreaker) and reason.until is not None:
            self._open[resource] = reason
            self._reject_waiting()
        else:
            self._open.pop(resource, None)  # closed, or half-open: one attempt may try

    def _reject_waiting(self) -> None:
        """Answer messages that would wait for a model that is down, for an unknown time."""
        for task_id, (model, handle) in list(self._unsettled.items()):
            reason = self._open.get(breaker_of(model))
            if reason is not None and handle.state is State.WAITING:
                self._rejected.add(task_id)
                handle.cancel(
                    f"the breaker of model {model!r} is open: {reason.failures} failures in a row, "
                    f"the last one: {reason.last}"
                )
