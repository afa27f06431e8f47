"""An attempt as its agent sees it: the task, limits, children, and people to ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from interlock.errors import AttemptOver, InvalidOption
from interlock.execution.backend import Backend
from interlock.execution.callables.coroutines import Coroutines
from interlock.model.claim import Claim, Patterns, as_claims
from interlock.model.duration import Duration, seconds
from interlock.model.event import Kind
from interlock.model.outcome import Outcome
from interlock.model.task import Task
from interlock.model.template import Template
from interlock.model.usage import Usage
from interlock.runtime.attempt_state import AttemptState
from interlock.runtime.claim_paths import WorkspacePaths
from interlock.runtime.data import copied
from interlock.runtime.handle import Handle
from interlock.runtime.limits.rates import Rates
from interlock.runtime.requests import AttemptRequests, RateUse
from interlock.runtime.session import Session
from interlock.runtime.submission.parent import Parent, plain
from interlock.runtime.submission.submitting import SubmitRun, Submitting
from interlock.runtime.task_table import TaskTable
from interlock.runtime.waitable import Waitable

T = TypeVar("T")

CURRENT: ContextVar[TaskContext] = ContextVar("interlock.current")


def current() -> TaskContext:
    """The context of the attempt that this code runs in."""
    try:
        return CURRENT.get()
    except LookupError:
        raise AttemptOver("interlock.current() is for code that runs inside a task") from None


def cancelled() -> bool:
    """Whether the attempt that this code runs in was told to stop; False outside of tasks."""
    context = CURRENT.get(None)
    return context is not None and context.cancelled()


class ContextRun(SubmitRun, Protocol):
    """What the context of an attempt asks of its run."""

    @property
    def run_id(self) -> str: ...
    @property
    def workspace(self) -> WorkspacePaths: ...
    @property
    def tasks(self) -> TaskTable: ...
    @property
    def requests(self) -> AttemptRequests: ...
    @property
    def rates(self) -> Rates: ...

    def told(self, context: TaskContext, kind: Kind, data: Any) -> None:
        """An agent reports something about itself."""

    def context_of(self, token: int) -> TaskContext | None:
        """The context of an attempt that is alive."""


class TaskContext(Submitting):
    """One attempt at a task, from the inside. Usable from the agent's own thread.

    Async agents await its methods; blocking agents use `.wait()`: `ctx.ask("Land it?").wait()`.
    Once the attempt is over (cancelled, timed out, ended), every method that has an effect raises
    AttemptOver.
    """

    __slots__ = (
        "__weakref__",
        "_backend",
        "_handle",
        "_names",
        "_over",
        "_renamed",
        "_results",
        "_run",
        "_session",
        "_state",
        "attempt",
        "extra",
        "token",
    )

    def __init__(self, run: ContextRun, handle: Handle[Any], attempt: int, token: int) -> None:
        self._run = run
        self._handle = handle
        self._over = False
        self._results: Mapping[str, Outcome[Any]] | None = None
        self._backend: Backend | None = None
        """The backend that has the attempt; None while its workspace is prepared or released."""
        self._state = AttemptState()
        # Most attempts have no children: these are made on first use.
        self._renamed: dict[str, str] | None = None
        self._names: dict[str, int] | None = None
        self._session: Session | None = None
        self.attempt = attempt
        """Which try this is, from 1."""
        self.token = token
        """The fencing token of the grant: larger than that of every attempt before."""
        self.extra: tuple[Claim, ...] = ()
        """Claims that were added while it runs."""

    # -- looking ----------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The task, with its claims as they were granted."""
        return self._handle.task

    @property
    def prompt(self) -> str | None:
        """The prompt of the task, with the results that it quotes."""
        prompt = self._handle.task.prompt
        return prompt.render(self.results) if isinstance(prompt, Template) else prompt

    @property
    def workspace(self) -> Path:
        """The folder that the attempt works in; path claims are relative to it."""
        return self._state.folder or self._run.workspace.root

    @property
    def session(self) -> Session:
        """The conversation that this attempt belongs to: the same for all attempts of this task.

        In an `AgentPool` it is the session that the message was sent to. Otherwise it has no
        messages, and its name is for the agent to use.
        """
        parent = self._handle.parent
        above = None if parent is None else self._run.context_of(parent[1])
        inherited = None if above is None else above._session
        return self._session or inherited or Session(f"{self._run.run_id}/{self._handle.task.id}")

    def join(self, session: Session) -> None:
        """For pools: make this attempt and its children a part of a session."""
        self._session = session

    @property
    def results(self) -> Mapping[str, Outcome[Any]]:
        """The outcomes of the tasks that this one depends on, with its own copy of their data."""
        if self._results is None:
            handles = map(self._run.tasks.get, self._handle.task.after)
            known = (each.outcome for each in handles if each is not None)
            self._results = MappingProxyType(
                {each.task_id: replace(each, result=copied(each.result)) for each in known if each}
            )
        return self._results

    def cancelled(self) -> bool:
        """Whether this attempt was told to stop. A blocking agent should ask from time to time."""
        return self._over

    # -- reporting --------------------------------------------------------------------------

    def report(self, fraction: float, message: str = "") -> None:
        """Report progress, from 0 to 1."""
        if not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
            raise InvalidOption(f"progress is {fraction!r}; it must be between 0 and 1")
        self._tell(Kind.REPORTED, {"fraction": float(fraction), "message": str(message)})

    def log(self, line: str) -> None:
        """Write a line into the run's journal."""
        self._tell(Kind.LOGGED, {"line": str(line)})

    def usage(self, *, tokens_in: int = 0, tokens_out: int = 0, cost: float = 0.0) -> None:
        """Add to the usage of the task; its outcome has the sum over all attempts."""
        used = Usage(tokens_in, tokens_out, cost)
        if min(used) < 0:
            raise InvalidOption(f"usage cannot be negative: {used}")
        self._tell(Kind.USED, used)

    def _tell(self, kind: Kind, data: Any) -> None:
        self.check_open()  # before the call: the loop of an attempt that is over may be closed
        self._run.loop_thread.call(self._run.told, self, kind, data)

    def check_open(self) -> None:
        """Raise if this attempt may have no more effects."""
        if self._over:
            raise AttemptOver(
                f"attempt {self.attempt} of task {self.task.id!r} is over; "
                "an agent that was told to stop should return"
            )

    @property
    def renamed(self) -> dict[str, str]:
        """Children whose ids an earlier attempt has used, and their ids in this one."""
        if self._renamed is None:
            self._renamed = {}
        return self._renamed

    @property
    def plain_id(self) -> str:
        """The id of the task before it was renamed because an earlier attempt had used it."""
        return plain(self._handle.task.id) if self._handle.parent else self._handle.task.id

    def fresh_id(self, name: str) -> str:
        """An id for a child, which no other child of this attempt has.

        It begins with the id of the parent. Tasks that others submit meanwhile must not change it,
        or the next attempt would not recognize its children.
        """
        if self._names is None:
            self._names = {}
        count = self._names[name] = self._names.get(name, 0) + 1
        return f"{self.plain_id}/{name}" if count == 1 else f"{self.plain_id}/{name}-{count}"

    def runs_on_the_loop(self) -> bool:
        """Whether it is a coroutine, or a step of its workspace: only its loop can run it."""
        return self._backend is None or isinstance(self._backend, Coroutines)

    def close(self) -> None:
        """Its outcome is decided: from now on it may have no effects."""
        self._over = True

    # -- waiting ----------------------------------------------------------------------------

    def sleep(self, duration: Duration) -> Waitable[None]:
        """Wait for some time. An attempt that is told to stop is woken up."""
        wanted = seconds(duration, "sleep")
        return self._wait("ctx.sleep()", lambda: self._run.requests.sleep(self, wanted))

    def extend(
        self,
        *,
        writes: Patterns = (),
        reads: Patterns = (),
        uses: str | Claim | Iterable[str | Claim] = (),
    ) -> Waitable[None]:
        """Claim more while running. The slot is lent out while another task holds the claim.

        Raises WouldDeadlock if it could never be granted.
        """
        claims = as_claims(reads, writes, uses)
        return self._wait("ctx.extend()", lambda: self._run.requests.extend(self, claims))

    def acquire(self, rate: str, *, requests: int = 1, tokens: int = 0) -> Waitable[RateUse]:
        """Take an amount from a rate, as soon as its window allows. The slot is kept meanwhile.

        Correct the amount afterwards: `taken.used(tokens=650)`.
        """
        return self._wait(
            "ctx.acquire()", lambda: self._run.requests.take(self, rate, requests, tokens)
        )

    def hold_rate(self, rate: str, duration: Duration) -> None:
        """Close a rate for some time, as a Retry-After header asks for."""
        self.check_open()
        self._run.loop_thread.call(self._run.rates.hold, rate, seconds(duration, "duration"))

    def ask(self, question: str) -> Waitable[str]:
        """Ask a person; `rt.answer()` brings the answer. Meanwhile the task holds no slot."""
        if not isinstance(question, str) or not question.strip():
            raise InvalidOption(f"a question is text, not {question!r}")
        return self._wait("ctx.ask()", lambda: self._run.requests.ask(self, question))

    def _wait(self, what: str, start: Callable[[], Awaitable[T]]) -> Waitable[T]:
        self.check_open()
        return Waitable(self._run.loop_thread, start, what)

    # -- children ---------------------------------------------------------------------------

    def _submits_to(self) -> tuple[SubmitRun, Parent | None]:
        self.check_open()
        return self._run, self

    def __repr__(self) -> str:
        return f"<TaskContext {self._handle.task.id!r}, attempt {self.attempt}>"
