"""An asyncio event loop on which a seed decides everything that asyncio leaves open.

- Time is virtual. It stands still while anything is ready and then jumps to the next timer, so a
  day of waiting costs nothing and no test sleeps.
- Task steps that are ready in the same turn run in an order drawn from the seed. Plain callbacks
  keep theirs: asyncio promises first in, first out for them, and code may rely on it.
- Threads, processes, sockets and signals raise `NotInSimulation`.

The same seed gives the same order under any PYTHONHASHSEED. `time.time`, `time.monotonic`, `uuid4`
and the `random` module are *not* patched. Code under test takes its clock (`loop.time()` will do)
and its randomness from ports. Sets of strings iterate by hash seed here as everywhere.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import random
import sys
import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextvars import Context
from typing import Any, Protocol, TypeVar, TypeVarTuple, cast

from interlock.testing.out_of_bounds import SealedLoop, belongs_behind_a_port
from interlock.testing.simulated_task import SimulatedFuture, SimulatedTask, Waiting

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# Methods of a task that may be scheduled without being a step: `loop.call_soon(task.cancel)`.
_NO_STEPS = frozenset(name for name in dir(asyncio.Task) if not name.startswith("_"))


class Hung(Exception):
    """The simulated program will not end; the text names each pending task and where it waits."""

    def __init__(self, reason: str, tasks: Sequence[Waiting]) -> None:
        self.tasks = tuple(tasks)
        waits = [f"  {task}" for task in self.tasks] or ["  (no task is pending)"]
        super().__init__("\n".join([reason, *waits]))


class Crashed(BaseException):
    """The loop was dropped. Raised out of `run_forever`, never inside a task."""


class Fault(Protocol):
    """Something that happens to a simulated program. It is called at each step (`loop.steps`)."""

    def before_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None: ...

    def after_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None: ...


class _TaskStep(asyncio.Handle):
    """The next step of a task."""

    __slots__ = ("task",)

    def __init__(
        self,
        task: SimulatedTask[Any],
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: VirtualLoop,
        context: Context | None,
    ) -> None:
        self.task = task
        super().__init__(callback, args, loop, context)


class VirtualLoop(SealedLoop):
    """A seeded event loop with a virtual clock; the module's docstring says what it promises."""

    def __init__(
        self,
        seed: int,
        *,
        faults: Sequence[Fault] = (),
        max_steps: float = math.inf,
        deadline: float = math.inf,
    ) -> None:
        super().__init__()
        self.steps = 0
        self.trace: list[str] = []
        self.crashed = False  # What outlives a crash checks this, and refuses the dead loop.
        self.interrupted: list[str] = []
        self.complaints: list[str] = []
        self.faults = tuple(faults)
        self.max_steps = max_steps
        self.deadline = deadline
        self._chance = random.Random(seed)
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        # Strong references: those of asyncio are weak, and a task that disappears in a garbage
        # collection would make the run depend on when that happened.
        self._pending: dict[int, SimulatedTask[Any]] = {}
        self._generators: weakref.WeakValueDictionary[int, AsyncGenerator[Any, Any]]
        self._generators = weakref.WeakValueDictionary()
        self._numbers = 0
        self._home = threading.get_ident()
        self._running = self._stopping = self._closed = self._debug = False
        self._exception_handler: (
            Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None
        ) = None

    def pending(self) -> list[SimulatedTask[Any]]:
        """The tasks that have not ended, oldest first."""
        return list(self._pending.values())

    def crash(self) -> None:
        """Drop the loop: the current step is completed, and nothing runs after it.

        A step cannot be cut in two without running its `finally` blocks, so whatever outlives
        the crash (journal, workspace, agents) must check `crashed` and refuse the rest of the step.
        A call to the dead loop raises no error and has no effect.
        """
        self.crashed = True

    # Time and callbacks

    def time(self) -> float:
        return self._now

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self._check("loop.call_soon()")
        task = getattr(callback, "__self__", None)
        if isinstance(task, asyncio.Task) and getattr(callback, "__name__", "") not in _NO_STEPS:
            if not isinstance(task, SimulatedTask):
                self.refuse("asyncio.Task()", "its steps would not be seen; use create_task()")
            handle: asyncio.Handle = _TaskStep(task, callback, args, self, context)
        else:
            handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self._check("loop.call_soon_threadsafe()")
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check("loop.call_at()")
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        # The number makes timers of the same moment first in, first out.
        heapq.heappush(self._timers, (when, self._number(), timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by TimerHandle.cancel(). Cancelled timers are skipped when they are due."""

    # Tasks and futures

    def create_future(self) -> SimulatedFuture[Any]:
        return SimulatedFuture(loop=self, number=self._number())

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        eager_start: bool | None = None,
    ) -> SimulatedTask[T]:
        self._check("loop.create_task()")
        if not asyncio.iscoroutine(coro):
            raise TypeError(f"a coroutine was expected, got {coro!r}")
        if eager_start:
            self.refuse("create_task(eager_start=True)", "the seed would not order its first step")
        number = self._number()
        task: SimulatedTask[T] = SimulatedTask(
            coro,
            loop=self,
            number=number,
            # Names made by asyncio count through the whole process and would differ between runs.
            name=f"task-{number}" if name is None else str(name),
            context=context,
            on_end=self._forget,
        )
        self._pending[number] = task
        return task

    def set_task_factory(self, factory: object) -> None:
        if factory is not None:
            self.refuse("loop.set_task_factory()", "the steps of its tasks would not be seen")

    def get_task_factory(self) -> None:
        return None

    def _forget(self, number: int) -> None:
        self._pending.pop(number, None)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # Running

    def run_forever(self) -> None:
        self._check("loop.run_forever()")
        if self.crashed:
            raise RuntimeError("a crashed loop does not run again: simulate a new one")
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("an event loop is running: simulate from a plain function")
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._generator_begins, finalizer=self._generator_dropped)
        asyncio._set_running_loop(self)
        self._running = True
        try:
            while True:
                self._turn()
                if self._stopping:
                    return
        finally:
            self._running = self._stopping = False
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _turn(self) -> None:
        """Run what is ready now; what becomes ready during the turn waits for the next one."""
        self._take_timers()
        ready = self._shuffled()
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if type(handle) is _TaskStep:
                self._step(handle)
            else:
                handle._run()
            # A traceback may keep this frame, which must not keep the task alive: the complaint
            # that its exception was never retrieved would then wait for the garbage collector.
            del handle
            if self.crashed:
                raise Crashed

    def _take_timers(self) -> None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not self._ready and not self._stopping:
            self._now = max(self._now, self._next_moment())
        while timers and timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(timers)[2])

    def _next_moment(self) -> float:
        when = self._timers[0][0] if self._timers else math.inf
        if when == math.inf:
            raise self._hung("nothing is ready and no timer is set")
        if when > self.deadline:
            raise self._hung(f"not done after {self.deadline:g} virtual seconds")
        return when

    def _shuffled(self) -> deque[asyncio.Handle]:
        """What is ready. The seed orders the steps among themselves; callbacks keep their place."""
        steps = [handle for handle in self._ready if type(handle) is _TaskStep]
        if len(steps) > 1:
            self._chance.shuffle(steps)
            drawn = iter(steps)
            self._ready = deque(
                next(drawn) if type(handle) is _TaskStep else handle for handle in self._ready
            )
        return self._ready

    def _step(self, handle: _TaskStep) -> None:
        if self.steps >= self.max_steps:
            self._ready.appendleft(handle)
            raise self._hung(f"not done after {self.max_steps:g} steps")
        task = handle.task
        self.steps += 1
        self.trace.append(task.get_name())
        for fault in self.faults:
            fault.before_step(self, task)
        handle._run()
        for fault in self.faults:
            fault.after_step(self, task)
        del handle, task  # See _turn().

    def _hung(self, reason: str) -> Hung:
        return Hung(
            f"{reason} (step {self.steps}, virtual time {self._now:g} s); pending:",
            [task.waiting() for task in self.pending()],
        )

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        task = asyncio.ensure_future(cast("Awaitable[T]", future), loop=self)
        task.add_done_callback(self._stop_at)
        try:
            self.run_forever()
        finally:
            task.remove_done_callback(self._stop_at)
        if not task.done():
            raise RuntimeError("the loop was stopped before the future was done")
        return task.result()

    def _stop_at(self, _done: asyncio.Future[Any]) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping = True

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed or self.crashed

    def close(self) -> None:
        if self._running:
            raise RuntimeError("a running loop cannot be closed")
        self._closed = True
        if not self.crashed:  # To let go of a crashed loop would run it.
            self._ready.clear()
            self._timers.clear()
            self._pending.clear()

    def _check(self, called: str) -> None:
        if threading.get_ident() != self._home:
            self.refuse(f"{called} from another thread", belongs_behind_a_port("a thread"))
        if self._closed and not self.crashed:
            raise RuntimeError("Event loop is closed")

    # Async generators

    def _generator_begins(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators[self._number()] = generator

    def _generator_dropped(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self.is_closed():
            self.call_soon(self.create_task, generator.aclose())

    async def shutdown_asyncgens(self) -> None:
        """Close the generators that are still open, oldest first."""
        for generator in list(self._generators.values()):
            try:
                await generator.aclose()
            except Exception as error:  # noqa: BLE001 - the others must be closed all the same
                told = {"message": "an async generator failed to close", "exception": error}
                self.call_exception_handler(told)
        self._generators.clear()

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: there is no executor, but `asyncio.Runner` calls this."""

    # Complaints: what asyncio would log

    def set_exception_handler(
        self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None
    ) -> None:
        self._exception_handler = handler

    def get_exception_handler(
        self,
    ) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None:
        return self._exception_handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        text = (
            f"{context.get('message')}" if error is None else f"{context.get('message')}: {error!r}"
        )
        self.complaints.append(text)
        if self._closed:  # too late for the result of the run: "exception was never retrieved"
            logging.getLogger("asyncio").error(text, exc_info=error)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._exception_handler is None:
            self.default_exception_handler(context)
        else:
            try:
                self._exception_handler(self, context)
            except Exception as error:  # noqa: BLE001 - as in asyncio, it must not stop the loop
                self.complaints.append(f"the exception handler raised {error!r}")

    def get_debug(self) -> bool:
        return self._debug

    def set_debug(self, enabled: bool) -> None:
        self._debug = enabled
