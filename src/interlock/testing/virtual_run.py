"""`simulate(main)`: run one program with one seed, from its first step to the end of its loop.

    def test_the_queue_is_drained() -> None:
        for seed in range(100):
            run = simulate(main, seed=seed, deadline=3600)
            assert run.value() == 12
            assert not run.leaked

The same program with the same seed has the same `trace`; `faults` (see `interruptions`) change it
from the step at which they strike.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from interlock.testing.immortal import immortal_list
from interlock.testing.simulated_task import Waiting
from interlock.testing.virtual_loop import Crashed, Fault, Hung, VirtualLoop

T = TypeVar("T")

MAX_STEPS = 100_000
_STEPS_TO_TIDY = 10_000

CRASHED_LOOPS: list[VirtualLoop] = immortal_list()
"""Loops that were dropped in the middle: nothing of them may run again.

A thousand crashes of a small program take some tens of megabytes: give each batch a process.
"""


@dataclass(frozen=True)
class VirtualRun(Generic[T]):
    """The result of a simulated program."""

    seed: int
    result: T | None
    exception: BaseException | None
    time: float
    steps: int
    trace: tuple[str, ...]
    leaked: tuple[Waiting, ...] = ()
    """Tasks that were pending when main ended; they were then cancelled, as by asyncio.run."""
    crashed: bool = False
    interrupted: tuple[str, ...] = ()
    """Where the faults struck."""
    reached_for: tuple[str, ...] = ()
    """What raised NotInSimulation, even if the program caught it."""
    complaints: tuple[str, ...] = ()
    """What asyncio would have logged: callbacks that raised, exceptions never retrieved."""

    def value(self) -> T:
        """The result; raises what the program raised."""
        if self.crashed:
            raise RuntimeError("the program crashed, so it has no result")
        if self.exception is not None:
            raise self.exception
        return self.result  # type: ignore[return-value]  # None only where T has it

    @property
    def fingerprint(self) -> str:
        """A hash of the trace, to compare runs of different processes."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]


def simulate(
    main: Callable[[], Coroutine[Any, Any, T]],
    *,
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    deadline: float = math.inf,
    faults: Sequence[Fault] = (),
) -> VirtualRun[T]:
    """Run `main()` on a fresh loop, and return how it went.

    Raises `Hung` when no task can make progress, or when `max_steps` task steps or `deadline`
    virtual seconds were not enough. After that, as after a crash, nothing of the program runs.
    """
    loop = VirtualLoop(seed, faults=faults, max_steps=max_steps, deadline=deadline)
    # A garbage collection would run finalisers at a moment that the seed did not choose.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _run(loop, seed, main)
    except BaseException:
        _abandon(loop)
        raise
    finally:
        if collecting:
            gc.enable()


def _run(loop: VirtualLoop, seed: int, main: Callable[[], Coroutine[Any, Any, T]]) -> VirtualRun[T]:
    task = loop.create_task(main(), name="main")
    result: T | None = None
    exception: BaseException | None = None
    task.add_done_callback(lambda _: loop.stop())
    try:
        loop.run_forever()
    except Crashed:
        _abandon(loop)
    except SystemExit as error:  # asyncio lets it escape from the task that raised it
        exception = error
    else:
        try:
            result = task.result()
        except BaseException as error:  # noqa: BLE001 - recorded, however main ended
            exception = error
    steps, time, trace, crashed = loop.steps, loop.time(), tuple(loop.trace), loop.crashed
    leaked: tuple[Waiting, ...] = ()
    if not crashed:
        leaked = tuple(other.waiting() for other in loop.pending() if other is not task)
        _tidy(loop)
    return VirtualRun(
        seed=seed,
        result=result,
        exception=exception,
        time=time,
        steps=steps,
        trace=trace,
        leaked=leaked,
        crashed=crashed,
        interrupted=tuple(loop.interrupted),
        reached_for=tuple(loop.reached_for),
        complaints=tuple(loop.complaints),
    )


def _tidy(loop: VirtualLoop) -> None:
    """End what is left as asyncio.run does, and close the loop; abandon what will not end."""
    loop.faults = ()
    loop.max_steps = loop.steps + _STEPS_TO_TIDY
    loop.deadline = math.inf
    left = loop.pending()
    for task in left:
        task.cancel()

    async def tidy() -> None:
        if left:
            await asyncio.wait(left)
        await loop.shutdown_asyncgens()

    tidying = loop.create_task(tidy())
    tidying.add_done_callback(lambda _: loop.stop())
    try:
        while not tidying.done():  # main, if it ends only now, also stops the loop
            loop.run_forever()
    except (Hung, Crashed, SystemExit) as error:
        loop.complaints.append(f"what was left would not end when cancelled: {error!r}")
        _abandon(loop)
    else:
        loop.close()


def _abandon(loop: VirtualLoop) -> None:
    loop.crash()
    CRASHED_LOOPS.append(loop)
