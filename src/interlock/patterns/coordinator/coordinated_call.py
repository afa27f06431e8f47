"""One call of a coordinator: its tasks in the Runtime, their states and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.model.claim import Claim, uses, write
from interlock.model.outcome import Outcome, State
from interlock.model.stable_names import stable_name
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

_SHARED_CLAIM = uses("tests run alone")
_EXCLUSIVE_CLAIM = uses("tests run alone", exclusive=True)
"""Every subtask claims this name; one that runs alone claims it exclusively, in every strategy."""
_ENOUGH_HISTORY = 3
"""So many measured subtasks of a complexity are a better estimate than the caller's."""


@stable_name("coordinator.group_end")
@dataclass(frozen=True)
class GroupEnd:
    """An agent that waits until a group has ended; the subtasks of the next group depend on it."""

    task_ids: tuple[str, ...]

    async def run(self, ctx: TaskContext) -> None:
        await ctx.wait_all(self.task_ids)


class CoordinatedCall:
    """The state of a call from before its submission until all of its subtasks have ended.

    `on_update` is called on the event loop with each update, in order.
    """

    def __init__(
        self,
        groups: list[SubtaskGroup],
        parent: Any,
        context: Mapping[str, Any],
        lifecycle: AgentLifecycle,
        settings: Settings,
        on_update: Callable[[StateUpdate], None],
        *,
        reports_states: bool,
    ) -> None:
        self.groups = groups
        self.parent_id = id_of(parent)
        self.settings = settings
        self.reports_states = reports_states
        """Whether states are reported in addition to results."""
        self.is_cancelled = False
        self._prompts = SubtaskPrompts(parent, context)
        self._lifecycle = lifecycle
        self._agent = lifecycle.as_agent()
        self._on_update = on_update
        self._subtasks: dict[str, tuple[int, SubTask]] = {}
        """By task id, with the index of the group."""
        self._states: dict[str, str] = {}
        self._ids: list[tuple[str, ...]] = []
        """The task ids of each group."""
        self._open = [len(group.subtasks) for group in groups]
        """The number of unfinished subtasks of each group."""
        self._outcomes: dict[str, Outcome[Any]] = {}
        self._results: dict[str, dict[str, Any]] = {}
        self.records: list[dict[str, Any]] = []

    def ids(self, name: str) -> list[str]:
        """All task ids of the call under a name."""
        ids = [f"{name}/{each.subtask_id}" for group in self.groups for each in group.subtasks]
        return ids + [f"{name}:group {place}" for place in range(1, len(self.groups))]

    def tasks(self, name: str, runtime: Runtime) -> list[Task]:
        """Make the tasks of all groups at once, so that `why` can explain each of them."""
        made: list[Task] = []
        history = None if runtime.history(self._agent) is None else runtime
        before: tuple[str, ...] = ()
        for place, group in enumerate(self.groups):
            ids = tuple(f"{name}/{each.subtask_id}" for each in group.subtasks)
            self._ids.append(ids)
            for task_id, subtask in zip(ids, group.subtasks, strict=True):
                self._subtasks[task_id] = place, subtask
                after = (*(f"{name}/{each}" for each in subtask.dependencies), *before)
                made.append(self._task(task_id, subtask, after, history))
            if place + 1 < len(self.groups):
                end = f"{name}:group {place + 1}"
                made.append(Task(end, GroupEnd(ids), after=before))
                before = (end,)
        return made

    def _task(
        self, task_id: str, subtask: SubTask, after: tuple[str, ...], history: Runtime | None
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
            estimate=self._estimate(subtask, labels, history),
            labels=labels,
        )

    def _estimate(
        self, subtask: SubTask, labels: Mapping[str, str], history: Runtime | None
    ) -> float | None:
        """Return how long such subtasks took before; without history, the caller's estimate."""
        for name, enough in (("title", 1), ("complexity", _ENOUGH_HISTORY)):
            if history is not None and name in labels:
                found = history.history(self._agent, f"{name}={labels[name]}")
                if found is not None and found.n >= enough:
                    return found.mean
        minutes = subtask.estimated_duration_minutes
        return minutes * 60.0 if minutes else None

    # -- states and outcomes ----------------------------------------------------------------

    def record_state(self, task_id: str, state: str) -> None:
        """Report a state once; `pending` always comes first."""
        found = self._subtasks.get(task_id)
        was = self._states.get(task_id)
        if found is None or was == "in_progress" or was == state:
            return
        if was is None and state != "pending":
            self.record_state(task_id, "pending")
        self._states[task_id] = state
        self._on_update(SubtaskMoved(found[1].subtask_id, state))

    def record_outcome(self, outcome: Outcome[Any]) -> None:
        """Report the result of a subtask; a second outcome is ignored."""
        task_id = outcome.task_id
        found = self._subtasks.get(task_id)
        if found is None or task_id in self._results:
            return
        place, subtask = found
        if self.reports_states:
            self.record_state(task_id, "pending")
        cause = self._subtasks.get(outcome.cause) if outcome.cause else None
        because = None if cause is None else cause[1].subtask_id
        result = result_of(subtask, outcome, self._agent_id(outcome), because)
        self._outcomes[task_id] = outcome
        self._results[task_id] = result
        self._on_update(SubtaskEnded(result))
        self._open[place] -= 1
        if not self._open[place]:
            self._record_group(place)

    def _agent_id(self, outcome: Outcome[Any]) -> str | None:
        if not outcome.attempts:
            return None
        own = self._lifecycle.agent_ids.get((outcome.task_id, outcome.attempts))
        return own or f"{outcome.task_id}#{outcome.attempts}"

    def _record_group(self, place: int) -> None:
        ids = self._ids[place]
        record = record_of(
            self.parent_id,
            self.groups[place],
            [self._results[each] for each in ids],
            [self._outcomes[each] for each in ids],
            self.settings.strategy,
            self.settings.max_parallel,
        )
        self.records.append(record)
        self._on_update(GroupRecorded(record))

    @property
    def open_ids(self) -> list[str]:
        """The task ids of subtasks without a result. The run may have dropped the others."""
        return [each for each in self._subtasks if each not in self._results]

    @property
    def is_complete(self) -> bool:
        """Whether all subtasks have results."""
        return len(self._results) == len(self._subtasks)

    def cancel(self, runtime: Runtime, reason: str) -> None:
        """Cancel all unfinished subtasks; on the thread of the event loop."""
        handles = [runtime.handle(each) for each in self.open_ids]
        # Those that have not started go first: otherwise they would be skipped because of a
        # dependency, or start in the place of a cancelled one.
        handles.sort(key=lambda each: _CANCEL_ORDER.get(each.state, 1))
        for each in handles:
            each.cancel(reason)


_CANCEL_ORDER = {State.BLOCKED: 0, State.RUNNING: 2, State.NEEDS_YOU: 2}


def _claims(subtask: SubTask) -> tuple[Claim, ...]:
    runs_alone = is_test(subtask) or not subtask.parallelizable
    alone = _EXCLUSIVE_CLAIM if runs_alone else _SHARED_CLAIM
    return (*(write(each) for each in subtask.files), alone)
