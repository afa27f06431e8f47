"""Waiting for a moment on event loops and in threads."""

from __future__ import annotations

import asyncio
import threading

import pytest

from interlock.runtime.hosting.milestone import Milestone


async def test_a_loop_is_woken_from_its_own_thread_and_from_another_one() -> None:
    for reach_from in (lambda it: it.reach(), lambda it: asyncio.to_thread(it.reach)):
        milestone = Milestone()
        waits = [asyncio.ensure_future(milestone.wait()) for _ in range(2)]
        await asyncio.sleep(0)
        reaching = reach_from(milestone)
        if reaching is not None:
            await reaching
        assert not (await asyncio.wait(waits, timeout=60))[1]
        await milestone.wait()  # it stays reached
        assert milestone.is_reached()


async def test_a_waiter_that_is_cancelled_keeps_no_other_from_being_woken() -> None:
    milestone = Milestone()
    gone, stays = (asyncio.ensure_future(milestone.wait()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    milestone.reach()
    await asyncio.wait_for(stays, 60)
    assert gone.cancelled()


def test_a_thread_is_woken_or_told_that_its_time_is_up() -> None:
    milestone = Milestone()
    with pytest.raises(TimeoutError):
        milestone.wait_in_thread(0.01)
    threading.Timer(0.01, milestone.reach).start()
    milestone.wait_in_thread(60)


def test_a_loop_that_was_closed_is_passed_over() -> None:
    async def wait_a_moment() -> None:
        waits = asyncio.ensure_future(milestone.wait())
        await asyncio.sleep(0)
        waits.cancel()

    milestone = Milestone()
    asyncio.run(wait_a_moment())
    milestone.reach()
    assert milestone.is_reached()
