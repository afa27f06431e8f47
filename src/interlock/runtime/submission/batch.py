"""Taking tasks in together: all of them are accepted or, with an error, none."""

from __future__ import annotations

from contextvars import Context
from datetime import datetime
from typing import Any, Protocol

from interlock.errors import DuplicateId, InvalidOption
from interlock.journal.schema.codec import Codec
from interlock.journal.sqlite import SqliteJournal
from interlock.kernel import stimuli as s
from interlock.model.claim import Claim
from interlock.model.event import Kind
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.model.template import Template
from interlock.runtime.handle import Handle, HandleRun, Submission
from interlock.runtime.outcomes import OutcomeBuilder
from interlock.runtime.output import as_type
from interlock.runtime.recovery.known_tasks import KnownTasks
from interlock.runtime.requests import AttemptRequests
from interlock.runtime.submission.parent import Parent, plain
from interlock.runtime.submission.preparation import Preparation
from interlock.runtime.submission.prepared import Prepared
from interlock.runtime.task_table import TaskTable


class BatchRun(HandleRun, Protocol):
    """What a batch asks of the run that it is submitted to."""

    @property
    def tasks(self) -> TaskTable: ...
    @property
    def preparation(self) -> Preparation: ...
    @property
    def requests(self) -> AttemptRequests: ...
    @property
    def outcomes(self) -> OutcomeBuilder: ...
    @property
    def known_tasks(self) -> KnownTasks | None: ...
    @property
    def disk(self) -> SqliteJournal | None: ...

    def now(self) -> float: ...
    def take_in(self, stimulus: s.Stimulus) -> None: ...
    def note(self, kind: Kind, task_id: str, data: Any = None) -> None: ...


class TaskBatch:
    """Tasks on their way in. Nothing has changed before `take_in`."""

    def __init__(self, run: BatchRun, context: Context, parent: Parent | None) -> None:
        self._run = run
        self._parent = parent
        whose = None if parent is None else (parent.task.id, parent.token)
        self._submission = Submission(run, context, whose)
        self._fresh: list[Handle[Any]] = []
        self._past: list[s.Past | None] = []
        """What the tasks in `_fresh` went through before the run was resumed."""
        self._recalled: list[Handle[Any]] = []
        """Tasks whose outcome is known: they succeeded in an earlier run, or before a resume."""
        self._keys: dict[str, Handle[Any]] = {}
        self._claims: dict[Claim, Claim] = {}

    def add(self, given: Task | Prepared) -> Handle[Any]:
        """Check a task; returns its handle, or that of the same task if it is known already."""
        run = self._run
        task = given.task if isinstance(given, Prepared) else given
        if not isinstance(task, Task):
            raise InvalidOption(f"{task!r} is not a Task; write Task('some-id', agent, ...)")
        key = task.key
        if run.disk is not None:
            _check_storable(run.disk.codec, task)
        if key is not None:
            earlier = run.tasks.with_key(key) or self._keys.get(key)
            if earlier is not None:
                run.tasks.ids.submitted((task.id,))  # no task will ever have this id
                return earlier
        if self._parent is not None:
            again = _again(run, self._parent, task)
            if isinstance(again, Handle):
                return again
            task = again
        elif run.known_tasks is not None:
            task = run.known_tasks.as_known(task)
        # A task that was renamed or reprioritized above is another task than the prepared one.
        if not isinstance(given, Prepared) or task is not given.task:
            given = run.preparation.prepare(task, self._claims)
        handle = self._handle(given, task)
        if key is not None:
            self._keys[key] = handle
        return handle

    def _handle(self, prepared: Prepared, task: Task) -> Handle[Any]:
        resolved, spec = prepared
        remembered = self._run.known_tasks
        found = None if remembered is None else remembered.find(resolved)
        if isinstance(found, Outcome):
            outcome = as_type(found, task.output)
            handle: Handle[Any] = Handle(self._submission, resolved, spec, outcome)
            self._recalled.append(handle)
            return handle
        if found is not None and isinstance(task.deadline, datetime):
            # The program has given the moment anew. A duration continues from where it was.
            found = found._replace(deadline_at=None)
        if self._run.tasks.has_forgotten_ids:  # asked here: most runs never forget an id
            self._check_forgotten(resolved.id)
        handle = Handle(self._submission, resolved, spec)
        self._fresh.append(handle)
        self._past.append(found)
        return handle

    def _check_forgotten(self, task_id: str) -> None:
        """Raise DuplicateId for an id that is only forgotten in memory.

        In the journal an id names one task of a run. A second task under that id would look, after
        a crash, as if it had the outcome of the first.
        """
        if self._run.tasks.is_only_stored(task_id):
            raise DuplicateId(
                f"there was a task with the id {task_id!r} in this run, long ago; the journal has "
                "it, so give this one another id"
            )

    def take_in(self, group: str, fail_fast: bool, deadline: float | None) -> None:
        """Hand all of them to the kernel. If it rejects one, none has been accepted."""
        run, fresh, parent = self._run, self._fresh, self._parent
        # First, because the fresh ones may depend on them.
        self._recall()
        if fresh:
            deadline = self._remaining(deadline)
            past = tuple(self._past) if any(self._past) else ()
            tasks = tuple([each.task for each in fresh])
            stimulus = s.Submit(tasks, group, fail_fast, deadline, past=past)
            if parent is not None:
                parent.check_open()
                stimulus = stimulus._replace(parent=parent.task.id, token=parent.token)
            run.take_in(stimulus)
            # Only now: a rejected batch must leave no handle behind. The kernel may have started
            # some of these tasks already, but that is carried out at the end of the turn.
            run.tasks.add(fresh)
        run.tasks.bind_keys(self._keys)
        if run.known_tasks is not None:
            self._bring(run.known_tasks)

    def _bring(self, remembered: KnownTasks) -> None:
        """The program has submitted tasks that the journal may know."""
        run = self._run
        for handle in (*self._fresh, *self._recalled):
            remembered.bring(handle.task.id)
            if remembered.asks_about(handle.task.id):
                run.requests.ask_to_rerun(handle.task.id)
        for handle in self._fresh:
            run.outcomes.add_usage(handle.task.id, remembered.usage(handle.task.id))

    def _remaining(self, deadline: float | None) -> float | None:
        """The time that a group has left: a resume does not start it anew."""
        remembered = self._run.known_tasks
        if deadline is None or remembered is None:
            return deadline
        until = remembered.group_until(each.task for each in self._fresh)
        return deadline if until is None else max(0.0, until - self._run.now())

    def _recall(self) -> None:
        """Tell the kernel what earlier runs have done: other tasks may depend on it."""
        run = self._run
        unknown = [each for each in self._recalled if not run.tasks.has(each.task.id)]
        if unknown:
            ends = tuple((each.task.id, State.SUCCEEDED) for each in unknown)
            run.take_in(s.Recall(ends))
            for handle in unknown:
                run.note(Kind.SUBMITTED, handle.task.id, handle.task)
                run.note(Kind.REUSED, handle.task.id, handle.outcome)
        run.tasks.recall(self._recalled)


