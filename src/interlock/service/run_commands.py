"""What other terminals may ask of a run that goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interlock.errors import InvalidOption, UnknownTask, UsageError
from interlock.model.outcome import State
from interlock.model.task import Task
from interlock.model.template import Template
from interlock.runtime.handle import Handle
from interlock.runtime.project import question_id
from interlock.runtime.recovery.remembered import AGAIN
from interlock.runtime.runtime import Runtime
from interlock.views.fold import RunFold

_LOOKS = frozenset({"ping", "why"})
"""They change nothing. Their answers wait for nothing, least of all for a journal that is stuck."""


class Steering:
    """Answers the requests that come through the control socket."""

    def __init__(self, rt: Runtime, fold: RunFold, tasks: list[Task]) -> None:
        self._rt = rt
        self._fold = fold
        self._tasks = {task.id: task for task in tasks}
        self._follow_ups: list[Handle[Any]] = []
        self._answers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "ping": lambda _: {"run": rt.run_id},
            "why": lambda asked: rt.why(_task(asked)),
            "cancel": self._cancel,
            "retry": self._retry,
            "pause": lambda asked: rt.pause(_task_or_all(asked)),
            "resume": lambda asked: rt.resume(_task_or_all(asked)),
            "prioritize": lambda asked: rt.prioritize(_task(asked), _priority(asked)),
            "answer": self._answer,
        }

    def taken_up(self) -> list[Task]:
        """Tasks of the run that goes on which a person had done again: no plan brings them."""
        again: list[Task] = []
        for task_id in self._rt.unsubmitted:
            stands = self._fold.task(task_id)
            if stands is not None and task_id not in self._tasks and self._first(task_id):
                names = {self._first(each) or each: each for each in (task_id, *stands.after)}
                again.append(_renamed(self._tasks[self._first(task_id)], names))
        self._tasks |= {task.id: task for task in again}
        return again

    async def answer(self, asked: dict[str, Any]) -> Any:
        """Do what is asked; durable when it is answered."""
        do = self._answers.get(str(asked.get("do")))
        if do is None:
            raise UsageError(f"there is no {asked.get('do')!r} here; is the other one newer?")
        said = do(asked)
        if asked["do"] not in _LOOKS:
            await self._rt.flush()
        return said

    async def follow_ups(self) -> None:
        """Wait for what was submitted later on."""
        waited = 0
        while waited < len(self._follow_ups):
            await self._follow_ups[waited]
            waited += 1

    def _answer(self, asked: Mapping[str, Any]) -> None:
        """The question before a task is a task of its own, which people call by the other name."""
        task_id, asking = _task(asked), {each.task_id for each in self._rt.questions()}
        named = task_id if task_id in asking else question_id(task_id)
        if named not in asking:
            who = ", ".join(sorted(asking)) or "nobody"
            raise InvalidOption(f"{task_id} has asked nothing; who asks: {who}")
        self._rt.answer(named, _text(asked, "answer"))

    def _cancel(self, asked: Mapping[str, Any]) -> list[str]:
        """The tasks that were cancelled: those named, or all that have not ended."""
        named = asked.get("tasks")
        if named is None:
            named = [each.id for each in self._fold.all_tasks() if not each.state.is_end]
        if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
            raise InvalidOption("which tasks? A list of ids")
        known = [self._rt.handle(task_id) for task_id in named]  # all or none
        return [each.task_id for each in known if self._rt.cancel(each, "cancelled by a person")]

    def _retry(self, asked: Mapping[str, Any]) -> dict[str, str]:
        """Do a task again, with all that was skipped because of it; their outcomes stand."""
        task_id = _task(asked)
        stands = self._fold.task(task_id)
        if task_id not in self._tasks or stands is None:
            raise UnknownTask(f"run {self._rt.run_id} has no task {task_id!r}")
        if not stands.state.is_end:
            raise InvalidOption(f"{task_id} has not ended; it is {stands.state}")
        if stands.state is State.SUCCEEDED:
            raise InvalidOption(f"{task_id} succeeded; what succeeded is never run again")
        latest = {each.id for each in self._fold.facts(0).tasks}
        if task_id not in latest:
            newer = next(each.id for each in self._fold.facts(0).tasks if each.retry_of == task_id)
            raise InvalidOption(f"{task_id} is done again as {newer}; retry that one, if need be")
        names = {task_id: self._fresh(task_id)}
        for task in self._tasks.values():
            skipped = self._fold.task(task.id)
            if task.id not in latest or skipped is None or skipped.state is not State.SKIPPED:
                continue
            if names.keys() & set(task.after):
                names[task.id] = self._fresh(task.id)
        again = [self._again(old, names) for old in names]
        self._follow_ups += self._rt.submit_all(again)
        self._tasks |= {task.id: task for task in again}
        return names

    def _again(self, task_id: str, names: Mapping[str, str]) -> Task:
        task = _renamed(self._tasks[task_id], names)
        return task.replace(labels={**task.labels, AGAIN: self._first(task_id) or task_id})

    def _first(self, task_id: str) -> str:
        """What a task was called before it was done again; empty if it was not."""
        plain, _, count = task_id.rpartition("~")
        return plain if count.isdecimal() and plain in self._tasks else ""

    def _fresh(self, task_id: str) -> str:
        name = self._first(task_id) or task_id
        number = 2
        while f"{name}~{number}" in self._tasks:
            number += 1
        return f"{name}~{number}"


def _task(asked: Mapping[str, Any]) -> str:
    return _text(asked, "task")


def _task_or_all(asked: Mapping[str, Any]) -> str | None:
    return None if asked.get("task") is None else _task(asked)


def _text(asked: Mapping[str, Any], name: str) -> str:
    text = asked.get(name)
    if not isinstance(text, str):
        raise InvalidOption(f"which {name}? It is a text")
    return text


def _priority(asked: Mapping[str, Any]) -> int:
    priority = asked.get("priority")
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise InvalidOption("which priority? It is a whole number")
    return priority


def _renamed(task: Task, names: Mapping[str, str]) -> Task:
    prompt = task.prompt
    if isinstance(prompt, Template):
        prompt = prompt.renamed(names)
    after = tuple(names.get(each, each) for each in task.after)
    return task.replace(id=names[task.id], after=after, prompt=prompt, key=None)
