"""Real processes: how they answer, how they die, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from interlock.model.outcome import State
from tests.integration import process_agents as agents
from tests.unit.execution.agents import double
from tests.unit.execution.worlds import World, opened, story


def is_there(pid: int) -> bool:
    """Whether a process with this number exists, dead but not reaped ones included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_alive(pid: int) -> bool:
    """Whether it still runs: of one whose supervisor is dead, we are not the ones to reap it."""
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


async def announced(world: World) -> list[int]:
    return [int(pid) for pid in (await world.hear()).split()]


@story
async def test_a_result_of_100_megabytes_comes_back(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(agents.big, 100_000_000)
        assert len(ending.value) == 100_000_000


@story
async def test_arguments_of_100_megabytes_arrive(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        assert (await world.run(agents.length, bytes(100_000_000))).value == 100_000_000


@story
async def test_a_result_that_cannot_be_sent_is_a_failure_that_says_so(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(agents.result_that_cannot_be_sent)
        assert ending.status is State.FAILED
        assert ending.error is not None
        assert ending.error.type == "ResultNotSent"
        assert "the result, a lock, cannot be sent" in ending.error.message


@story
async def test_a_result_that_cannot_be_read_harms_nobody(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(agents.result_that_cannot_be_read)
        assert ending.error is not None
        assert ending.error.type == "ResultNotSent"


@story
async def test_an_argument_that_cannot_be_sent_is_a_failure_that_says_so(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(double, threading.Lock())
        assert ending.error is not None
        assert ending.error.type == "NotAnAgent"
        assert "cannot be sent to a process" in ending.error.message


@pytest.mark.parametrize(
    ("agent", "kind", "text"),
    [
        (agents.raise_unpicklable, "Unpicklable", "with a lock"),
        (agents.raise_needy, "Needy", "this and that"),
    ],
)
@story
async def test_an_exception_that_does_not_travel_leaves_its_record(
    agent: object, kind: str, text: str, tmp_path: Path
) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(agent)  # type: ignore[arg-type]
        assert ending.error is not None
        assert (ending.error.type, ending.error.message) == (kind, text)
        assert "process_agents.py" in ending.error.traceback
        assert ending.exception is None


@story
async def test_an_exception_carries_the_traceback_of_its_process(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(double, None)
        assert isinstance(ending.exception, TypeError)
        assert "in double" in str(ending.exception.__cause__)


@story
async def test_a_process_out_of_memory_endangers_nobody_else(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(agents.out_of_memory)
        assert not ending.fatal
        assert ending.error is not None
        assert ending.error.retryable


@pytest.mark.parametrize(
    ("agent", "argument", "text"),
    [
        (agents.leave_at_once, 0, "ended with exit code 0 instead of an answer"),
        (agents.leave_at_once, 3, "ended with exit code 3 instead of an answer"),
        (agents.kill_self, signal.SIGKILL, "was killed by SIGKILL"),
        (agents.kill_self, signal.SIGSEGV, "was killed by SIGSEGV"),
        (agents.kill_self, signal.SIGTERM, "was killed by SIGTERM"),
        (agents.kill_self, signal.SIGRTMIN + 1, f"was killed by signal {signal.SIGRTMIN + 1}"),
    ],
)
@story
async def test_a_process_that_dies_without_a_word_is_a_failure_that_says_how(
    agent: object, argument: int, text: str, tmp_path: Path
) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(agent, argument)  # type: ignore[arg-type]
        assert ending.error is not None
        assert ending.error.type == "ProcessDied"
        assert text in ending.error.message


@story
async def test_a_fork_of_the_agent_does_not_answer_for_it(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        assert (await world.run(agents.fork_and_return)).value == 1


@pytest.mark.parametrize(
    "garbage",
    [b"garbage", b"x" * 1_000_000, b"ilock-1\n" + b"\xff" * 8, b"ilock-1\n" + bytes(7) + b"\x01x"],
    ids=["short", "long", "a frame without end", "a frame that is no answer"],
)
@story
async def test_garbage_in_the_pipe_is_a_failure_that_says_so(
    garbage: bytes, tmp_path: Path
) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(agents.write_garbage, garbage)
        assert ending.error is not None
        assert ending.error.type == "ProcessDied"


@story
async def test_an_agent_that_closes_all_descriptors_ends_once(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        ending = await world.run(agents.close_everything)
        assert ending.error is not None
        assert ending.error.type == "ProcessDied"


@pytest.mark.parametrize("agent", [agents.clean_up, agents.clean_up_on_a_loop])
@story
async def test_a_cancelled_agent_can_clean_up(agent: object, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with opened("processes", tmp_path) as world:
        token = world.submit(agent, world.announced, str(mark))  # type: ignore[arg-type]
        await world.hear()
        world.backend.cancel(token, 60)
        ending = await world.sink.end_of(token)
        assert isinstance(ending.exception, asyncio.CancelledError)
        assert str(ending.exception) == "the agent was told to stop"
        assert mark.read_text() == "cleaned up"


@pytest.mark.parametrize("agent", [agents.resist, agents.change_group])
@story
async def test_an_agent_that_resists_is_killed_when_the_grace_is_over(
    agent: object, tmp_path: Path
) -> None:
    async with opened("processes", tmp_path) as world:
        token = world.submit(agent, world.announced)  # type: ignore[arg-type]
        (pid,) = await announced(world)
        world.backend.cancel(token, 0.05)
        ending = await world.sink.end_of(token)
        assert ending.error is not None
        assert "was killed by SIGKILL, after it was told to stop" in ending.error.message
        assert not is_there(pid)


@story
async def test_a_second_cancel_may_shorten_the_grace_but_not_lengthen_it(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        token = world.submit(agents.resist, world.announced)
        await world.hear()
        world.backend.cancel(token, 1_000)
        world.backend.cancel(token, 0)
        world.backend.cancel(token, float("inf"))
        await world.sink.end_of(token)


@pytest.mark.parametrize(
    "agent", [agents.have_children, agents.leave_children, agents.die_with_children]
)
@story
async def test_cancelling_leaves_no_child_process_running(agent: object, tmp_path: Path) -> None:
    """Nor does returning or dying; those that called setsid included (pitfall 23)."""
    async with opened("processes", tmp_path) as world:
        token = world.submit(agent, world.announced)  # type: ignore[arg-type]
        pids = await announced(world)
        if agent is agents.have_children:
            world.backend.cancel(token, 0.05)
        await world.sink.end_of(token)
        assert len(pids) == 7
        assert not [pid for pid in pids if is_there(pid)]


@story
async def test_an_answer_is_there_before_the_process_is_gone(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        token = world.submit(agents.linger, world.announced)
        assert (await world.sink.ending_of(token)).value == "done"
        assert not world.sink.is_over(token)
        await world.hear()
        await world.sink.end_of(token)


@story
async def test_a_process_that_will_not_end_after_its_answer_can_be_killed(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        token = world.submit(agents.linger, world.announced)
        await world.sink.ending_of(token)
        world.backend.cancel(token, 0)
        assert (await world.sink.end_of(token)).value == "done"


@story
async def test_exit_handlers_of_the_agent_run(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        await world.run(agents.say_goodbye, str(tmp_path / "mark"))
        assert (tmp_path / "mark").read_text() == "goodbye"


@story
async def test_a_decorated_function_runs_too(tmp_path: Path) -> None:
    async with opened("processes", tmp_path) as world:
        assert (await world.run(agents.decorated, 1)).value == 2
        assert (await world.run(agents.decorated.function, 1)).value == 2


def test_what_an_agent_prints_is_seen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        async with opened("processes", tmp_path) as world:
            await world.run(agents.say, "hello")

    asyncio.run(run())
    assert capfd.readouterr() == ("hello\n", "hello\n")
