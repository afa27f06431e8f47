"""The public methods that submit tasks: a Runtime has them, and a TaskContext for children."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from datetime import datetime
from difflib import get_close_matches
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from interlock.errors import FatalError, InvalidOption
from interlock.execution.call_spec import name_of
from interlock.kernel import stimuli as s
from interlock.model.claim import Claim, Patterns, uses
from interlock.model.command import Command
from interlock.model.duration import Duration, seconds
from interlock.model.limits import Retry
from interlock.model.outcome import Outcome
from interlock.model.result import RunResult
from interlock.model.task import After, Task
from interlock.model.template import Template
from interlock.runtime.handle import Handle
from interlock.runtime.loop_thread import LoopThread
from interlock.runtime.submission.parent import Parent
from interlock.runtime.submission.prepared import Prepared
from interlock.runtime.submission.refusing import refuse_conflicts
from interlock.runtime.task_table import TaskTable
from interlock.runtime.waitable import Waitable

if TYPE_CHECKING:
    from interlock.runtime.context import TaskContext

_PLACEHOLDER = re.compile(r"\{\w*(\[[^]]*\])?\}")

OnConflict = Literal["wait", "refuse"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class RunsAsync(Protocol[T_co]):
    """An agent that is an object with an async `run(ctx)`."""

    def run(self, ctx: TaskContext, /) -> Awaitable[T_co]: ...


class Runs(Protocol[T_co]):
    """An agent that is an object with a blocking `run(ctx)`."""

    def run(self, ctx: TaskContext, /) -> T_co: ...


class RunsStep(Protocol[T_co]):
    """An agent that is an object with a blocking `run_step()`."""

    def run_step(self) -> T_co: ...


class TaskOptions(TypedDict, total=False):
    """The options of a task, as `submit` and `map` take them. `Task` says what they mean."""

    id: str | None
    prompt: str | Template | None
    kwargs: Mapping[str, Any]
    writes: Patterns
    reads: Patterns
    uses: str | Claim | Iterable[str | Claim]
    claims: Iterable[Claim]
    after: After
    priority: int
    timeout: Duration | None
    deadline: Duration | datetime | None
    retry: Retry | None
    estimate: Duration | None
    key: str | None
    workspace: str | None
    guard: str | None
    output: Any
    labels: Mapping[str, str]


class Prepares(Protocol):
    """What gives tasks the form in which their claims are compared."""

    @property
    def fold_case(self) -> bool: ...
    def prepare(self, task: Task) -> Prepared: ...


class SubmitRun(Protocol):
    """What these methods ask of the run that they submit to."""

    @property
    def loop_thread(self) -> LoopThread: ...
    @property
    def tasks(self) -> TaskTable: ...
    @property
    def is_durable(self) -> bool: ...
    @property
    def preparation(self) -> Prepares: ...

    def holders(self) -> list[tuple[str, tuple[Claim, ...]]]: ...
    def now(self) -> float: ...
    def take_in(self, stimulus: s.Stimulus) -> None: ...
    def cancel_group(self, group: str, reason: str) -> None: ...
    def take_fatal(self, task_ids: Iterable[str]) -> tuple[str, BaseException] | None: ...
    def ends(self, handles: Sequence[Handle[Any]]) -> Awaitable[None]: ...
    async def flush(self) -> None: ...
    def submit(
        self,
        tasks: Sequence[Task | Prepared],
        context: Context,
        parent: Parent | None = None,
        group: str = "",
        fail_fast: bool = False,
        deadline: float | None = None,
    ) -> list[Handle[Any]]: ...


class Submitting:
    """`submit`, `run`, `map`: in a context they make children of its task. `wait_all` waits."""

    __slots__ = ()

    def _submits_to(self) -> tuple[SubmitRun, Parent | None]:
        """The run to submit to, and the attempt whose children the tasks are."""
        raise NotImplementedError

    @overload
    def submit(
        self, agent: Callable[..., Awaitable[T]], /, *args: Any, **options: Unpack[TaskOptions]
    ) -> Handle[T]: ...
    @overload
    def submit(
        self, agent: Callable[..., T], /, *args: Any, **options: Unpack[TaskOptions]
    ) -> Handle[T]: ...
    @overload
    def submit(self, agent: RunsAsync[T], /, **options: Unpack[TaskOptions]) -> Handle[T]: ...
    @overload
    def submit(self, agent: Runs[T], /, **options: Unpack[TaskOptions]) -> Handle[T]: ...
    @overload
    def submit(self, agent: RunsStep[T], /, **options: Unpack[TaskOptions]) -> Handle[T]: ...
    @overload
    def submit(self, agent: Command, /, **options: Unpack[TaskOptions]) -> Handle[Any]: ...
    @overload
    def submit(self, agent: Task, /) -> Handle[Any]: ...

    def submit(self, agent: Any, /, *args: Any, **options: Any) -> Handle[Any]:
        """Submit an agent with its arguments, or a Task. The options are those of `Task`.

        It starts the moment its claims, its dependencies and a slot are free together. A handle
        among the arguments makes a dependency and arrives as its result. From any thread.
        """
        run, parent = self._submits_to()
        _check_options(options)
        if isinstance(agent, Task):
            if args or options:
                raise InvalidOption("a Task has all its options already; use task.replace(...)")
            tasks = [agent]
        else:
            task_id = options.pop("id", None)
            if task_id is None:
                task_id = run.loop_thread.call(fresh_id, run, parent, name_of(agent))
            tasks = [Task(task_id, agent, args=args, **options)]
        handle = run.loop_thread.call(run.submit, tasks, copy_context(), parent)[0]
        if run.is_durable and not run.loop_thread.is_current():
            run.loop_thread.wait(run.flush, None)  # a thread can wait for its acknowledgement
        return handle

    def submit_all(
        self,
        tasks: Iterable[Task],
        *,
        fail_fast: bool = False,
        max_parallel: int | None = None,
        name: str | None = None,
        on_conflict: OnConflict = "wait",
    ) -> list[Handle[Any]]:
        """Submit tasks together, all of them or, with an error, none; a handle for each.

        They may come after each other in any order. With `fail_fast` the first one that does not
        succeed cancels the others. At most `max_parallel` of them run at once; `why` calls that
        limit `slots of NAME` (`slots of NAME~2` when the name is used again). With
        `on_conflict="refuse"`, ResourceConflictError is raised if a claim conflicts with that of an
        unfinished task, of an attempt that is alive, or of another one of these.
        """
        run, parent = self._submits_to()
        needs_group = fail_fast or (max_parallel is not None and name is None)
        group = run.loop_thread.call(run.tasks.fresh_group) if needs_group else ""
        terms = _Terms(name or group, max_parallel, on_conflict)
        handles = run.loop_thread.call(
            _submit, run, list(tasks), terms, copy_context(), parent, group, fail_fast
        )
        if run.is_durable and not run.loop_thread.is_current():
            run.loop_thread.wait(run.flush, None)
        return handles

    def wait_all(self, tasks: Iterable[str | Handle[Any]]) -> Waitable[list[Outcome[Any]]]:
        """Wait until all of these have ended, however: `outcomes = await rt.wait_all([...])`.

        Ids or handles. Inside a task it is one wait, with the slot lent out.
        """
        run, _ = self._submits_to()
        listed = list(tasks)

        async def ends() -> list[Outcome[Any]]:
            handles = [_handle_of(run.tasks, each) for each in listed]
            await run.ends(handles)
            return list(outcomes_of(handles))

        return Waitable(run.loop_thread, ends, "wait_all()")

    def run(
        self,
        tasks: Iterable[Task],
        *,
        fail_fast: bool = False,
        deadline: Duration | None = None,
        max_parallel: int | None = None,
        name: str | None = None,
        on_conflict: OnConflict = "wait",
    ) -> Waitable[RunResult]:
        """Run tasks together and wait for all of them: `result = await rt.run([...])`.

        One failure leaves the others alone, unless `fail_fast`. At the `deadline` every task that
        has not ended is timed out. Cancelling the caller cancels the tasks. `max_parallel`, `name`
        and `on_conflict` are those of `submit_all`.
        """
        run, parent = self._submits_to()
        if isinstance(tasks, Task) or not isinstance(tasks, Iterable):
            raise InvalidOption(f"run() takes a list of tasks, not {tasks!r}")
        listed = list(tasks)
        latest = None if deadline is None else seconds(deadline, "deadline")

        async def wait() -> RunResult:
            group = run.tasks.fresh_group()
            terms = _Terms(name or group, max_parallel, on_conflict)
            return await _run(run, listed, parent, fail_fast, latest, group, terms)

        return Waitable(run.loop_thread, wait, "run()")

    @overload
    def map(
        self,
        agent: Callable[..., Awaitable[T]],
        items: Iterable[Any],
        /,
        **options: Unpack[TaskOptions],
    ) -> Waitable[list[Outcome[T]]]: ...
    @overload
    def map(
        self, agent: Callable[..., T], items: Iterable[Any], /, **options: Unpack[TaskOptions]
    ) -> Waitable[list[Outcome[T]]]: ...

    def map(
        self, agent: Any, items: Iterable[Any], /, **options: Any
    ) -> Waitable[list[Outcome[Any]]]:
        """Call an agent with each item; the outcomes come in the order of the items.

        In texts, `{item}` stands for the item and `{index}` for its number from 0:
        `writes="docs/{item}.md"`.
        """
        run, parent = self._submits_to()
        _check_options(options)
        listed = list(items)

        async def mapped() -> list[Outcome[Any]]:
            tasks = []
            for index, item in enumerate(listed):
                own = {name: _filled(value, item, index) for name, value in options.items()}
                task_id = own.pop("id", None)
                if task_id is None or task_id == options.get("id"):
                    task_id = fresh_id(run, parent, task_id or name_of(agent))
                tasks.append(Task(task_id, agent, args=(item,), **own))
            group = run.tasks.fresh_group()
            return list((await _run(run, tasks, parent, False, None, group, _Terms())).outcomes)

        return Waitable(run.loop_thread, mapped, "map()")


def fresh_id(run: SubmitRun, parent: Parent | None, name: str) -> str:
    """An id made of a readable name; each attempt of a parent makes the same for its children."""
    return run.tasks.ids.next(name, "-") if parent is None else parent.fresh_id(name)


class _Terms(NamedTuple):
    """On which terms tasks are submitted together."""

    name: str = ""
    max_parallel: int | None = None
    on_conflict: OnConflict = "wait"


def _submit(
    run: SubmitRun,
    tasks: list[Task],
    terms: _Terms,
    context: Context,
    parent: Parent | None,
    group: str,
    fail_fast: bool,
    deadline: float | None = None,
) -> list[Handle[Any]]:
    """Submit tasks on these terms. On the loop's thread."""
    if terms.on_conflict not in ("wait", "refuse"):
        raise InvalidOption(f"on_conflict is {terms.on_conflict!r}; it can be 'wait' or 'refuse'")
    if terms.on_conflict == "refuse":
        own = _with_ancestors(run, parent)  # children may claim what these hold
        # A key that is known stands for the task that has it, which is not submitted again.
        new = [each for each in tasks if each.key is None or run.tasks.with_key(each.key) is None]
        refuse_conflicts(
            [run.preparation.prepare(each).task for each in new],
            [each for each in run.holders() if each[0] not in own],
            fold_case=run.preparation.fold_case,
        )
    limited = _limited(run, tasks, terms, group)
    return run.submit(limited, context, parent, group, fail_fast, deadline)


