"""What an attacker once broke, and must not break again."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from pathlib import Path

import pytest

import interlock
from interlock import (
    AttemptsStillAlive,
    Event,
    InvalidOption,
    NotRunning,
    Runtime,
    State,
    Task,
    TaskContext,
    UsageError,
    uses,
)

KEPT: list[object] = []
"""Tasks of a loop that was closed early: to destroy them is a complaint of Python's."""


async def test_a_listener_that_is_cancelled_does_not_end_the_run() -> None:
    cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancelled.cancel()

    def listener(event: Event) -> None:
        cancelled.result()

    async with Runtime() as rt:
        rt.listen(listener)
        assert (await rt.submit(lambda: 1)).succeeded


async def test_the_reason_of_a_cancellation_is_text(tmp_path: Path) -> None:
    async with Runtime(journal=tmp_path / "j.db") as rt:
        handle = rt.submit(asyncio.Event().wait)
        with pytest.raises(InvalidOption):
            handle.cancel(ValueError("enough"))  # type: ignore[arg-type]
        assert handle.cancel("enough")


async def test_a_call_in_the_middle_of_a_decision_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A signal handler of a program runs on the loop's own thread, between any two lines."""
    async with Runtime() as rt:
        kernel, refused = rt._kernel, []
        decide = kernel.handle

        def interrupted(*args: object) -> object:
            try:
                rt.pause()
            except UsageError as error:
                refused.append(error)
            return decide(*args)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(kernel, "handle", interrupted)
            handle = rt.submit(lambda: 1)
        assert (await handle).succeeded
        assert "call_soon_threadsafe" in str(refused[0])


def test_run_comes_back_although_an_async_agent_swallows_every_cancellation() -> None:
    async def deaf() -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue

    with pytest.raises(AttemptsStillAlive):
        interlock.run([Task("deaf", deaf, timeout=0.01, writes="x")], grace=0.05)
    # Its loop is closed, so it can never run again, and holds nothing from others.
    (outcome,) = interlock.run([Task("next", lambda: 1, writes="x")], deadline="1m")
    assert outcome.succeeded


@pytest.mark.parametrize(("outer", "inner"), [(True, False), (False, True)])
async def test_a_thread_that_was_left_holds_its_claims_in_nested_workspaces_too(
    outer: bool, inner: bool, tmp_path: Path
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    held = threading.Event()
    first, second = (tmp_path, below) if outer else (below, tmp_path)
    claim = "below/x" if outer else "x"
    with pytest.raises(AttemptsStillAlive):
        async with Runtime(workspace=first, grace=0.01) as rt:
            await rt.submit(held.wait, writes=claim, uses=uses("db", exclusive=True), timeout=0.01)
    async with Runtime(workspace=second) as rt:
        files = rt.submit(lambda: 1, writes="below/x" if inner else "x")
        names = rt.submit(lambda: 1, uses=uses("db", exclusive=True))
        free = rt.submit(lambda: 1, uses=uses("other", exclusive=True))
        assert (await free).succeeded
        assert files.state is names.state is State.WAITING
        held.set()
        assert (await files).succeeded
        assert (await names).succeeded


async def test_a_thread_that_waits_is_told_when_the_loop_was_closed() -> None:
    told: list[BaseException] = []
    started = threading.Event()

    def life() -> None:
        loop = asyncio.new_event_loop()

        async def main() -> None:
            rt = Runtime()
            await rt.__aenter__()
            handle = rt.submit(asyncio.Event().wait)

            def wait() -> None:
                started.set()
                try:
                    handle.wait()
                except NotRunning as error:
                    told.append(error)

            waiting.append(threading.Thread(target=wait))
            waiting[0].start()
            await asyncio.to_thread(started.wait)
            await asyncio.sleep(0.01)

        loop.run_until_complete(main())
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            KEPT.append(task)
        loop.close()

    waiting: list[threading.Thread] = []
    await asyncio.to_thread(life)
    await asyncio.to_thread(waiting[0].join)
    assert len(told) == 1


async def test_declared_secrets_reach_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(ctx: TaskContext) -> None:
        ctx.log("the key is hunter2222")
        raise OSError("refused hunter2222")

    with caplog.at_level(logging.DEBUG, logger="interlock"):
        async with Runtime(secrets=["hunter2222"]) as rt:
            await rt.submit(agent, uses="vault-hunter2222")
    said = [str(getattr(each, "interlock", "")) + each.getMessage() for each in caplog.records]
    assert any("***" in each for each in said)
    assert not any("hunter2222" in each for each in said)


async def test_the_child_of_an_agent_that_forks_does_not_live_on() -> None:
    """It comes back into our thread, which exists twice then."""

    def forks() -> int:
        return os.fork()

    async with Runtime() as rt:
        child = await rt.submit(forks).result()
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
