"""Models that are down: a breaker before each, and an answer for those who would wait for it."""

from __future__ import annotations

from typing import Any

from interlock.model.event import Event, Kind
from interlock.model.limits import Breaker
from interlock.model.outcome import State
from interlock.model.throttled import OpenBreaker
from interlock.patterns.pool.member import Member
from interlock.runtime.handle import Handle
from interlock.runtime.runtime import Runtime


def breaker_of(model: str) -> str:
    """The name of the breaker of a model."""
    return f"model {model}"


class Outages:
    """The breakers of a run. Whoever makes an agent waits for them; a message is turned away."""

    def __init__(self, rule: Breaker) -> None:
        self._rule = rule
        self._breakers: set[str] = set()
        self._down: dict[str, OpenBreaker] = {}
        self._asked: dict[str, tuple[Member, Handle[Any]]] = {}
        """Messages without an outcome, by the ids of their tasks."""
        self._turned_away: dict[str, str] = {}
        """Messages that were not even tried, and what they are told."""

    def opened(self, runtime: Runtime, names: set[str]) -> None:
        """A run begins, which knows these breakers already."""
        self._breakers = names
        self._down.clear()
        if names:
            runtime.listen(self._heard)

    def through(self, runtime: Runtime, member: Member) -> tuple[str, ...]:
        """What the tasks of an agent use: the breaker of its model, if it has one."""
        if member.model is None:
            return ()
        name = breaker_of(member.model)
        if name not in self._breakers:
            if not self._breakers:
                runtime.listen(self._heard)
            self._breakers.add(name)
            runtime.set_limit(name, self._rule)
        return (name,)

    def asked(self, member: Member, handle: Handle[Any]) -> None:
        """A message was submitted."""
        if member.model is not None:
            self._asked[handle.task_id] = (member, handle)
            if breaker_of(member.model) in self._down:
                self._turn_away()

    def settled(self, handle: Handle[Any]) -> None:
        """A message has its outcome."""
        self._asked.pop(handle.task_id, None)

    def _heard(self, event: Event) -> None:
        asked = event.data
        if event.kind is not Kind.ASKED or not hasattr(asked, "because"):
            return
        told = asked.because
        if isinstance(told, OpenBreaker) and told.until is not None:
            self._down[told.resource] = told
            self._turn_away()
        else:
            self._down.pop(asked.resource, None)  # closed, or one may try

    def _turn_away(self) -> None:
        """Answer those who would wait for a model that is down: nobody knows for how long."""
        for task_id, (member, handle) in list(self._asked.items()):
            told = None if member.model is None else self._down.get(breaker_of(member.model))
            if told is not None and handle.state is State.WAITING:
                said = (
                    f"model {member.model!r} is not asked at the moment: {told.failures} failures "
                    f"in a row, the last one: {told.last}"
                )
                self._turned_away[task_id] = said
                handle.cancel(said)

    def turned_away(self, task_id: str) -> str | None:
        """Why a message was not even tried, if so. It is told once."""
        return self._turned_away.pop(task_id, None)
