"""Carries out the requests that reach a run through its control socket.

Every request is one entry of `RequestHandler._requests`: `ping`, `why`, `cancel`, `retry`, `pause`,
`resume`, `prioritize`, `answer`. Whatever a request changes is durable before it is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interlock.errors import InvalidOption, UsageError
from interlock.journal.state.run_fold import RunFold
from interlock.model.task import Task
from interlock.runtime.handle import Handle
from interlock.runtime.project import question_id
from interlock.runtime.runtime import Runtime
from interlock.runtime.submission.retrying import renamed

_READ_ONLY = frozenset({"ping", "why"})
"""Requests that change nothing. Their replies wait for nothing, not even for a stuck journal."""


class RequestHandler:
    """Carries out requests on a Runtime whose tasks and facts it is given."""

    def __init__(self, rt: Runtime, fold: RunFold, tasks: list[Task]) -> None:
        self._rt = rt
        self._fold = fold
        self._tasks = {task.id: task for task in tasks}
        self._follow_ups: list[Handle[Any]] = []
        self._requests: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "ping": lambda _: {"run": rt.run_id},
            "why": lambda request: rt.why(_task(request)),
            "cancel": self._cancel,
            "retry": self._retry,
            "pause": lambda request: rt.pause(_task_or_all(request)),
            "resume": lambda request: rt.resume(_task_or_all(request)),
            "prioritize": lambda request: rt.prioritize(_task(request), _priority(request)),
            "answer": self._answer,
        }

    def restored_follow_ups(self) -> list[Task]:
        """Unfinished follow-ups of a resumed run: `retry` submitted them, so no plan names them."""
        restored: list[Task] = []
        for task_id in self._rt.unsubmitted:
            facts = self._fold.task(task_id)
            if facts is not None and task_id not in self._tasks and self._original(task_id):
                names = {self._original(each) or each: each for each in (task_id, *facts.after)}
                restored.append(renamed(self._tasks[self._original(task_id)], names))
        self._tasks |= {task.id: task for task in restored}
        return restored

    async def handle(self, request: dict[str, Any]) -> Any:
        """Carry out a request and return the reply. Its effects are durable by then."""
        carry_out = self._requests.get(str(request.get("do")))
        if carry_out is None:
            raise UsageError(
                f"the run does not know the request {request.get('do')!r}; "
                "was it sent by a newer version of Interlock?"
            )
        reply = carry_out(request)
        if request["do"] not in _READ_ONLY:
            await self._rt.flush()
        return reply

    async def wait_for_follow_ups(self) -> None:
        """Wait for all tasks that `retry` submitted, also for those it submits meanwhile."""
        waited = 0
        while waited < len(self._follow_ups):
            await self._follow_ups[waited]
            waited += 1

    def _answer(self, request: Mapping[str, Any]) -> None:
        """Answer a question. The one that precedes a task is a task of its own, with its own id."""
        task_id, asking = _task(request), {each.task_id for each in self._rt.questions()}
        named = task_id if task_id in asking else question_id(task_id)
        if named not in asking:
            others = ", ".join(sorted(asking)) or "none"
            raise InvalidOption(
                f"{task_id} has not asked a question; tasks with an open question: {others}"
            )
        self._rt.answer(named, _text(request, "answer"))

    def _cancel(self, request: Mapping[str, Any]) -> list[str]:
        """Cancel the tasks named, or all that have not ended; the ids of those it cancelled."""
        if "task" in request:  # as other requests have it: without `tasks` it would mean all
            raise InvalidOption("a cancel has a list of task ids in `tasks`, not one in `task`")
        named = request.get("tasks")
        if named is None:
            named = [each.id for each in self._fold.all_tasks() if not each.state.is_end]
        if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
            raise InvalidOption("`tasks` is not a list of task ids")
        known = [self._rt.handle(task_id) for task_id in named]  # all or none
        return [each.task_id for each in known if self._rt.cancel(each, "by a person")]

    def _retry(self, request: Mapping[str, Any]) -> dict[str, str]:
        """Submit a task again, and all that was skipped because of it; their outcomes stand.

        Returns the new id for each old one.
        """
        task_id = _task(request)
        handles = self._rt.retry(task_id)
        while handles[task_id].outcome is not None:
            # A follow-up that an earlier coordinator submitted: it has ended, so it is next.
            task_id = handles[task_id].task_id
            handles = self._rt.retry(task_id)
        self._follow_ups += handles.values()
        self._tasks |= {each.task_id: each.task for each in handles.values()}
        return {old: each.task_id for old, each in handles.items()}

    def _original(self, task_id: str) -> str:
        """The id of the task that a follow-up repeats; empty if the task is no follow-up."""
        plain, _, count = task_id.rpartition("~")
        return plain if count.isdecimal() and plain in self._tasks else ""


def _task(request: Mapping[str, Any]) -> str:
    return _text(request, "task")


def _task_or_all(request: Mapping[str, Any]) -> str | None:
    return None if request.get("task") is None else _task(request)


def _text(request: Mapping[str, Any], name: str) -> str:
    text = request.get(name)
    if not isinstance(text, str):
        raise InvalidOption(f"`{name}` is missing or is not a string")
    return text


def _priority(request: Mapping[str, Any]) -> int:
    priority = request.get("priority")
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise InvalidOption("`priority` is missing or is not a whole number")
    return priority
