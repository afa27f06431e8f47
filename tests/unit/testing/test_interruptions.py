"""Cancellations, exceptions and crashes at every step of a simulated program."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock.testing.interruptions import crash_at, every_step, interrupt_at
from interlock.testing.virtual_loop import Hung, VirtualLoop
from interlock.testing.virtual_run import CRASHED_LOOPS, simulate


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


# Faults at every step


class Balance:
    """Counts what is held, as a runtime counts its slots."""

    def __init__(self) -> None:
        self.held = self.entered = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        self.held += 1
        self.entered += 1
        try:
            yield
        finally:
            self.held -= 1


class Program:
    """A small program of nested groups; each run has a balance of its own."""

    def __init__(self) -> None:
        self.balance = Balance()

    async def main(self) -> int:
        balance = self.balance = Balance()
        lock = asyncio.Lock()

        async def leaf() -> None:
            async with lock:
                with balance.hold():
                    await asyncio.sleep(1)

        async def branch() -> None:
            with balance.hold():
                async with asyncio.timeout(50), asyncio.TaskGroup() as group:
                    for _ in range(3):
                        group.create_task(leaf())

        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(branch())
        return balance.entered


def test_without_a_fault_the_small_program_ends_well() -> None:
    assert simulate(Program().main).value() == 8


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("how", ["cancel", OSError, lambda: ValueError("made to order")])
def test_interrupted_at_any_step_the_small_program_still_lets_everything_go(
    seed: int, how: Any
) -> None:
    program = Program()
    steps = simulate(program.main, seed=seed).steps
    runs = 0
    for run in every_step(program.main, seed=seed, how=how):
        runs += 1
        assert program.balance.held == 0, run.interrupted
        assert not run.leaked, run.interrupted
    assert runs == steps


def test_up_to_the_fault_the_run_is_the_one_without_it() -> None:
    plain = simulate(Program().main, seed=9)
    for step, run in enumerate(every_step(Program().main, seed=9), start=1):
        assert run.trace[:step] == plain.trace[:step]
        [where] = run.interrupted
        assert where.startswith(f"cancelled at step {step} in {plain.trace[step - 1]}: ")


def test_a_cancellation_arrives_at_the_await() -> None:
    async def main() -> str:
        try:
            await asyncio.sleep(5, "slept")
        except asyncio.CancelledError:
            return "cancelled"
        return "slept"

    run = simulate(main, faults=[interrupt_at(2, "cancel")])
    assert run.value() == "cancelled"


def test_a_given_exception_is_raised_at_the_await() -> None:
    async def main() -> str:
        with pytest.raises(OSError, match="disk full"):
            await asyncio.sleep(0)
        return await asyncio.sleep(1, "went on")

    run = simulate(main, faults=[interrupt_at(2, lambda: OSError("disk full"))])
    assert run.value() == "went on"
    assert len(run.interrupted) == 1


def test_a_task_interrupted_at_its_first_step_never_begins() -> None:
    for how in ("cancel", OSError):
        begun: list[int] = []

        async def main(begun: list[int] = begun) -> None:
            begun.append(1)

        run = simulate(main, faults=[interrupt_at(1, how)])
        assert isinstance(run.exception, (asyncio.CancelledError, OSError))
        assert begun == []


def test_nothing_is_raised_where_a_group_waits_for_its_children() -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(1), name="child")

    *_, last = every_step(main, how=OSError)
    assert last.trace[-1] == "main"
    assert last.interrupted == ()
    assert last.exception is None


def test_a_program_that_hangs_when_interrupted_is_caught_with_the_step() -> None:
    async def main() -> None:
        done = asyncio.Event()

        async def work() -> None:
            await asyncio.sleep(1)
            done.set()  # not in a finally: the bug

        task = asyncio.create_task(work(), name="work")
        await done.wait()
        await task

    with pytest.raises(Hung) as caught:
        list(every_step(main, seed=4))
    [note] = caught.value.__notes__
    assert note.startswith("seed 4, cancelled at step 2 of ")


def test_several_faults_strike_in_one_run() -> None:
    async def main() -> int:
        times = 0
        while times < 2:
            try:
                await asyncio.sleep(1)
            except (asyncio.CancelledError, OSError):
                times += 1
        return times

    run = simulate(main, faults=[interrupt_at(2, "cancel"), interrupt_at(3, OSError)])
    assert run.value() == 2
    assert len(run.interrupted) == 2


@pytest.mark.parametrize("step", [0, -1])
def test_steps_are_counted_from_one(step: int) -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        crash_at(step)
    with pytest.raises(ValueError, match="counted from 1"):
        interrupt_at(step, "cancel")


def test_a_fault_is_made_by_a_callable() -> None:
    with pytest.raises(TypeError, match="makes an exception"):
        interrupt_at(1, OSError("one for all runs"))  # type: ignore[arg-type]


# Crash


def test_after_a_crash_nothing_runs_not_even_finally() -> None:
    after: list[str] = []

    async def generator() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            after.append("generator")

    async def main() -> None:
        async def worker() -> None:
            try:
                await asyncio.sleep(1)
                after.append("went on")
            finally:
                after.append("finally")

        asyncio.get_running_loop().call_later(0, after.append, "timer")
        async with asyncio.TaskGroup() as group:
            group.create_task(worker())
            group.create_task(worker())
            async for _ in generator():
                await asyncio.sleep(9)

    # Three first steps: main and both workers.
    run = simulate(main, faults=[crash_at(3)])
    gc.collect()
    assert run.crashed
    assert run.steps == 3
    assert run.leaked == ()
    assert after == []
    with pytest.raises(RuntimeError, match="crashed"):
        run.value()


def test_a_crash_drops_what_was_ready_in_the_same_turn() -> None:
    seen: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().call_soon(seen.append, "callback")
        await asyncio.sleep(0)

    assert simulate(main, faults=[crash_at(1)]).crashed
    assert seen == []


def test_a_crash_after_every_step_leaves_the_world_as_it_was() -> None:
    program = Program()
    runs = list(every_step(program.main, how="crash"))
    assert [run.steps for run in runs] == list(range(1, len(runs) + 1))
    assert all(run.crashed for run in runs[:-1])


def test_a_port_may_crash_the_loop_in_mid_step_and_refuse_the_rest() -> None:
    journal: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)

        def write(record: str) -> None:
            if not loop.crashed:
                journal.append(record)

        write("begun")
        loop.crash()
        write("of the dead")
        asyncio.create_task(forever())  # noqa: RUF006
        await asyncio.sleep(0)
        journal.append("never")

    assert simulate(main).crashed
    gc.collect()
    assert journal == ["begun"]


def test_messages_to_a_crashed_loop_are_lost_without_an_error() -> None:
    waiting: list[asyncio.Future[None]] = []

    async def main() -> None:
        waiting.append(asyncio.get_running_loop().create_future())
        await waiting[0]

    simulate(main, faults=[crash_at(1)])
    loop = CRASHED_LOOPS[-1]
    waiting[0].set_result(None)
    assert loop.is_closed()
    with pytest.raises(RuntimeError, match="does not run again"):
        loop.run_forever()


def test_a_crash_or_a_hang_leaves_no_warning_even_at_the_end_of_the_process(
    tmp_path: Path,
) -> None:
    script = tmp_path / "crash.py"
    script.write_text(
        """
import asyncio, gc
from interlock.testing.interruptions import crash_at
from interlock.testing.virtual_loop import Hung
from interlock.testing.virtual_run import simulate

async def main():
    async def worker():
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            print("finally")
            await asyncio.sleep(1)
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(worker())

for step in (1, 2, 3, 4):
    assert simulate(main, faults=[crash_at(step)]).crashed
try:
    simulate(main)
except Hung:
    gc.collect()
    print("hung")
""",
        encoding="utf-8",
    )
    ended = subprocess.run(
        [sys.executable, "-X", "dev", str(script)],
        env={**os.environ, "PYTHONPATH": str(Path(interlock.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ended.stdout, ended.stderr) == ("hung\n", "")
