"""The last run of a project, read from its journal, while it is in progress and afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from threading import Event as Flag

from interlock.errors import UnknownTask, UsageError
from interlock.journal.follow import PAUSE
from interlock.journal.reader import Reader, Run
from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.journal.state.run_fold import RunFold
from interlock.model.event import Event, Kind
from interlock.model.why import Explanation, NoCoordinator, Reason, UnfinishedDependency
from interlock.service.project_folder import ProjectFolder
from interlock.service.run_request import NAMESPACE, from_record


@contextmanager
def last_run(folder: ProjectFolder) -> Iterator[tuple[Reader, Run]]:
    """The journal, and the run that was started last."""
    with folder.reader() as reader:
        run = reader.last_run()
        if run is None:
            raise UsageError(f"nothing has run in {folder.root} yet; start with `interlock run`")
        yield reader, run


class FollowedRun:
    """The last run of a project. Each call reads what has been written to the journal since."""

    def __init__(self, folder: ProjectFolder, reader: Reader, run: Run) -> None:
        self._folder = folder
        self._reader = reader
        self._run = run
        request = from_record(reader.record(NAMESPACE, run.id))
        title = "" if request is None else request.title
        self.fold = RunFold(run.id, run.started_at, plan=title)

    def facts(self) -> RunFacts:
        """The facts of the run at this moment."""
        active = self._folder.is_active()
        self.fold.take(self._reader.all_events(self._run, self.fold.last))
        return self.fold.facts(time.time(), active=active)

    def events(self, since: int = 0) -> Iterator[Event]:
        """The events after a number, then those that happen, until no more will come."""
        pause = Flag()
        while True:
            over = self.is_over()
            for event in self._reader.all_events(self._run, since):
                since = event.number
                yield event
            if over:
                return
            pause.wait(PAUSE)

    def lines(self, task_id: str, since: int = 0) -> Iterator[tuple[int, str]]:
        """The lines that a task has logged after an event, each with the number of its event."""
        for event in self._reader.all_events(self._run, since):
            if event.kind is Kind.LOGGED and event.task_id == task_id:
                yield event.number, event.fields.get("line", "")

    def is_over(self) -> bool:
        """Whether no more events will come: the run is closed, or no process carries it out.

        Call this before reading: only then is the journal known to be complete.
        """
        return not self._reader.run(self._run.id).is_open or not self._folder.is_active()


def facts_of(folder: ProjectFolder) -> RunFacts:
    """The facts of the last run."""
    with last_run(folder) as (reader, run):
        return FollowedRun(folder, reader, run).facts()


def task_of(facts: RunFacts, task_id: str) -> TaskFacts:
    """One task of a run. Raises UnknownTask, with similar ids, if there is none."""
    for task in facts.tasks:
        if task_id in (task.id, task.retry_of):
            return task
    ids = [each.id for each in facts.tasks]
    close = [each for each in ids if task_id.lower() in each.lower()][:5]
    close = close or get_close_matches(task_id, ids, n=1)
    meant = f"; did you mean {' or '.join(close)}?" if close else ""
    raise UnknownTask(f"run {facts.run_id} has no task {task_id!r}{meant}")


def explain_offline(facts: RunFacts, task_id: str) -> Explanation:
    """Why a task is waiting, as far as the journal of a run without a coordinator tells."""
    task = task_of(facts, task_id)
    began = facts.started_at
    reasons: list[Reason] = []
    if not task.state.is_end:
        reasons += (
            UnfinishedDependency(each.id, each.state, each.since - began)
            for each in facts.tasks
            if each.id in task.after and not each.state.is_end
        )
        last = max((each.since for each in facts.tasks), default=began)
        reasons.append(NoCoordinator(facts.run_id, last - began))
    suggestions = ("interlock run --resume",) if reasons else ()
    return Explanation(
        task.id, task.state, task.since - began, tuple(reasons), None, suggestions, facts.at - began
    )