def _check_storable(codec: Codec, task: Task) -> None:
    """Ids and keys have to be readable in the journal as they are."""
    codec.check_name("the id of a task", task.id)
    if task.key is not None:
        codec.check_name("the key of a task", task.key)


def _again(run: BatchRun, parent: Parent, task: Task) -> Task | Handle[Any]:
    """A child that an earlier attempt of the same parent may have submitted already.

    If it succeeded then, it is not run again. If not, it runs under a new id, because the earlier
    outcome stands.
    """
    after = tuple(parent.renamed.get(each, each) for each in task.after)
    name, count = task.id, 1
    while (earlier := run.tasks.get(name)) is not None:
        if _is_of_earlier_attempt(earlier, parent):
            if _is_done(run, earlier, task):
                parent.renamed[task.id] = name
                return earlier
        elif count == 1 or earlier.parent == (parent.task.id, parent.token):
            break  # the id belongs to another task, or to a sibling: the kernel has the error
        count += 1
        name = f"{task.id}~{count}"
    if name != task.id:
        parent.renamed[task.id] = name
    if isinstance(task.prompt, Template):
        task = task.replace(after=after, prompt=task.prompt.renamed(parent.renamed))
    return task.replace(id=name, after=after) if (name, after) != (task.id, task.after) else task


def _is_of_earlier_attempt(earlier: Handle[Any], parent: Parent) -> bool:
    """Whether it is a child of an earlier attempt of this parent, under whatever id."""
    if earlier.parent is None:
        return False
    task_id, token = earlier.parent
    return token != parent.token and parent.plain_id in (task_id, plain(task_id))


def _is_done(run: BatchRun, earlier: Handle[Any], task: Task) -> bool:
    """Whether an earlier task has succeeded that had the same to do."""
    if earlier.outcome is None or not earlier.outcome.succeeded:
        return False
    again = task.replace(id=earlier.task.id, claims=earlier.task.claims)
    if earlier._call_spec is None and run.known_tasks is not None:
        # It was restored from the journal, which knows only the name of its agent.
        return run.known_tasks.is_same(again) is True
    codec = Codec()
    return codec.task(earlier.task)[1] == codec.task(again)[1]
