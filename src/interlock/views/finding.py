"""How the last run of a project stands: from its coordinator if there is one, else the journal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from interlock.errors import NotRunning, UnknownTask, UsageError
from interlock.journal.reader import Reader, Run
from interlock.model.event import Kind
from interlock.model.why import Explanation, NotCarriedOut, Reason, UnfinishedDependency
from interlock.views.control import Unanswered, ask
from interlock.views.facts import RunFacts, TaskFacts
from interlock.views.fold import RunFold
from interlock.views.place import Place
from interlock.views.request import NAMESPACE, from_record


@contextmanager
def last_run(place: Place) -> Iterator[tuple[Reader, Run]]:
    """The journal, and the run that was started last."""
    with place.reader() as reader:
        run = reader.last_run()
        if run is None:
            raise UsageError(f"nothing has run in {place.root} yet")
        yield reader, run


def is_active(place: Place) -> bool:
    """Whether somebody carries out a run here at this moment."""
    try:
        ask(place.folder, "ping")
    except NotRunning:
        return False
    except Unanswered:
        return True  # it is there, and busy or stopped
    return True


class Following:
    """The last run of a project, read on as it is written."""

    def __init__(self, reader: Reader, run: Run, active: bool) -> None:
        self._reader = reader
        self._run = run
        self._active = active
        request = from_record(reader.record(NAMESPACE, run.id))
        title = "" if request is None else request.title
        self.fold = RunFold(run.id, run.started_at, plan=title)

    def facts(self) -> RunFacts:
        """How it stands now."""
        self.fold.take(self._reader.all_events(self._run, self.fold.last))
        return self.fold.facts(time.time(), active=self._active)

    def lines(self, task_id: str, since: int = 0) -> Iterator[tuple[int, str]]:
        """What a task has logged after an event, each with the number of its own."""
        for event in self._reader.all_events(self._run, since):
            if event.kind is Kind.LOGGED and event.task_id == task_id:
                yield event.number, event.fields.get("line", "")

    def is_over(self) -> bool:
        """Whether nothing more will come: the run is closed, or nobody carries it out."""
        return not self._active or not self._reader.run(self._run.id).is_open


def facts_of(place: Place) -> RunFacts:
    """How the last run stands."""
    with last_run(place) as (reader, run):
        return Following(reader, run, is_active(place)).facts()


def task_of(facts: RunFacts, task_id: str) -> TaskFacts:
    """One task; an error that names similar ones if there is none."""
    for task in facts.tasks:
        if task.id == task_id:
            return task
    close = [each.id for each in facts.tasks if task_id.lower() in each.id.lower()][:5]
    meant = f"; did you mean {' or '.join(close)}?" if close else ""
    raise UnknownTask(f"run {facts.run_id} has no task {task_id!r}{meant}")


def why_not(facts: RunFacts, task_id: str) -> Explanation:
    """Why a task of a run that nobody carries out does not go on."""
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
        reasons.append(NotCarriedOut(facts.run_id, last - began))
    help_ = ("interlock run --resume",) if reasons else ()
    return Explanation(
        task.id, task.state, task.since - began, tuple(reasons), None, help_, facts.at - began
    )