def _with_ancestors(run: SubmitRun, parent: Parent | None) -> set[str]:
    found: set[str] = set()
    task_id = None if parent is None else parent.task.id
    while task_id is not None and task_id not in found:
        found.add(task_id)
        above = run.tasks.named(task_id).parent
        task_id = None if above is None else above[0]
    return found


def _limited(run: SubmitRun, tasks: list[Task], terms: _Terms, group: str) -> list[Task]:
    """The tasks, with a claim on a counted resource that only they share."""
    most = terms.max_parallel
    if most is None:
        return tasks
    if type(most) is not int or most < 1:
        raise InvalidOption(f"max_parallel is {most!r}; it must be a whole number, 1 or more")
    if most >= len(tasks):
        return tasks
    # Groups have names that no other has; a name that was given may have been used before, as by
    # an earlier attempt of a parent.
    name = terms.name if terms.name == group else run.tasks.fresh_limit(terms.name)
    resource = f"slots of {name}"
    run.take_in(s.Define(resource, most))
    slot = uses(resource)
    return [task.claiming(slot) for task in tasks]


async def _run(
    run: SubmitRun,
    tasks: list[Task],
    parent: Parent | None,
    fail_fast: bool,
    deadline: float | None,
    group: str,
    terms: _Terms,
) -> RunResult:
    began = run.now()
    handles = _submit(run, tasks, terms, copy_context(), parent, group, fail_fast, deadline)
    try:
        await run.ends(handles)
    except BaseException:
        # Its only caller has stopped waiting, so its outcomes would never be seen.
        run.cancel_group(group, "its caller no longer waits for it")
        raise
    outcomes = outcomes_of(handles)
    fatal = run.take_fatal(each.task_id for each in outcomes)
    if fatal is not None:
        raise FatalError(fatal[0], repr(fatal[1]), outcomes) from fatal[1]
    return RunResult(outcomes, run.now() - began, tuple(task.id for task in tasks))


