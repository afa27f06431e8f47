"""The seeded event loop: order, time, what of asyncio works, and what is refused."""

from __future__ import annotations

import asyncio
import contextvars
import os
import random
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock.testing.out_of_bounds import NotInSimulation
from interlock.testing.simulated_task import SimulatedTask
from interlock.testing.virtual_loop import VirtualLoop
from interlock.testing.virtual_run import simulate

SEEDS = range(20)


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


# Order


async def finishing_order(count: int = 6) -> tuple[str, ...]:
    order = []

    async def worker(name: str) -> None:
        await asyncio.sleep(1)
        order.append(name)

    async with asyncio.TaskGroup() as group:
        for n in range(count):
            group.create_task(worker(f"w{n}"), name=f"w{n}")
    return tuple(order)


def test_the_order_of_steps_that_are_ready_together_is_drawn_from_the_seed() -> None:
    orders = {simulate(finishing_order, seed=seed).value() for seed in SEEDS}
    assert len(orders) > len(SEEDS) / 2
    assert {frozenset(order) for order in orders} == {frozenset(f"w{n}" for n in range(6))}


def test_every_order_of_a_few_tasks_comes_up_under_some_seed() -> None:
    async def three() -> tuple[str, ...]:
        return await finishing_order(3)

    assert len({simulate(three, seed=seed).value() for seed in range(60)}) == 6


def test_the_same_seed_makes_the_same_run() -> None:
    for seed in SEEDS:
        one, two = (simulate(finishing_order, seed=seed) for _ in range(2))
        assert (one.trace, one.result, one.time) == (two.trace, two.result, two.time)
        assert one.fingerprint == two.fingerprint


def test_unnamed_tasks_have_the_same_names_in_every_run() -> None:
    async def main() -> str:
        task = asyncio.create_task(asyncio.sleep(0))
        await task
        return task.get_name()

    assert simulate(main).value() == simulate(main).value()


def test_plain_callbacks_stay_first_in_first_out() -> None:
    async def main() -> tuple[list[int], list[int]]:
        loop = asyncio.get_running_loop()
        soon: list[int] = []
        later: list[int] = []

        async def noise() -> None:
            await asyncio.sleep(0)

        noises = []
        for n in range(20):
            loop.call_soon(soon.append, n)
            loop.call_later(1, later.append, n)
            noises.append(asyncio.create_task(noise()))
        await asyncio.wait(noises)
        await asyncio.sleep(2)
        return soon, later

    for seed in SEEDS:
        assert simulate(main, seed=seed).value() == (list(range(20)), list(range(20)))


def test_scheduling_a_method_of_a_task_is_a_callback_not_a_step() -> None:
    async def main() -> bool:
        victim = asyncio.create_task(forever(), name="victim")
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(victim.cancel)
        await asyncio.wait([victim])
        return victim.cancelled()

    run = simulate(main)
    assert run.value()
    assert run.trace.count("victim") == 2


def test_a_step_never_comes_before_one_of_an_earlier_turn() -> None:
    async def main() -> list[str]:
        order: list[str] = []

        async def worker(turns: int, name: str) -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            order.append(name)

        async with asyncio.TaskGroup() as group:
            for turns, name in ((2, "late"), (1, "early"), (3, "last")):
                group.create_task(worker(turns, name))
        return order

    for seed in SEEDS:
        assert simulate(main, seed=seed).value() == ["early", "late", "last"]


HASHING = """
import asyncio, random
from interlock.testing.virtual_run import simulate

async def main():
    order = []
    async def worker(n):
        try:
            await asyncio.sleep(n % 3)
            await asyncio.get_running_loop().create_future()
        finally:
            order.append(n)
    tasks = {asyncio.create_task(worker(n)) for n in range(40)}
    futures = {asyncio.get_running_loop().create_future() for _ in range(40)}
    await asyncio.wait(tasks, timeout=5)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return order, [future.number for future in futures], [task.get_name() for task in tasks]

# Holes of every size, in an order that the hash seed decides: so it decides addresses, too.
ballast = [bytes(size) for size in range(512) for _ in range(100)]
random.Random(hash("ballast")).shuffle(ballast)
del ballast[::2]
run = simulate(main, seed=3)
print(run.fingerprint, run.value())
"""


