"""How a simulated program ends: well, hung, or with something left behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys

import pytest

from interlock.testing.virtual_loop import Hung, VirtualLoop
from interlock.testing.virtual_run import simulate


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def hang() -> None:
    event = asyncio.Event()

    async def inner() -> None:
        await event.wait()  # the line to be named

    async with asyncio.TaskGroup() as group:
        group.create_task(inner(), name="sleeper")


def test_a_hang_names_every_pending_task_and_the_line_where_it_waits() -> None:
    with pytest.raises(Hung) as caught:
        simulate(hang)
    assert [task.name for task in caught.value.tasks] == ["main", "sleeper"]
    text = str(caught.value)
    assert "nothing is ready and no timer is set" in text
    assert "await event.wait()  # the line to be named" in text
    assert "test_virtual_run.py:" in text
    assert "hang.<locals>.inner" in text


def test_waiting_for_a_timer_at_infinity_is_a_hang() -> None:
    with pytest.raises(Hung):
        simulate(lambda: asyncio.sleep(float("inf")))


def test_a_loop_that_never_waits_hits_the_limit_of_steps() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Hung, match="not done after 500 steps"):
        simulate(main, max_steps=500)


def test_a_program_past_its_deadline_is_a_hang() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(7)

    with pytest.raises(Hung, match="not done after 100 virtual seconds"):
        simulate(main, deadline=100)


def test_a_program_may_end_at_its_very_deadline() -> None:
    assert simulate(lambda: asyncio.sleep(100, "done"), deadline=100).value() == "done"


def test_tasks_left_behind_are_reported_and_ended() -> None:
    ended = []

    async def left() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(1)
            ended.append("left")

    async def main() -> str:
        keep.append(asyncio.create_task(left(), name="left"))
        await asyncio.sleep(1)
        return "done"

    keep: list[asyncio.Task[None]] = []
    run = simulate(main)
    assert run.value() == "done"
    assert [task.name for task in run.leaked] == ["left"]
    assert "in forever" in run.leaked[0].place
    assert run.time == 1
    assert ended == ["left"]


def test_a_task_that_nobody_refers_to_is_not_lost() -> None:
    async def main() -> int:
        asyncio.create_task(forever(), name="nobody's")  # noqa: RUF006 - that is the point
        await asyncio.sleep(0)
        return gc.collect()

    assert [task.name for task in simulate(main).leaked] == ["nobody's"]


def test_a_leaked_task_that_will_not_be_cancelled_does_not_hang_the_simulation() -> None:
    async def main() -> None:
        async def stubborn() -> None:
            while True:
                try:
                    await forever()
                except asyncio.CancelledError:
                    continue

        asyncio.create_task(stubborn(), name="stubborn")  # noqa: RUF006
        await asyncio.sleep(0)

    run = simulate(main)
    assert [task.name for task in run.leaked] == ["stubborn"]
    assert not run.crashed
    assert "would not end" in run.complaints[0]


def test_sys_exit_in_any_task_ends_the_program() -> None:
    async def main() -> None:
        async def leave() -> None:
            sys.exit(3)

        task = asyncio.create_task(leave())
        await task

    assert isinstance(simulate(main).exception, SystemExit)


def test_collection_of_garbage_is_off_while_it_runs_and_on_again_after() -> None:
    async def main() -> bool:
        return gc.isenabled()

    assert gc.isenabled()
    assert simulate(main).value() is False
    assert gc.isenabled()
    with pytest.raises(Hung):
        simulate(hang)
    assert gc.isenabled()


def test_a_closed_loop_takes_nothing_more() -> None:
    loop = VirtualLoop(0)
    loop.close()
    assert loop.is_closed()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)


def test_a_simulation_inside_a_running_loop_is_refused() -> None:
    async def main() -> None:
        simulate(forever)

    with pytest.raises(RuntimeError, match="simulate from a plain function"):
        simulate(main).value()


def test_a_late_complaint_goes_to_asyncios_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def fail() -> None:
            raise OSError("fetched by nobody")

        held.append(asyncio.create_task(fail()))
        await asyncio.wait(held)

    held: list[asyncio.Task[None]] = []
    assert simulate(main).complaints == ()
    with caplog.at_level(logging.ERROR, logger="asyncio"):
        held.clear()
        gc.collect()
    assert "fetched by nobody" in caplog.text