def _handle_of(tasks: TaskTable, task: str | Handle[Any]) -> Handle[Any]:
    if isinstance(task, str):
        return tasks.named(task)
    # The run may have forgotten a task whose handle the program still holds.
    return task if task.outcome is not None else tasks.named(task.task_id)


def outcomes_of(handles: Iterable[Handle[Any]]) -> tuple[Outcome[Any], ...]:
    """The outcomes of tasks that have ended. Of the handles: the run may have forgotten them."""
    outcomes = tuple(handle.outcome for handle in handles)
    assert None not in outcomes, "a task that was waited for has not ended"
    return cast(tuple[Outcome[Any], ...], outcomes)


def _check_options(options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in TaskOptions.__annotations__:
            close = get_close_matches(name, TaskOptions.__annotations__, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise InvalidOption(
                f"there is no option {name!r}{meant} Keyword arguments of the agent go into "
                f"kwargs={{{name!r}: ...}}"
            )


def _filled(value: Any, item: Any, index: int) -> Any:
    if isinstance(value, str):
        # Not str.format: braces are also part of patterns, as in `{a,b}.py`.
        filled = value.replace("{item}", str(item)).replace("{index}", str(index))
        unknown = _PLACEHOLDER.search(value.replace("{item}", "").replace("{index}", ""))
        if unknown:
            raise InvalidOption(f"{value!r}: {unknown[0]} is neither {{item}} nor {{index}}")
        return filled
    if isinstance(value, Template):
        return Template(
            _filled(each, item, index) if isinstance(each, str) else each for each in value.parts
        )
    if isinstance(value, Claim):
        return Claim(_filled(value.resource, item, index), value.mode, value.amount)
    if isinstance(value, (list, tuple)):
        return [_filled(each, item, index) for each in value]
    return value
