"""The queue across the thread boundary, against a bare ThreadPoolExecutor and the bare runtime."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from statistics import median
from time import perf_counter
from typing import Any

from bench.figure import Figure
from interlock import AgentTask, Handle, InterlockError, Runtime, Task, TaskQueue, uses
from interlock.runtime.hosting.host import RuntimeHost

ROUNDS = 7
SIZE = 2_000
SLOTS = 4
EXCLUSIVE = [uses(f"agent a{number}", exclusive=True) for number in range(SLOTS)]

Submit = Callable[[int], "Future[Any]"]


def noop() -> None:
    pass


def measure() -> Iterator[Figure]:
    for name, work in (("submit().result()", _one_by_one), ("submitted together", _together)):
        pool, bare, queue = [], [], []
        for _ in range(ROUNDS):
            pool.append(_in_a_pool(work))
            bare.append(_in_a_runtime(work))
            queue.append(_in_a_queue(work))
        yield Figure(f"queue {name}: ThreadPoolExecutor", median(pool), unit="µs per task")
        yield Figure(f"queue {name}: TaskQueue", median(queue), unit="µs per task")
        against = median(a / b for a, b in zip(queue, pool, strict=True))
        yield Figure(f"queue {name}: against the pool", against, 3.0, "×")
        against = median(a / b for a, b in zip(queue, bare, strict=True))
        yield Figure(f"queue {name}: against the bare runtime", against, 1.3, "×")

    gaps = sorted(gap for _ in range(ROUNDS) for gap in _gaps())
    yield Figure("queue start after a release, median", median(gaps) * 1e3, 1.0, "ms")
    yield Figure("queue start after a release, p99", gaps[len(gaps) * 99 // 100] * 1e3, unit="ms")


def _gaps() -> list[float]:
    """Seconds from the end of an agent to the start of the next one that waited for its file."""
    moments: list[float] = []

    def work() -> None:
        moments.extend((perf_counter(), perf_counter()))

    with TaskQueue(SLOTS) as queue:
        for number in range(200):
            queue.submit_task(AgentTask(f"a{number}", "work", ["file"], work))
    return [start - end for end, start in zip(moments[1::2], moments[2::2], strict=False)]


def _one_by_one(submit: Submit) -> None:
    for number in range(SIZE):
        submit(number).result()


def _together(submit: Submit) -> None:
    for future in [submit(number) for number in range(SIZE)]:
        future.result()


def _timed(work: Callable[[Submit], None], submit: Submit) -> float:
    submit(-1).result()
    gc.collect()
    began = perf_counter()
    work(submit)
    return (perf_counter() - began) / SIZE * 1e6


def _in_a_pool(work: Callable[[Submit], None]) -> float:
    with ThreadPoolExecutor(SLOTS) as pool:
        return _timed(work, lambda _: pool.submit(noop))


def _in_a_queue(work: Callable[[Submit], None]) -> float:
    with TaskQueue(SLOTS) as queue:
        return _timed(
            work,
            lambda number: queue.submit_task(AgentTask(f"a{number % SLOTS}", "work", [], noop)),
        )


def _in_a_runtime(work: Callable[[Submit], None]) -> float:
    """The same tasks and claims, on a Runtime in the background, by hand."""
    with RuntimeHost(lambda: Runtime(SLOTS, order="first_come")) as runtime:

        def submit(number: int) -> Future[Any]:
            future: Future[Any] = Future()

            def taken(handle: Handle[Any] | InterlockError) -> None:
                assert isinstance(handle, Handle)
                handle.when_settled(lambda _: future.set_result(handle.outcome))

            task = Task(f"t{number}", noop, prompt="work", claims=[EXCLUSIVE[number % SLOTS]])
            runtime.post(runtime.prepare(task), taken)
            return future

        return _timed(work, submit)