def test_the_same_seed_makes_the_same_run_under_every_hash_seed() -> None:
    source = str(Path(interlock.__file__).parents[1])
    told = {
        subprocess.run(
            [sys.executable, "-c", HASHING],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(told) == 1


def test_the_global_source_of_chance_is_left_alone() -> None:
    before = random.getstate()
    simulate(finishing_order, seed=1)
    assert random.getstate() == before


# Time


def test_time_is_virtual_and_jumps_to_the_next_timer() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        moments = [loop.time()]
        for seconds in (0, 0.5, 86_400):
            await asyncio.sleep(seconds)
            moments.append(loop.time())
        return moments

    run = simulate(main)
    assert run.value() == [0, 0, 0.5, 86_400.5]
    assert run.time == 86_400.5


def test_time_stands_still_while_anything_is_ready() -> None:
    async def main() -> float:
        asyncio.get_running_loop().call_later(1, print)
        for _ in range(1000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert simulate(main).value() == 0


def test_a_cancelled_timer_does_not_move_the_clock() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(5, print).cancel()
        async with asyncio.timeout(60):
            await asyncio.sleep(10)

    assert simulate(main).time == 10


def test_a_timer_set_in_the_past_runs_now() -> None:
    async def main() -> float:
        await asyncio.sleep(5)
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.call_at(1, done.set_result, None)
        await done
        return loop.time()

    assert simulate(main).value() == 5


# What of asyncio works


def test_timeouts_expire_in_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await forever()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(forever(), 30)
        return asyncio.get_running_loop().time()

    assert simulate(main).value() == 60


def test_queues_locks_events_conditions_and_semaphores_work() -> None:
    async def main() -> int:
        queue: asyncio.Queue[int] = asyncio.Queue(2)
        lock, begun, drained = asyncio.Lock(), asyncio.Event(), asyncio.Condition()
        two = asyncio.Semaphore(2)
        total = 0

        async def produce() -> None:
            await begun.wait()
            for n in range(10):
                await queue.put(n)

        async def consume() -> None:
            nonlocal total
            while True:
                n = await queue.get()
                async with two, lock:
                    held = total
                    await asyncio.sleep(0)
                    total = held + n
                queue.task_done()
                async with drained:
                    drained.notify_all()

        async with asyncio.TaskGroup() as group:
            consumers = [group.create_task(consume()) for _ in range(3)]
            makers = [group.create_task(produce()) for _ in range(2)]
            begun.set()
            await asyncio.wait(makers)
            async with drained:
                await drained.wait_for(lambda: total == 90)
            await queue.join()
            for consumer in consumers:
                consumer.cancel()
        return total

    for seed in SEEDS:
        assert simulate(main, seed=seed).value() == 90


def test_the_failure_of_one_child_cancels_its_group() -> None:
    async def main() -> None:
        async def fail() -> None:
            await asyncio.sleep(1)
            raise OSError("disk full")

        async with asyncio.TaskGroup() as group:
            group.create_task(forever())
            group.create_task(fail())

    run = simulate(main)
    assert isinstance(run.exception, ExceptionGroup)
    assert [str(error) for error in run.exception.exceptions] == ["disk full"]
    assert not run.leaked
    with pytest.raises(ExceptionGroup):
        run.value()


def test_context_variables_follow_tasks_and_callbacks() -> None:
    where: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")

    async def main() -> list[str]:
        seen = []

        async def look() -> None:
            await asyncio.sleep(1)
            seen.append(where.get())
            where.set("changed by a child")

        where.set("main")
        context = contextvars.copy_context()
        context.run(where.set, "given")
        async with asyncio.TaskGroup() as group:
            group.create_task(look())
        async with asyncio.TaskGroup() as group:
            group.create_task(look(), context=context)
        return [*seen, where.get()]

    assert simulate(main).value() == ["main", "given", "main"]


def test_async_generators_are_closed_at_the_end() -> None:
    closed: list[str] = []

    async def numbers(name: str) -> AsyncGenerator[int, None]:
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(1)
            closed.append(name)

    async def main() -> None:
        kept = [numbers("first"), numbers("second")]
        for generator in kept:
            await anext(generator)
        open_ones.extend(kept)
        await anext(numbers("dropped"))
        await asyncio.sleep(2)

    open_ones: list[AsyncGenerator[int, None]] = []
    run = simulate(main)
    assert run.exception is None
    assert closed == ["dropped", "first", "second"]


def test_a_standard_runner_runs_on_it() -> None:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(1)) as runner:
        assert set(runner.run(finishing_order())) == {f"w{n}" for n in range(6)}


def test_a_callback_that_raises_is_in_the_record() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon([].pop)
        await asyncio.sleep(0)

    [complaint] = simulate(main).complaints
    assert "IndexError('pop from empty list')" in complaint


def test_a_programs_own_exception_handler_is_asked() -> None:
    async def main() -> list[str]:
        heard: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(repr(context["exception"])))
        loop.call_soon([].pop)
        await asyncio.sleep(0)
        return heard

    run = simulate(main)
    assert run.value() == ["IndexError('pop from empty list')"]
    assert run.complaints == ()


def test_an_exception_that_nobody_fetched_is_in_the_record() -> None:
    async def main() -> None:
        async def fail() -> None:
            raise OSError("nobody looks")

        await asyncio.wait([asyncio.create_task(fail())])

    [complaint] = simulate(main).complaints
    assert "never retrieved: OSError('nobody looks')" in complaint


# What it refuses

REFUSED: dict[str, Callable[[asyncio.AbstractEventLoop], Any]] = {
    "run_in_executor": lambda loop: loop.run_in_executor(None, print),
    "set_default_executor": lambda loop: loop.set_default_executor(None),  # type: ignore[arg-type]
    "getaddrinfo": lambda loop: loop.getaddrinfo("localhost", 80),
    "getnameinfo": lambda loop: loop.getnameinfo(("127.0.0.1", 80)),
    "create_connection": lambda loop: loop.create_connection(asyncio.Protocol, "localhost", 80),
    "create_server": lambda loop: loop.create_server(asyncio.Protocol, "localhost", 80),
    "create_unix_connection": lambda loop: loop.create_unix_connection(asyncio.Protocol, "s"),
    "add_reader": lambda loop: loop.add_reader(0, print),
    "add_writer": lambda loop: loop.add_writer(1, print),
    "subprocess_exec": lambda loop: loop.subprocess_exec(asyncio.SubprocessProtocol, "true"),
    "subprocess_shell": lambda loop: loop.subprocess_shell(asyncio.SubprocessProtocol, "true"),
    "add_signal_handler": lambda loop: loop.add_signal_handler(2, print),
    "remove_signal_handler": lambda loop: loop.remove_signal_handler(2),
    "connect_read_pipe": lambda loop: loop.connect_read_pipe(asyncio.Protocol, sys.stdin),
}


@pytest.mark.parametrize("name", REFUSED)
def test_reaching_for_the_world_is_refused_by_name(name: str) -> None:
    async def main() -> None:
        REFUSED[name](asyncio.get_running_loop())

    run = simulate(main)
    with pytest.raises(NotInSimulation, match=rf"loop\.{name}\(\) .*belongs behind a port"):
        run.value()
    assert run.reached_for == (f"loop.{name}()",)


async def a_thread() -> None:
    await asyncio.to_thread(print)


async def a_process() -> None:
    await asyncio.create_subprocess_exec("true")


async def a_connection() -> None:
    await asyncio.open_connection("localhost", 80)


@pytest.mark.parametrize("reach", [a_thread, a_process, a_connection])
def test_asyncios_own_short_cuts_to_the_world_are_refused_too(
    reach: Callable[[], Awaitable[None]],
) -> None:
    async def main() -> None:
        await reach()

    assert isinstance(simulate(main).exception, NotInSimulation)


def test_what_was_reached_for_is_in_the_record_even_where_it_was_caught() -> None:
    async def main() -> str:
        try:
            await asyncio.to_thread(print)
        except Exception:  # noqa: BLE001 - a runtime lives with whatever an agent raises
            return "an agent failed"
        return "fine"

    run = simulate(main)
    assert run.value() == "an agent failed"
    assert run.reached_for == ("loop.run_in_executor()",)


@pytest.mark.parametrize("name", ["call_soon_threadsafe", "call_soon"])
def test_a_call_from_another_thread_is_refused(name: str) -> None:
    async def main() -> list[str]:
        heard = []
        call = getattr(asyncio.get_running_loop(), name)

        def intrude() -> None:
            try:
                call(print)
            except NotInSimulation as error:
                heard.append(str(error))

        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        return heard

    [text] = simulate(main).value()
    assert f"loop.{name}() from another thread" in text


def test_a_threadsafe_call_from_the_loops_own_thread_is_fine() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.call_soon_threadsafe(done.set_result, None)
        await done

    assert simulate(main).exception is None


def test_no_method_of_an_event_loop_is_left_out() -> None:
    offered = {name for name in dir(asyncio.AbstractEventLoop) if not name.startswith("_")}
    own = {name for kind in VirtualLoop.__mro__[:2] for name in vars(kind)}
    assert offered - own == set()


def test_tasks_that_pass_the_seed_by_are_refused() -> None:
    async def other_factory() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.Task)  # type: ignore[arg-type]

    async def eager() -> None:
        coroutine = forever()
        try:
            asyncio.get_running_loop().create_task(coroutine, eager_start=True)  # type: ignore[call-arg]
        finally:
            coroutine.close()

    for main in (other_factory, eager):
        assert isinstance(simulate(main).exception, NotInSimulation)


def test_only_coroutines_become_tasks() -> None:
    async def main() -> None:
        asyncio.get_running_loop().create_task(print)  # type: ignore[arg-type]

    assert isinstance(simulate(main).exception, TypeError)


def test_tasks_are_of_the_loops_own_kind() -> None:
    async def main() -> asyncio.Task[Any] | None:
        return asyncio.current_task()

    assert isinstance(simulate(main).value(), SimulatedTask)
