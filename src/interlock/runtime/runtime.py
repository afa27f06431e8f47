"""The public API of a run: what can be done inside `async with Runtime() as rt:`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextvars import Context, copy_context
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from interlock.errors import InterlockError, InvalidOption, NotRunning
from interlock.journal.agent_identity import agent_name
from interlock.journal.history import Estimate
from interlock.journal.port import Records
from interlock.journal.store import Durability
from interlock.kernel import stimuli as s
from interlock.kernel.kernel import Kernel
from interlock.model.duration import Duration, seconds
from interlock.model.event import Event
from interlock.model.limits import Breaker, Rate
from interlock.model.load import Gate
from interlock.model.outcome import Outcome
from interlock.model.progress import Progress
from interlock.model.task import Task
from interlock.model.why import Explanation, Reason
from interlock.plan.records import Plan, Project
from interlock.runtime.claim_paths import WorkspacePaths
from interlock.runtime.handle import Handle, Running
from interlock.runtime.lifecycle import Lifecycle
from interlock.runtime.limits.options import MaxParallel, check_gate, parse_limits, slots_of
from interlock.runtime.loop_thread import LoopThread
from interlock.runtime.ports import Ports
from interlock.runtime.project import ProjectAgents, options_of, tasks_of
from interlock.runtime.recovery.known_tasks import WhenChanged, WhenInterrupted
from interlock.runtime.recovery.open_run import (
    DurableOptions,
    OpenedRun,
    Unserializable,
    new_run_id,
    open_in_memory,
    open_on_disk,
)
from interlock.runtime.requests import Question
from interlock.runtime.run_settings import RunSettings
from interlock.runtime.shell import Shell
from interlock.runtime.submission.parent import Parent
from interlock.runtime.submission.prepared import Prepared
from interlock.runtime.submission.retrying import follow_ups
from interlock.runtime.submission.submitting import SubmitRun, Submitting
from interlock.runtime.task_table import REMEMBERED_IDS

T = TypeVar("T")

Order = Literal["critical_path", "first_come"]


class Runtime(Submitting):
    """Runs tasks, and never two conflicting ones at the same time.

        async with Runtime(max_parallel=4) as rt:
            handle = rt.submit(agent, writes="src/**")
            outcome = await handle

    Leaving the block waits for every submitted task; leaving it by an exception cancels them. In
    both cases, attempts that do not stop are waited for at most `grace` seconds and are then named
    in AttemptsStillAlive.

    `max_parallel` is the maximum number of concurrent attempts; `Auto(1, 16)` follows the load of
    the machine between these bounds. `workspace` is the folder that path claims are relative to.
    `capacity` gives the amounts of counted resources, `limits` the rates and breakers. `protected`
    paths can never be claimed for writing. Above the load of the `gate`, a task starts only if no
    other is running. `order` decides which of several startable tasks starts first: the one that
    makes the run shortest, or the one that came first (`first_come`). An attempt that was told to
    stop and has not stopped keeps its claims; without `zombies_hold_slots`, another task may use
    its slot meanwhile.

    `max_outcomes` keeps a long-lived run small: the outcomes of that many ended tasks are kept. A
    task that depends on an older one finds no result of it in `ctx.results`. The id and the
    idempotency key of an older task stay taken until 10,000 more tasks have ended. After that a
    task that depends on it is rejected (UnknownDependency). Without a journal the id is free then,
    and a task with that key runs again; with a journal the id stays taken, and the key is found.

    `journal` is a file that records the run. If the process is killed at any point, `resume=True`
    (or the id of a run) continues it; `resume="open"` does so only if the last run is unfinished.
    The program submits the same tasks again: a task that succeeded is not run again, an
    interrupted one is, unless `on_interrupted` says otherwise. A task that has changed is rejected;
    with `on_changed="rerun"` it runs if it had not finished. `unserializable` decides about
    results that JSON cannot hold: the attempt fails, or the task runs again after a resume.
    `durability="normal"` is faster: a crash of the process loses nothing, a power cut may lose the
    last moments. `secrets` are texts that never reach the journal.
    """

    def __init__(
        self,
        max_parallel: MaxParallel = 8,
        workspace: str | os.PathLike[str] = ".",
        journal: str | os.PathLike[str] | None = None,
        resume: bool | str | None = None,
        *,
        capacity: Mapping[str, int] | None = None,
        limits: Mapping[str, Rate | Breaker] | None = None,
        gate: Gate | None = None,
        protected: Iterable[str] = (),
        order: Order = "critical_path",
        zombies_hold_slots: bool = True,
        max_outcomes: int | None = None,
        grace: Duration = 30.0,
        durability: Durability = "full",
        on_interrupted: WhenInterrupted = "rerun",
        on_changed: WhenChanged = "refuse",
        unserializable: Unserializable = "refuse",
        secrets: Iterable[str] = (),
        ports: Ports | None = None,
    ) -> None:
        if resume and journal is None:
            raise InvalidOption("resume needs the journal of the run: journal='path'")
        if not isinstance(journal, str | os.PathLike | None):
            raise InvalidOption(f"journal is {journal!r}; it is the path of a file")
        if isinstance(secrets, str):
            secrets = (secrets,)
        self._journal = journal
        self._resume = resume
        self._workspace = WorkspacePaths(workspace)
        self._durable = DurableOptions(
            durability,
            on_interrupted,
            on_changed,
            unserializable,
            tuple(secrets),
            str(self._workspace.root),
        )
        _check_choices(self._durable, order)
        self._ports = ports or Ports()
        self._grace = seconds(grace, "grace")
        self._limits = parse_limits(max_parallel, capacity, limits, gate)
        if max_outcomes is not None and (type(max_outcomes) is not int or max_outcomes < 1):
            raise InvalidOption(f"max_outcomes is {max_outcomes!r}; it must be a number of tasks")
        self._max_outcomes = max_outcomes
        self._make_kernel = partial(
            Kernel,
            slots=self._limits.slots,
            capacities=self._limits.capacities,
            rates=self._limits.rates,
            protected=tuple((protected,) if isinstance(protected, str) else protected),
            fold_case=self._workspace.fold_case,
            first_come=order == "first_come",
            zombies_hold_slots=bool(zombies_hold_slots),
            max_ended=None if max_outcomes is None else max_outcomes + REMEMBERED_IDS,
        )
        self._kernel = self._make_kernel()  # at once: it has the errors for impossible options
        self._agents: ProjectAgents | None = None
        self._lifecycle: Lifecycle | None = None
        self.run_id = new_run_id(self._ports)
        """The id of this run, or of the run that is resumed: readable, and never used twice."""

    @classmethod
    def for_project(cls, project: Project, **options: Any) -> Self:
        """A Runtime with the agents, limits and paths of a project; `options` override them."""
        # None is what a command line passes for an option that was not given.
        given = {name: value for name, value in options.items() if value is not None}
        agents = ProjectAgents(project)
        made = cls(**(options_of(project, agents.secrets.values()) | given))
        made._agents = agents
        return made

    # -- beginning and ending ---------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._lifecycle is not None:
            raise NotRunning("a Runtime is one run: make a new one instead of entering it again")
        origin = await self._origin()
        self.run_id = origin.run_id
        options = {**self._make_kernel.keywords, "first_token": origin.first_token}
        if origin.first_token > 1:
            # Tokens only grow, across restarts too: another kernel, which begins with a later one.
            self._kernel = Kernel(**options)
        settings = RunSettings(
            self._workspace,
            self._limits,
            self._grace,
            self._agents,
            self._max_outcomes,
            refuses_unserializable=self._durable.unserializable == "refuse",
        )
        shell = Shell(self._kernel, origin, self._ports, settings)
        interrupted = self._durable.on_interrupted
        self._lifecycle = lifecycle = Lifecycle(
            shell, self._ports, self._grace, interrupted, options
        )
        try:
            await lifecycle.begin()
        except BaseException as error:  # a cancellation as well: nothing may stay open
            await lifecycle.call_off(error)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._running().end(error)

    async def _origin(self) -> OpenedRun:
        if self._journal is None:
            return open_in_memory(self.run_id, self._durable, self._ports)
        return await open_on_disk(
            self._journal, self._resume, self.run_id, self._durable, self._ports, self._trouble
        )

    def _trouble(self, error: Exception | None) -> None:
        if self._lifecycle is not None:
            self._lifecycle.shell.in_trouble(error)

    async def flush(self) -> None:
        """Wait until everything that was submitted, cancelled or answered so far is durable."""
        await self._shell.flush()

    async def shutdown(self, grace: Duration = 30.0, *, cancel: bool = False) -> None:
        """Start nothing more, let running attempts finish within `grace`, then stop them.

        Tasks that have not started are cancelled at once. With `cancel`, running ones are too, and
        `grace` is the time they have to stop. Raises AttemptsStillAlive with those that did not.
        """
        await self._running().shut_down(seconds(grace, "grace"), cancel=cancel)

    def _running(self) -> Lifecycle:
        if self._lifecycle is None:
            raise NotRunning("enter the Runtime first: `async with Runtime() as rt:`")
        return self._lifecycle

    @property
    def _shell(self) -> Shell:
        return self._running().shell

    @property
    def is_durable(self) -> bool:
        """Whether the run has a journal on disk."""
        return self._journal is not None

    @property
    def loop_thread(self) -> LoopThread:
        """The thread of the event loop, and how other threads call functions on it."""
        return self._shell.loop_thread

    def _submits_to(self) -> tuple[SubmitRun, Parent | None]:
        return self._shell, None

    def agent(self, name: str) -> Any:
        """The agent of that name in the project file."""
        if self._agents is None:
            raise InvalidOption(
                f"there is no project file to find the agent {name!r} in; make the Runtime with "
                "Runtime.for_project(load_project('interlock.yaml'))"
            )
        return self._agents.named(name)

    def tasks_from(self, plan: Plan) -> list[Task]:
        """The tasks of a plan, for `submit_all` or `run`."""
        if self._agents is None:
            raise InvalidOption("a plan needs the agents of a project: Runtime.for_project(...)")
        return tasks_of(plan, self._agents)

    def fresh_id(
        self,
        name: str,
        separator: str = "~",
        *,
        numbered: bool = False,
        ids: Callable[[str], Iterable[str]] | None = None,
    ) -> str:
        """An id for a task that reuses a name: `name`, then `name~2`, `name~3`, ...

        With `numbered` the first one has a number as well. For a group of tasks, `ids` says which
        ids they have under a name; all of them are free under the name returned.
        """
        shell = self._shell
        return self._call(
            partial(shell.tasks.ids.next, name, separator, numbered=numbered, ids=ids)
        )

    def prepare(self, task: Task) -> Prepared:
        """Check a task for `post`, on any thread: an invalid one raises here."""
        shell = self._shell
        # With a journal it reads the history, which only the thread of the loop may do.
        prepare = shell.preparation.prepare
        prepared = self._call(prepare, task) if shell.is_durable else prepare(task)
        self._kernel.check(prepared.task)
        return prepared

    def post(
        self, prepared: Prepared, taken: Callable[[Handle[Any] | InterlockError], None]
    ) -> None:
        """Submit a task from another thread without waiting for the event loop.

        `taken` is called on the loop with the handle, or with the error that `submit` would have
        raised: for the id, for a dependency, or because of a shutdown.
        """
        shell = self._shell
        shell.loop_thread.post(_take, shell, prepared, copy_context(), taken)

    # -- looking ----------------------------------------------------------------------------

    def why(self, task: str | Handle[Any]) -> Explanation:
        """Every reason why a task is not running: print it, or read its `reasons`."""
        return self._call(self._shell.why, _id(task))

    def progress(self) -> Progress:
        """The number of tasks in each state, all at one moment."""
        return self._call(self._kernel.progress)

    def running(self) -> tuple[Running, ...]:
        """The attempts that are alive now, including those that were told to stop."""
        return self._call(self._shell.running)

    def handle(self, task_id: str) -> Handle[Any]:
        """The handle of a task of this run."""
        return self._call(self._shell.tasks.named, task_id)

    @property
    def outcomes(self) -> tuple[Outcome[Any], ...]:
        """The outcomes so far, in the order of submission."""
        handles = self._call(lambda: list(self._shell.tasks))
        return tuple(each.outcome for each in handles if each.outcome is not None)

    def events(self, since: int = 0) -> AsyncIterator[Event]:
        """The events after number `since`, including those to come.

        `async for event in rt.events()` ends when the run does.
        """
        if isinstance(since, bool) or not isinstance(since, int) or since < 0:
            raise InvalidOption(f"since is {since!r}; it is the number of an event, or 0")
        return self._shell.events.follow(since)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call a function for every event; returns a function that ends this.

        It is called on the event loop and must be quick. What it raises is logged.
        """
        if not callable(listener):
            raise InvalidOption(f"a listener is a function that takes an event, not {listener!r}")
        return self._call(self._shell.events.listen, listener)

    def on_throttle(self, listener: Callable[[str, Reason | None], None]) -> Callable[[], None]:
        """Have a function called when a limit gives out less, and when it is as before.

        It gets the name of the resource, and the reason (an OpenBreaker, a ClosedGate, a
        LoadedMachine) or None. It is called as a listener of events is, after the decision is
        durable; call what is returned to end it.
        """

        def hear(event: Event) -> None:
            if isinstance(event.data, s.Throttle):
                listener(event.data.resource, event.data.because)

        return self.listen(hear)

    @property
    def unsubmitted(self) -> tuple[str, ...]:
        """Unfinished tasks of a resumed run that have not been submitted again."""
        remembered = self._shell.known_tasks
        return () if remembered is None else remembered.unbound

    def history(self, agent: Any, label: str = "") -> Estimate | None:
        """How long an agent took (`n`, `mean`, `spread`), from the journal; None without one.

        With a label, written `name=value`: of the tasks that had it.
        """
        estimates = self._shell.estimates
        return None if estimates is None else self._call(estimates.look, agent_name(agent), label)

    def records(self, namespace: str) -> Records:
        """Small durable data outside of runs: `get`, `items`, `await put`, `await delete`."""
        return self._shell.journal.records(namespace)

    async def prune(self, *, keep: int | None = None, age: Duration | None = None) -> int:
        """Delete old closed runs: all but the last `keep`, and those that ended `age` ago.

        The successes of idempotency keys, records and durations stay. Returns the number of runs.
        """
        disk = self._shell.disk
        if disk is None:
            return 0
        if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
            raise InvalidOption(f"keep is {keep!r}; it must be a number of runs")
        oldest = None if age is None else seconds(age, "age")
        return await disk.prune(now=self._shell.clock.wall(), keep=keep, age=oldest)

    def questions(self) -> tuple[Question, ...]:
        """Questions of tasks to people that have no answer yet."""
        return self._call(self._shell.requests.questions)

    # -- steering ---------------------------------------------------------------------------

    def cancel(self, task: str | Handle[Any], reason: str = "cancelled") -> bool:
        """End a task, with its children; False if it has ended already."""
        return self._call(self._shell.cancel, _id(task), reason)

    def retry(self, task: str | Handle[Any]) -> dict[str, Handle[Any]]:
        """Run a task again that did not succeed, and every task that was skipped because of it.

        They are follow-ups with ids of their own (`a~2`); the first outcome stands. Returns the new
        handles by the old ids.
        """
        again = self._call(follow_ups, self._shell.tasks, _id(task))
        return dict(zip(again, self.submit_all(again.values()), strict=True))

    def answer(self, task: str | Handle[Any], answer: str) -> None:
        """Answer the oldest open question of a task."""
        self._call(self._shell.requests.answer, _id(task), answer)

    def pause(self, task: str | Handle[Any] | None = None) -> None:
        """Start nothing, or not this task, before `resume`. Running attempts go on."""
        self._take_in(s.Pause(None if task is None else _id(task)))

    def resume(self, task: str | Handle[Any] | None = None) -> None:
        """End a `pause`."""
        self._take_in(s.Unpause(None if task is None else _id(task)))

    def prioritize(self, task: str | Handle[Any], priority: int) -> None:
        """Give an unfinished task another priority."""
        self._take_in(s.Prioritize(_id(task), priority))

    def set_capacity(self, resource: str, capacity: int, *, new: bool = False) -> None:
        """Change the capacity of a counted resource; `slots` is `max_parallel`.

        `new` makes a name counted that was not so far, and that no unfinished task claims.
        """
        if new:
            self._take_in(s.Define(resource, capacity))
        elif resource == "slots":
            self._call(self._shell.slots.resize, capacity)
        else:
            self._take_in(s.SetCapacity(resource, capacity))

    def set_max_parallel(self, max_parallel: MaxParallel) -> None:
        """Change the maximum number of concurrent attempts, or its bounds. Running ones go on."""
        self._call(self._shell.slots.resize, slots_of(max_parallel))

    def set_gate(self, gate: Gate | None) -> None:
        """Change the load above which nothing starts; None: no limit."""
        self._call(self._shell.slots.set_gate, check_gate(gate))

    def set_limit(
        self,
        name: str,
        limit: Rate | Breaker,
        *,
        counts: Literal["attempts", "reports"] = "attempts",
    ) -> None:
        """Change a rate or a breaker, or add one. Amounts in use stay in use.

        A breaker that counts "reports" does not count failed attempts, only what `report` says.
        """
        set_limit = partial(self._shell.set_limit, counts_reports=counts == "reports")
        self._call(set_limit, name, limit)

    def report(self, breaker: str, failure: str | None) -> None:
        """Count a failure (in words), or a success (None), of something that uses no breaker."""
        self._call(self._shell.breakers.report, breaker, failure)

    def hold_rate(self, rate: str, duration: Duration) -> None:
        """Close a rate for some time, as a Retry-After header asks for."""
        self._call(self._shell.rates.hold, rate, seconds(duration, "duration"))

    def _take_in(self, stimulus: s.Stimulus) -> None:
        self._call(self._shell.take_in, stimulus)

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        return self._shell.loop_thread.call(function, *args)


def _take(
    shell: Shell,
    prepared: Prepared,
    context: Context,
    taken: Callable[[Handle[Any] | InterlockError], None],
) -> None:
    try:
        handle = shell.submit([prepared], context)[0]
    except InterlockError as error:
        taken(error)
    else:
        taken(handle)


def _id(task: str | Handle[Any]) -> str:
    return task.task_id if isinstance(task, Handle) else task


def _check_choices(options: DurableOptions, order: str) -> None:
    choices = {
        "durability": ("full", "normal"),
        "on_interrupted": ("rerun", "ask", "fail"),
        "on_changed": ("refuse", "rerun"),
        "unserializable": ("refuse", "mark"),
    }
    given = {name: getattr(options, name) for name in choices} | {"order": order}
    choices["order"] = ("critical_path", "first_come")
    for name, allowed in choices.items():
        value = given[name]
        if value not in allowed:
            raise InvalidOption(f"{name} is {value!r}; it can be {' or '.join(map(repr, allowed))}")
