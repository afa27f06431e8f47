"""One call of a coordinator: its tasks in the Runtime, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.model.claim import Claim, uses, write
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.patterns.coordinator.config import Settings
from interlock.patterns.coordinator.state_updates import (
    GroupRecorded,
    StateUpdate,
    SubtaskEnded,
    SubtaskMoved,
)
from interlock.patterns.coordinator.subtask import SubTask, id_of
from interlock.patterns.coordinator.subtask_agent import AgentLifecycle
from interlock.patterns.coordinator.subtask_groups import SubtaskGroup, is_test
from interlock.patterns.coordinator.subtask_prompts import SubtaskPrompts
from interlock.patterns.coordinator.subtask_results import record_of, result_of
from interlock.runtime.context import TaskContext
from interlock.runtime.runtime import Runtime

_BESIDE = uses("tests run alone")
_ALONE = uses("tests run alone", exclusive=True)
"""Every subtask holds this name; a test holds it alone, whatever else is decided."""
_ENOUGH = 3
"""So many subtasks of a complexity say more than what somebody has guessed."""


@dataclass(frozen=True)
class GroupEnd:
    """An agent that waits until all of a group have ended, however; the next group comes after."""

    task_ids: tuple[str, ...]

    async def run(self, ctx: TaskContext) -> None:
        await ctx.wait_all(self.task_ids)


class CoordinatedCall:
    """What is known of a call from before its submission until all its subtasks have ended.

    `tell` is called on the event loop with each note, in the order in which things happened.
    """

    def __init__(
        self,
        groups: list[SubtaskGroup],
        parent: Any,
        context: Mapping[str, Any],
        life: AgentLifecycle,
        settings: Settings,
        tell: Callable[[StateUpdate], None],
        *,
        tells_states: bool,
    ) -> None:
        self.groups = groups
        self.parent_id = id_of(parent)
        self.settings = settings
        self.tells_states = tells_states
        """Whether anybody wants to know more than the results."""
        self.called_off = False
        """Whether nobody wants it any more."""
        self._prompts = SubtaskPrompts(parent, context)
        self._life = life
        self._agent = life.attempts()
        self._tell = tell
        self._subtasks: dict[str, tuple[int, SubTask]] = {}
        """By task id, with the place of the group."""
        self._states: dict[str, str] = {}
        self._ids: list[tuple[str, ...]] = []
        """The task ids of each group."""
        self._open = [len(group.subtasks) for group in groups]
        """How many of each group have not ended."""
        self._outcomes: dict[str, Outcome[Any]] = {}
        self._results: dict[str, dict[str, Any]] = {}
        self.records: list[dict[str, Any]] = []

    def ids(self, name: str) -> list[str]:
        """All that a run would know by this name."""
        ids = [f"{name}/{each.subtask_id}" for group in self.groups for each in group.subtasks]
        return ids + [f"{name}:group {place}" for place in range(1, len(self.groups))]

    def tasks(self, name: str, runtime: Runtime) -> list[Task]:
        """The tasks for the Runtime; all groups at once, so that `why` knows of each of them."""
        made: list[Task] = []
        # Without any there is nothing to look for.
        knows = None if runtime.history(self._agent) is None else runtime
        before: tuple[str, ...] = ()
        for place, group in enumerate(self.groups):
            ids = tuple(f"{name}/{each.subtask_id}" for each in group.subtasks)
            self._ids.append(ids)
            for task_id, subtask in zip(ids, group.subtasks, strict=True):
                self._subtasks[task_id] = place, subtask
                after = (*(f"{name}/{each}" for each in subtask.dependencies), *before)
                made.append(self._task(task_id, subtask, after, knows))
            if place + 1 < len(self.groups):
                end = f"{name}:group {place + 1}"
                made.append(Task(end, GroupEnd(ids), after=before))
                before = (end,)
        return made

    def _task(
        self, task_id: str, subtask: SubTask, after: tuple[str, ...], knows: Runtime | None
    ) -> Task:
        labels = {"title": subtask.title}
        if subtask.estimated_complexity is not None:
            labels["complexity"] = f"{subtask.estimated_complexity:g}"
        return Task(
            task_id,
            self._agent,
            prompt=self._prompts.of(subtask),
            claims=_claims(subtask),
            after=after,
            timeout=self.settings.timeout,
            retry=self.settings.retry,
            estimate=self._estimate(subtask, labels, knows),
            labels=labels,
        )

    def _estimate(
        self, subtask: SubTask, labels: Mapping[str, str], knows: Runtime | None
    ) -> float | None:
        """How long it took before; else as somebody has guessed."""
        for name, enough in (("title", 1), ("complexity", _ENOUGH)):
            if knows is not None and name in labels:
                found = knows.history(self._agent, f"{name}={labels[name]}")
                if found is not None and found.n >= enough:
                    return found.mean
        minutes = subtask.estimated_duration_minutes
        return minutes * 60.0 if minutes else None

    # -- what happens -----------------------------------------------------------------------

    def moved(self, task_id: str, state: str) -> None:
        """Tell of a state once; nobody starts who was not pending."""
        found = self._subtasks.get(task_id)
        was = self._states.get(task_id)
        if found is None or was == "in_progress" or was == state:
            return
        if was is None and state != "pending":
            self.moved(task_id, "pending")
        self._states[task_id] = state
        self._tell(SubtaskMoved(found[1].subtask_id, state))

    def settled(self, outcome: Outcome[Any]) -> None:
        """A task has ended; twice is fine."""
        task_id = outcome.task_id
        found = self._subtasks.get(task_id)
        if found is None or task_id in self._results:
            return
        place, subtask = found
        if self.tells_states:
            self.moved(task_id, "pending")
        cause = self._subtasks.get(outcome.cause) if outcome.cause else None
        because = None if cause is None else cause[1].subtask_id
        result = result_of(subtask, outcome, self._agent_id(outcome), because)
        self._outcomes[task_id] = outcome
        self._results[task_id] = result
        self._tell(SubtaskEnded(result))
        self._open[place] -= 1
        if not self._open[place]:
            self._group_ended(place)

    def _agent_id(self, outcome: Outcome[Any]) -> str | None:
        if not outcome.attempts:
            return None
        made = self._life.agents.get((outcome.task_id, outcome.attempts))
        return made or f"{outcome.task_id}#{outcome.attempts}"

    def _group_ended(self, place: int) -> None:
        ids = self._ids[place]
        record = record_of(
            self.parent_id,
            self.groups[place],
            [self._results[each] for each in ids],
            [self._outcomes[each] for each in ids],
            self.settings.strategy,
        )
        self.records.append(record)
        self._tell(GroupRecorded(record))

    @property
    def open_ids(self) -> list[str]:
        """The ids, in the run, of submitted subtasks that have no result yet.

        Those that have one may be forgotten there.
        """
        return [each for each in self._subtasks if each not in self._results]

    @property
    def is_over(self) -> bool:
        """Whether all subtasks have their results."""
        return len(self._results) == len(self._subtasks)

    def cancel(self, runtime: Runtime, reason: str) -> None:
        """End all that has not ended; on the loop."""
        handles = [runtime.handle(each) for each in self.open_ids]
        # Whoever has not begun goes first, or it would be skipped for those it depends on, or
        # start in their place.
        handles.sort(key=lambda each: _ORDER.get(each.state, 1))
        for each in handles:
            each.cancel(reason)


_ORDER = {State.BLOCKED: 0, State.RUNNING: 2, State.NEEDS_YOU: 2}


def _claims(subtask: SubTask) -> tuple[Claim, ...]:
    alone = _ALONE if is_test(subtask) else _BESIDE
    return (*(write(each) for each in subtask.files), alone)
