"""Groups that claim the same are refused, or wait; and whatever happens, nothing stays locked."""

from __future__ import annotations

import asyncio
import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    PARALLEL_LOCK_CONFLICT,
    PARALLEL_LOCK_RELEASE_ERROR,
    PARALLEL_VALIDATION_ERROR,
    ClaimOutsideWorkspace,
    InMemoryResourceLock,
    InvalidOption,
    InvalidPattern,
    ParallelExecutionGroup,
    ResourceConflictError,
    ShuttingDown,
    State,
)
from interlock.testing.virtual_run import simulate
from tests.unit.patterns.groups import (
    Engine,
    assign,
    executor,
    group,
    played,
    raises,
    resists,
    sleeps,
)


class Watched(InMemoryResourceLock):
    """A lock that remembers what was asked of it, and takes its time, as a real one would."""

    def __init__(self) -> None:
        super().__init__()
        self.holders: list[str] = []
        self.releasing = asyncio.Event()

    async def acquire(self, resource: str, holder: str) -> bool:
        await asyncio.sleep(1)
        self.holders.append(holder)
        return await super().acquire(resource, holder)

    async def release_all(self, holder: str) -> int:
        self.releasing.set()
        await asyncio.sleep(1)
        return await super().release_all(holder)

    @property
    def is_free(self) -> bool:
        return not self.is_locked("**")


@pytest.mark.parametrize(
    ("one", "other"),
    [("a.py", "a.py"), ("src/", "src/a.py"), ("src/**", "./src/b/../a.py"), ("*.md", "R*")],
)
def test_claims_that_overlap_inside_a_group_are_refused_before_anything_runs(
    one: str, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        engine, lock = Engine(), Watched()
        with pytest.raises(ResourceConflictError, match=r"agent 'agent-c' claims .* 'agent-a'"):
            await executor(engine, resource_lock=lock).execute_group(
                group(assign("a", None, one), assign("b"), assign("c", None, "z", other))
            )
        assert engine.began == []
        assert lock.holders == []

    played(main)
    assert [each.getMessage() for each in caplog.records] == [PARALLEL_VALIDATION_ERROR]


def test_two_spellings_of_a_file_are_one_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")

    async def main() -> None:
        ex = executor(workspace=tmp_path)
        with pytest.raises(ResourceConflictError, match=r"'real/a\.py'"):
            await ex.execute_group(
                group(
                    assign("a", None, "link/a.py"), assign("b", None, str(tmp_path / "real/a.py"))
                )
            )
        both = group(assign("a", None, "link/a.py", "real/a.py"))
        assert (await ex.execute_group(both)).all_succeeded

    played(main)


@pytest.mark.parametrize(
    ("claim", "error"), [("[", InvalidPattern), ("../x", ClaimOutsideWorkspace)]
)
def test_a_claim_that_cannot_be_names_its_task(claim: str, error: type[Exception]) -> None:
    async def main() -> None:
        engine = Engine()
        with pytest.raises(error, match="task 'b'"):
            await executor(engine).execute_group(group(assign("a"), assign("b", None, claim)))
        assert engine.began == []

    played(main)


def test_a_lock_that_somebody_else_holds_is_refused_and_nothing_stays_locked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        engine, lock = Engine(), Watched()
        await lock.acquire("b.py", "somebody")
        ex = executor(engine, resource_lock=lock)
        these = group(assign("a", None, "a.py"), assign("b", None, "b.py"), assign("c", None, "c"))
        with pytest.raises(ResourceConflictError, match=r"'b\.py' is held by 'somebody'"):
            await ex.execute_group(these)
        assert engine.began == []
        assert not lock.is_locked("a.py")
        await lock.release("b.py", "somebody")
        assert (await ex.execute_group(these)).all_succeeded
        assert lock.is_free

    played(main)
    assert PARALLEL_LOCK_CONFLICT in [each.getMessage() for each in caplog.records]


def test_two_groups_of_one_executor_exclude_each_other_without_being_given_a_lock() -> None:
    async def main() -> None:
        engine = Engine()
        ex = executor(engine)
        first = asyncio.ensure_future(ex.execute_group(group(assign("a", sleeps(5), "src/"))))
        await asyncio.sleep(1)
        second = group(assign("b", None, "src/a.py"), id="h")
        with pytest.raises(ResourceConflictError, match=r"'src/a\.py' is held by 'g/a of run"):
            await ex.execute_group(second)
        assert (await ex.execute_group(group(assign("c", None, "docs/"), id="i"))).all_succeeded
        await first
        assert (await ex.execute_group(second)).all_succeeded
        assert engine.ended == ["c", "a", "b"]

    played(main)


def test_two_executions_of_one_group_are_two_holders() -> None:
    async def main() -> None:
        lock = Watched()
        ex, same = executor(resource_lock=lock), group(assign("a", sleeps(3), "a.py"))
        first = asyncio.ensure_future(ex.execute_group(same))
        await asyncio.sleep(2)
        with pytest.raises(ResourceConflictError):
            await ex.execute_group(same)
        assert lock.is_locked("a.py")  # the second one has released nothing of the first
        await first
        await ex.execute_group(same)
        assert len(set(lock.holders)) == len(lock.holders) == 3

    played(main)


def _files() -> ParallelExecutionGroup:
    return group(assign("a", sleeps(5), "a.py"), assign("b", None, "b.py"))


def test_with_on_conflict_wait_groups_wait_their_turn_and_why_says_for_what() -> None:
    async def main() -> None:
        engine = Engine()
        async with executor(engine, on_conflict="wait") as ex:
            first = asyncio.ensure_future(ex.execute_group(_files()))
            await asyncio.sleep(1)
            second = asyncio.ensure_future(
                ex.execute_group(group(assign("c", None, "*.py"), assign("d"), id="h"))
            )
            await asyncio.sleep(1)
            assert ex.runtime.handle("h").state is State.WAITING
            assert "'g'" in str(ex.runtime.why("h"))
            assert (await second).all_succeeded
            assert first.done()
            assert sorted(engine.began[2:]) == ["c", "d"]

    played(main)


def test_with_on_conflict_wait_a_lock_of_somebody_else_is_waited_for() -> None:
    async def main() -> None:
        engine, lock = Engine(), Watched()
        ex = executor(engine, resource_lock=lock, on_conflict="wait")
        await lock.acquire("b.py", "somebody")
        waits = asyncio.ensure_future(
            ex.execute_group(
                group(assign("a", None, "a.py"), assign("b", sleeps(2), "b.py", timeout_seconds=3))
            )
        )
        await asyncio.sleep(50)
        assert engine.began == []
        assert not lock.is_locked("a.py")  # who waits holds nothing
        await lock.release("b.py", "somebody")
        result = await waits
        assert result.all_succeeded  # the time spent waiting is not the agent's
        assert lock.is_free

    played(main)


def test_a_lock_that_cannot_be_waited_for_is_refused_with_on_conflict_wait() -> None:
    class Plain:
        acquire, release = InMemoryResourceLock.acquire, InMemoryResourceLock.release
        release_all, is_locked = InMemoryResourceLock.release_all, InMemoryResourceLock.is_locked
        holder_of = InMemoryResourceLock.holder_of

    executor(resource_lock=Plain())
    with pytest.raises(InvalidOption, match="wait_until_free"):
        executor(resource_lock=Plain(), on_conflict="wait")


class Untouchable:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was used")


def test_without_claims_nothing_is_locked() -> None:
    async def main() -> None:
        result = await executor(resource_lock=Untouchable()).execute_group(group(assign("a")))
        assert result.all_succeeded

    played(main)


@pytest.mark.parametrize("on_conflict", ["refuse", "wait"])
@pytest.mark.parametrize("after", range(1, 12))
def test_whenever_the_caller_is_cancelled_once_or_twice_nothing_stays_locked(
    after: int, on_conflict: str
) -> None:
    async def main() -> None:
        engine, lock = Engine(), Watched()
        ex = executor(engine, resource_lock=lock, on_conflict=on_conflict)
        running = asyncio.ensure_future(
            ex.execute_group(
                group(
                    assign("a", sleeps(4), "a.py"),
                    assign("b", sleeps(5), "b.py"),
                    assign("c", raises(OSError()), "c.py"),
                )
            )
        )
        await asyncio.sleep(after - 0.5)
        running.cancel()
        for _ in range(3):
            await asyncio.sleep(0.3)
            running.cancel()  # again, while it releases
        with pytest.raises(asyncio.CancelledError):
            await running
        assert lock.is_free
        assert not engine.inside
        assert len(asyncio.all_tasks()) == 1

    played(main)


def test_a_second_cancellation_during_release_leaks_nothing() -> None:
    async def main() -> None:
        lock = Watched()
        ex = executor(resource_lock=lock)
        running = asyncio.ensure_future(
            ex.execute_group(group(assign("a", sleeps(9), "a.py"), assign("b", None, "b.py")))
        )
        await asyncio.sleep(3)
        running.cancel()
        await lock.releasing.wait()
        assert lock.is_locked("a.py")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert lock.is_free

    played(main)


class Stepwise(InMemoryResourceLock):
    """Can be interrupted in the middle of everything it does."""

    async def acquire(self, resource: str, holder: str) -> bool:
        await asyncio.sleep(0)
        taken = await super().acquire(resource, holder)
        await asyncio.sleep(0)
        return taken

    async def release_all(self, holder: str) -> int:
        await asyncio.sleep(0)
        count = await super().release_all(holder)
        await asyncio.sleep(0)
        return count


@pytest.mark.parametrize("on_conflict", ["refuse", "wait"])
def test_at_whichever_step_callers_are_cancelled_once_and_again_nothing_stays_locked(
    on_conflict: str,
) -> None:
    async def steps() -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def main(step: int, pause: int) -> bool:
        engine, lock = Engine(), Stepwise()
        ex = executor(engine, resource_lock=lock, on_conflict=on_conflict)
        one = group(assign("a", steps, "a.py"), assign("b", steps, "b.py"))
        other = group(assign("c", steps, "c.py"), assign("d", steps), id="h", max_concurrency=1)
        running = [asyncio.ensure_future(ex.execute_group(each)) for each in (one, other)]
        for _ in range(step):
            await asyncio.sleep(0)
        for _ in range(3):
            for each in running:
                each.cancel()
            for _ in range(pause):
                await asyncio.sleep(0)
        await asyncio.wait(running)
        assert not lock.is_locked("**")
        assert not engine.inside
        assert len(asyncio.all_tasks()) == 1
        return any(each.cancelled() for each in running)

    for pause in (0, 1, 3):
        cancelled = [played(partial(main, step, pause), seed=step) for step in range(60)]
        assert cancelled[0]
        assert not cancelled[-1], "it takes more steps than were tried"


def test_what_an_agent_has_locked_stays_locked_until_it_has_really_stopped() -> None:
    async def main() -> None:
        engine, lock = Engine(), Watched()
        ex = executor(engine, resource_lock=lock, grace=2.0)
        result = await ex.execute_group(
            group(assign("a", resists(20), "a.py", timeout_seconds=1), assign("b", None, "b.py"))
        )
        assert [each.error for each in result.outcomes] == ["Timed out after 1 s", None]
        assert lock.is_locked("a.py")
        assert not lock.is_locked("b.py")
        with pytest.raises(ResourceConflictError):
            await ex.execute_group(group(assign("c", None, "a.py"), id="h"))
        await asyncio.sleep(30)
        assert lock.is_free
        assert (await ex.execute_group(group(assign("c", None, "a.py"), id="h"))).all_succeeded

    played(main)


def test_a_group_that_is_refused_after_it_took_its_locks_gives_them_back_at_once() -> None:
    async def main() -> None:
        engine, lock = Engine(), Watched()
        ex = executor(engine, resource_lock=lock)
        running = asyncio.ensure_future(ex.execute_group(_files()))
        await asyncio.sleep(1.5)  # it has one of two
        await ex.shutdown()
        with pytest.raises(ShuttingDown):
            await running
        assert asyncio.get_running_loop().time() < 10
        assert engine.began == []
        assert lock.is_free

    played(main)


@pytest.mark.parametrize("on_conflict", ["refuse", "wait"])
def test_a_group_that_the_runtime_refuses_is_not_waited_for(on_conflict: str) -> None:
    async def main() -> None:
        lock = Watched()
        async with executor(resource_lock=lock, on_conflict=on_conflict) as ex:
            await ex.runtime.shutdown()
            with pytest.raises(ShuttingDown):
                await ex.execute_group(_files())
            assert asyncio.get_running_loop().time() < 10
            assert lock.is_free

    played(main)


class Broken(Watched):
    async def release_all(self, holder: str) -> int:
        if "g/a" in holder:
            raise OSError("the lock server is gone")
        return await super().release_all(holder)


def test_a_release_that_fails_is_an_event_of_its_own_and_keeps_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        lock = Broken()
        result = await executor(resource_lock=lock).execute_group(_files())
        assert result.all_succeeded
        assert not lock.is_locked("b.py")

    played(main)
    assert [each.getMessage() for each in caplog.records] == [PARALLEL_LOCK_RELEASE_ERROR]


@pytest.mark.parametrize("on_conflict", ["refuse", "wait"])
def test_an_exception_group_that_nobody_expected_is_logged_and_raised(
    on_conflict: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(Watched):
        async def acquire(self, resource: str, holder: str) -> bool:
            await super().acquire(resource, holder)
            if resource == "b.py":
                raise ExceptionGroup("two servers are gone", [OSError("one"), OSError("two")])
            return True

    async def main() -> None:
        engine, lock = Engine(), Odd()
        ex = executor(engine, resource_lock=lock, on_conflict=on_conflict)
        with pytest.raises(ExceptionGroup, match="two servers are gone"):
            await ex.execute_group(_files())
        assert engine.began == []
        assert lock.is_free

    played(main)
    told = [each for each in caplog.records if each.getMessage().startswith("execution.")]
    assert [each.levelname for each in told] == ["ERROR"]
    assert told[0].exc_info is not None


@pytest.mark.parametrize("seed", range(40))
def test_no_two_agents_are_ever_at_the_same_file_whatever_happens_to_their_groups(
    seed: int,
) -> None:
    chance = random.Random(seed)
    at: dict[str, str] = {}

    def busy(who: str, file: str) -> Any:
        seconds = chance.choice([1, 3, 8])
        how = chance.choice([sleeps(seconds), resists(seconds), raises(OSError())])

        async def does() -> Any:
            assert at.setdefault(file, who) == who, f"{who} meets {at[file]} at {file}"
            try:
                return await how()
            finally:
                del at[file]

        return does

    async def main() -> int:
        lock = InMemoryResourceLock()
        ex = executor(resource_lock=lock, on_conflict=chance.choice(["refuse", "wait"]), grace=2.0)

        async def one(number: int) -> int:
            await asyncio.sleep(chance.randint(0, 10))
            files = chance.sample("abcd", 2)
            these = [
                assign(
                    each, busy(f"{number}{each}", each), each, timeout_seconds=chance.choice([2, 9])
                )
                for each in files
            ]
            name = chance.choice(["g", "h"])
            try:
                async with asyncio.timeout(chance.choice([2, 5, 100])):
                    await ex.execute_group(
                        group(*these, id=name, fail_fast=chance.choice([True, False]))
                    )
            except (ResourceConflictError, TimeoutError):
                return 0
            return 1

        async with asyncio.TaskGroup() as several:
            tasks = [several.create_task(one(number)) for number in range(6)]
        await asyncio.sleep(60)
        assert not lock.is_locked("**")
        assert not at
        return sum(each.result() for each in tasks)

    run = simulate(main, seed=seed, deadline=1e5)
    run.value()
    assert not run.leaked
    assert not run.complaints
