"""The contract of `Workspaces`: when the runtime prepares, audits and releases, come what may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from interlock import (
    AttemptsStillAlive,
    InterlockError,
    Retry,
    Runtime,
    State,
    TaskContext,
)
from interlock.execution.backend import AttemptJob, Backend, Caps
from interlock.execution.call_spec import BackendKind
from interlock.execution.callables.coroutines import Coroutines
from interlock.execution.ending import returned
from interlock.execution.processes.process_agent import Process
from interlock.execution.workspaces.port import (
    PreparedWorkspace,
    ReleaseReason,
    WorkspaceAudit,
    WorkspaceCaps,
    WorkspaceRelease,
    WorkspaceRequest,
    Workspaces,
)
from interlock.execution.workspaces.shared import SharedWorkspaces
from interlock.journal.memory import MemoryJournal
from interlock.model.event import Kind
from interlock.testing.simulated_backends import Blocking
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate
from tests.unit.execution.fake_workspaces import (
    FakeWorkspaces,
    Manner,
    failing,
    hanging,
    slow,
    stubborn,
)

Program = Callable[[Runtime], Awaitable[Any]]


def played(
    workspaces: Workspaces,
    program: Program,
    *,
    seed: int = 0,
    journal: Callable[[], MemoryJournal] = MemoryJournal,
    backends: Any = None,
    **options: Any,
) -> Any:
    """Run a program on the virtual loop; what it returns. The contract has been kept."""
    ports = replace(simulated_ports(seed, journal), workspaces=lambda _: workspaces)
    if backends is not None:
        ports = replace(ports, backends=backends)

    async def main() -> Any:
        async with Runtime(ports=ports, **options) as rt:
            return await program(rt)

    run = simulate(main, seed=seed, deadline=100_000)
    assert not run.complaints
    if isinstance(workspaces, FakeWorkspaces):
        assert not workspaces.broken
    return run.value()


class Agents:
    """Agents of every kind that say when they begin and end."""

    def __init__(self, log: list[str], seconds: float = 1.0) -> None:
        self._log = log
        self._seconds = seconds

    async def _work(self, name: str) -> str:
        self._log.append(f"{name} begins")
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self._log.append(f"{name} ends")
        return name

    def of_kind(self, kind: str, name: str) -> Any:
        if kind == "loop":
            return partial(self._work, name)

        def blocking() -> Any:
            return Blocking(self._work(name))

        return Process(blocking) if kind == "process" else blocking


every_kind = pytest.mark.parametrize("kind", ["loop", "thread", "process"])


# The shared workspace


def test_the_shared_workspace_is_the_project_folder_and_pretends_nothing(tmp_path: Path) -> None:
    shared = SharedWorkspaces(tmp_path)
    workspace = shared.prepare(WorkspaceRequest("run", "a", 1, 7, ()))
    assert (workspace.folder, dict(workspace.environment)) == (tmp_path, {})
    assert not shared.caps.audits
    assert shared.audit(workspace).changed is None


async def test_it_costs_no_asyncio_task_of_its_own(tmp_path: Path) -> None:
    made: list[asyncio.Task[Any]] = []
    loop = asyncio.get_running_loop()

    def count(
        loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=loop, **options)
        made.append(task)
        return task

    async def nothing(ctx: TaskContext) -> Path:
        return ctx.workspace

    async with Runtime(workspace=tmp_path) as rt:
        loop.set_task_factory(count)  # type: ignore[arg-type]
        try:
            outcomes = await rt.wait_all([rt.submit(nothing, id=f"t{n}") for n in range(5)])
        finally:
            loop.set_task_factory(None)
    assert [each.result for each in outcomes] == [tmp_path] * 5
    assert sorted(each.get_name() for each in made) == [f"task-t{n}" for n in range(5)]


# Prepare


@every_kind
@pytest.mark.parametrize("prepare", [None, slow(5)])
def test_an_agent_starts_in_its_prepared_workspace_and_not_before(
    kind: str, prepare: Manner | None
) -> None:
    fake = FakeWorkspaces(prepare=prepare, audit=prepare, release=prepare)

    async def program(rt: Runtime) -> None:
        outcome = await rt.submit(Agents(fake.log).of_kind(kind, "agent"), id="a")
        assert outcome.result == "agent"

    played(fake, program)
    done = [] if prepare is None else ["prepare a/1: done"]
    rest = [each for each in fake.log if "audit" not in each and "release" not in each]
    assert rest == ["prepare a/1", *done, "agent begins", "agent ends"]
    changed = WorkspaceAudit(("a/1.txt",))
    assert fake.releases == {"a/1": WorkspaceRelease(ReleaseReason.SUCCEEDED, changed)}


def test_an_agent_sees_the_folder_that_was_prepared_for_it(tmp_path: Path) -> None:
    async def look(ctx: TaskContext) -> Path:
        return ctx.workspace

    async def program(rt: Runtime) -> Any:
        return (await rt.submit(look)).result

    assert played(FakeWorkspaces(tmp_path, prepare=slow(1)), program) == tmp_path


def test_a_start_is_in_the_journal_before_its_workspace_is_prepared() -> None:
    journal = MemoryJournal()

    class Looks(FakeWorkspaces):
        def prepare(self, request: WorkspaceRequest) -> Any:
            kinds = [event.kind for event in journal.since(0) if event.task_id == request.task_id]
            self._expect(Kind.STARTED in kinds, f"prepared after {kinds} only")
            return super().prepare(request)

    async def program(rt: Runtime) -> None:
        await rt.submit(abs, -1, id="a")

    played(Looks(prepare=slow(1)), program, journal=lambda: journal)


@pytest.mark.parametrize("later", [False, True])
def test_a_failure_to_prepare_is_the_ending_of_the_attempt(later: bool) -> None:
    class Fails(FakeWorkspaces):
        def prepare(self, request: WorkspaceRequest) -> Any:
            if request.attempt > 1:
                return super().prepare(request)
            if later:
                return failing("no space left")()
            raise OSError("no space left")

    fake = Fails()

    async def program(rt: Runtime) -> None:
        log: list[str] = []
        agent = Agents(log).of_kind("loop", "agent")
        once = await rt.submit(agent, id="once")
        assert once.status is State.FAILED
        assert once.error is not None
        assert once.error.type == "OSError"
        assert once.error.message == "the workspace could not be prepared: no space left"
        assert not log
        twice = await rt.submit(agent, id="twice", retry=Retry(attempts=2, backoff=1))
        assert (twice.result, twice.attempts) == ("agent", 2)

    played(fake, program)
    assert list(fake.releases) == ["twice/2"]  # what was not prepared is not released


@pytest.mark.parametrize("answer", [None, 7, "/folder"])
def test_what_is_no_workspace_is_refused(answer: Any) -> None:
    class Odd(FakeWorkspaces):
        def prepare(self, request: WorkspaceRequest) -> Any:
            return answer

    async def program(rt: Runtime) -> None:
        outcome = await rt.submit(abs, -1)
        assert outcome.error is not None
        assert "is no PreparedWorkspace" in outcome.error.message

    played(Odd(), program)


async def stop_by_cancel(rt: Runtime, at: float) -> State:
    handle = rt.submit(abs, -1, id="a", writes="f")
    await asyncio.sleep(at)
    handle.cancel()
    return (await handle).status


async def stop_by_timeout(rt: Runtime, at: float) -> State:
    return (await rt.submit(abs, -1, id="a", writes="f", timeout=at)).status


async def stop_by_deadline(rt: Runtime, at: float) -> State:
    return (await rt.submit(abs, -1, id="a", writes="f", deadline=at)).status


every_stop = pytest.mark.parametrize(
    ("stop", "status"),
    [
        (stop_by_cancel, State.CANCELLED),
        (stop_by_timeout, State.TIMED_OUT),
        (stop_by_deadline, State.TIMED_OUT),
    ],
)


@every_stop
def test_a_stop_during_prepare_ends_the_attempt_without_its_agent(
    stop: Callable[[Runtime, float], Awaitable[State]], status: State
) -> None:
    fake = FakeWorkspaces(prepare=slow(100))

    async def program(rt: Runtime) -> None:
        began = asyncio.get_running_loop().time()
        assert await stop(rt, 5.0) is status
        assert asyncio.get_running_loop().time() - began == pytest.approx(5.0)
        assert fake.log == ["prepare a/1", "prepare a/1: CancelledError"]
        fake.manners["prepare"] = None
        assert (await rt.submit(abs, -1, id="next", writes="f")).result == 1

    played(fake, program)
    assert list(fake.releases) == ["next/1"]


@every_stop
def test_a_prepare_that_will_not_be_cancelled_keeps_the_claims_until_it_is_released(
    stop: Callable[[Runtime, float], Awaitable[State]], status: State
) -> None:
    fake = FakeWorkspaces(prepare=stubborn(100), release=slow(10))

    async def program(rt: Runtime) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await stop(rt, 5.0) is status
        assert loop.time() - began == pytest.approx(5.0)  # the outcome does not wait
        fake.manners["prepare"] = None
        assert (await rt.submit(abs, -1, id="next", writes="f")).result == 1
        assert loop.time() - began == pytest.approx(110.0)
        assert fake.releases["a/1"].reason is ReleaseReason.NOT_STARTED

    played(fake, program)
    assert "audit a/1" not in fake.log


def test_a_cancel_before_the_first_step_of_prepare_leaves_nothing_unawaited() -> None:
    fake = FakeWorkspaces(prepare=slow(5))

    async def program(rt: Runtime) -> None:
        handle = rt.submit(abs, -1, id="a")
        await asyncio.sleep(0)
        handle.cancel()
        assert (await handle).status is State.CANCELLED

    for seed in range(20):  # who is first is up to the loop
        played(fake, program, seed=seed)
        assert not fake.releases
        fake = FakeWorkspaces(prepare=slow(5))


@pytest.mark.parametrize("seed", range(20))
def test_a_prepare_that_is_a_task_of_its_own_loses_no_workspace_to_a_stop(seed: int) -> None:
    class Tasks(FakeWorkspaces):
        def prepare(self, request: WorkspaceRequest) -> Any:
            answer: Any = super().prepare(request)
            return asyncio.ensure_future(answer)

    fake = Tasks(prepare=slow(5))

    async def program(rt: Runtime) -> None:
        for turns in range(10):  # a stop in every turn of the loop around the end of prepare
            handle = rt.submit(abs, -1, id=f"t{turns}", writes="x")
            await asyncio.sleep(5)
            for _ in range(turns):
                await asyncio.sleep(0)
            handle.cancel()
            await handle
            await asyncio.sleep(10)
            assert not fake.open

    played(fake, program, seed=seed)


@pytest.mark.parametrize("step", ["prepare", "audit", "release"])
def test_a_step_that_hangs_is_named_when_the_run_is_left(step: str) -> None:
    fake = FakeWorkspaces()
    fake.manners[step] = hanging()

    async def program(rt: Runtime) -> None:
        handle = rt.submit(abs, -1, id="stuck", timeout=5)
        await handle
        if step == "release":
            assert handle.outcome is not None
            assert handle.outcome.status is State.SUCCEEDED

    with pytest.raises(AttemptsStillAlive, match="stuck"):
        played(fake, program, grace=3)


# Audit


def test_an_outcome_waits_for_the_audit_and_the_audit_for_the_agents_exit() -> None:
    fake = FakeWorkspaces(audit=slow(7))

    async def program(rt: Runtime) -> None:
        began = asyncio.get_running_loop().time()
        agent = Agents(fake.log, seconds=3).of_kind("thread", "agent")
        assert (await rt.submit(agent, id="a")).succeeded
        assert asyncio.get_running_loop().time() - began == pytest.approx(10.0)

    played(fake, program)
    assert fake.log == [
        "prepare a/1",
        "agent begins",
        "agent ends",
        "audit a/1",
        "audit a/1: done",
        "release a/1",
    ]


class Lingers:
    """A backend whose attempts answer after a second, and are gone after ten."""

    caps = Caps(kill=True)

    def __init__(self, loop: asyncio.AbstractEventLoop, log: list[str]) -> None:
        self._loop = loop
        self._log = log

    def submit(self, job: AttemptJob) -> None:
        ended = partial(job.sink.ended, job.token, returned("answer"), gone=False)
        self._loop.call_later(1, ended)
        self._loop.call_later(10, self._gone, job)

    def _gone(self, job: AttemptJob) -> None:
        self._log.append("gone")
        job.sink.gone(job.token)

    def cancel(self, token: int, grace: float) -> None:
        self._log.append("told to stop")

    async def close(self) -> None:
        """Nothing idles here."""


def lingering(log: list[str]) -> Any:
    def backends(
        loop: asyncio.AbstractEventLoop, coroutines: Coroutines, _: Callable[[int], None]
    ) -> Mapping[BackendKind, Backend]:
        return {BackendKind.LOOP: coroutines, BackendKind.THREAD: Lingers(loop, log)}

    return backends


@pytest.mark.parametrize(("audits", "expected"), [(True, 12.0), (False, 1.0)])
def test_where_something_is_left_of_an_agent_only_an_audit_keeps_the_outcome_back(
    audits: bool, expected: float
) -> None:
    fake = FakeWorkspaces(audit=slow(2), audits=audits)

    async def program(rt: Runtime) -> None:
        began = asyncio.get_running_loop().time()
        assert (await rt.submit(abs, -1, id="a")).result == "answer"
        assert asyncio.get_running_loop().time() - began == pytest.approx(expected)

    played(fake, program, backends=lingering(fake.log))
    audited = ["audit a/1", "audit a/1: done"] if audits else []
    assert fake.log == ["prepare a/1", "gone", *audited, "release a/1"]
    assert fake.releases["a/1"].reason is ReleaseReason.SUCCEEDED


def test_an_outcome_that_is_kept_back_for_the_audit_gives_way_to_a_stop() -> None:
    fake = FakeWorkspaces()

    async def program(rt: Runtime) -> None:
        outcome = await rt.submit(abs, -1, id="a", timeout=5)
        assert outcome.status is State.TIMED_OUT

    played(fake, program, backends=lingering(fake.log))
    assert fake.releases["a/1"].reason is ReleaseReason.STOPPED
    assert fake.log == ["prepare a/1", "told to stop", "gone", "audit a/1", "release a/1"]


@pytest.mark.parametrize("later", [False, True])
def test_an_audit_that_fails_makes_no_success(later: bool) -> None:
    class Fails(FakeWorkspaces):
        def audit(self, workspace: PreparedWorkspace) -> Any:
            super().audit(workspace)
            if later:
                return failing("cannot be read")()
            raise OSError("cannot be read")

    fake = Fails()

    def broken() -> None:
        raise LookupError("its own failure")

    async def program(rt: Runtime) -> None:
        good, bad = await rt.wait_all([rt.submit(abs, -1, id="good"), rt.submit(broken, id="bad")])
        assert good.status is State.FAILED
        assert good.reason == "OSError: the workspace could not be audited: cannot be read"
        assert bad.reason == "LookupError: its own failure"

    played(fake, program)
    assert {how.reason for how in fake.releases.values()} == {ReleaseReason.FAILED}
    assert {how.audit.changed for how in fake.releases.values()} == {None}


@every_stop
@pytest.mark.parametrize("is_stubborn", [False, True])
def test_a_stop_during_the_audit_decides_the_outcome_and_the_workspace_is_released(
    stop: Callable[[Runtime, float], Awaitable[State]], status: State, is_stubborn: bool
) -> None:
    fake = FakeWorkspaces(audit=stubborn(100) if is_stubborn else slow(100))

    async def program(rt: Runtime) -> None:
        began = asyncio.get_running_loop().time()
        assert await stop(rt, 5.0) is status
        assert asyncio.get_running_loop().time() - began == pytest.approx(5.0)
        await asyncio.sleep(1)
        assert ("a/1" in fake.releases) is not is_stubborn

    played(fake, program, grace=200)
    assert fake.releases["a/1"].reason is ReleaseReason.STOPPED


# Release


def test_a_slow_release_keeps_the_claims_and_not_the_outcome() -> None:
    fake = FakeWorkspaces(release=slow(50))

    async def program(rt: Runtime) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert (await rt.submit(abs, -1, id="a", writes="f")).succeeded
        assert loop.time() - began == pytest.approx(0.0)
        fake.manners["release"] = None
        assert (await rt.submit(abs, -1, id="b", writes="f")).succeeded
        assert loop.time() - began == pytest.approx(50.0)

    played(fake, program)


def test_nothing_cancels_a_release() -> None:
    fake = FakeWorkspaces(release=slow(50))

    async def program(rt: Runtime) -> None:
        handle = rt.submit(Agents([], 100).of_kind("loop", "agent"), id="a")
        await asyncio.sleep(1)
        handle.cancel()
        await handle
        await asyncio.sleep(1)
        handle.cancel()
        with pytest.raises(AttemptsStillAlive):
            await rt.shutdown(1, cancel=True)
        await asyncio.sleep(60)
        assert fake.log[-2:] == ["release a/1", "release a/1: done"]

    played(fake, program)
    assert fake.releases["a/1"].reason is ReleaseReason.STOPPED


@pytest.mark.parametrize("later", [False, True])
def test_a_release_that_fails_is_logged_and_holds_up_nobody(
    later: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(FakeWorkspaces):
        def release(self, workspace: PreparedWorkspace, how: WorkspaceRelease) -> Any:
            super().release(workspace, how)
            if later:
                return failing("cannot be removed")()
            raise OSError("cannot be removed")

    async def program(rt: Runtime) -> None:
        first, second = (rt.submit(abs, -1, id=name, writes="f") for name in "ab")
        assert (await first).succeeded
        assert (await second).succeeded

    with caplog.at_level(logging.ERROR, "interlock"):
        played(Fails(), program)
    said = [each for each in caplog.records if each.getMessage() == "workspace_not_released"]
    assert len(said) == 2


# Killing, breaking off, suspending


def test_an_agent_that_is_killed_leaves_its_workspace_to_be_released() -> None:
    fake = FakeWorkspaces(prepare=slow(1), audit=slow(1), release=slow(1))

    async def deaf() -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1000)

    def blocking() -> Any:
        return Blocking(deaf())

    async def program(rt: Runtime) -> None:
        outcome = await rt.submit(Process(blocking), id="a", timeout=10)
        assert outcome.status is State.TIMED_OUT
        await asyncio.sleep(8)  # it is killed after 5, then audited and released

    played(fake, program, grace=5)
    assert fake.releases["a/1"].reason is ReleaseReason.STOPPED
    assert fake.log[-1] == "release a/1: done"


every_step = pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("prepare", None),
        ("agent", ReleaseReason.STOPPED),
        ("audit", None),
        ("release", ReleaseReason.SUCCEEDED),
    ],
)


@every_step
@pytest.mark.parametrize("how", ["break_off", "suspend"])
def test_a_run_that_is_broken_off_releases_what_is_prepared(
    how: str, step: str, reason: ReleaseReason | None
) -> None:
    fake = FakeWorkspaces()
    if step != "agent":
        fake.manners[step] = slow(20)

    async def program(rt: Runtime) -> None:
        rt.submit(Agents(fake.log, 5).of_kind("loop", "agent"), id="a")
        await asyncio.sleep(10 if step in ("audit", "release") else 2)
        if how == "suspend":
            rt._shell.suspend()
        else:
            rt._shell.break_off(RuntimeError("a bug"))

    with suppress(InterlockError):
        played(fake, program, grace=60)
    assert not fake.open
    if step == "prepare":
        assert "agent begins" not in fake.log
        assert not fake.releases
    else:
        assert list(fake.releases) == ["a/1"]
        assert reason is None or fake.releases["a/1"].reason is reason


def test_an_attempt_that_outlives_its_run_still_releases_its_workspace() -> None:
    fake = FakeWorkspaces(release=slow(5), audits=False)

    async def main() -> None:
        ports = replace(simulated_ports(), workspaces=lambda _: fake)
        with pytest.raises(AttemptsStillAlive):
            async with Runtime(ports=ports, grace=2) as rt:
                agent = Agents(fake.log, 30).of_kind("thread", "agent")
                await rt.submit(agent, id="a", timeout=3)
        assert not fake.releases
        await asyncio.sleep(60)
        assert fake.log[-2:] == ["release a/1", "release a/1: done"]

    simulate(main).value()
    assert not fake.broken


# Whatever happens


class Judge:
    """Watches that attempts which conflict never have workspaces at the same time."""

    caps = WorkspaceCaps(audits=True)

    def __init__(self, fake: FakeWorkspaces) -> None:
        self._fake = fake
        self.caps = fake.caps

    def prepare(self, request: WorkspaceRequest) -> Any:
        mine = request.task_id.split("-")[0]
        for other in self._fake.open:
            if other.split("-")[0] == mine:
                self._fake.broken.append(f"{request.task_id} beside {other}")
        return self._fake.prepare(request)

    def audit(self, workspace: PreparedWorkspace) -> Any:
        return self._fake.audit(workspace)

    def release(self, workspace: PreparedWorkspace, how: WorkspaceRelease) -> Any:
        return self._fake.release(workspace, how)


def some_manner(chance: Random) -> Manner | None:
    return chance.choice(
        [
            None,
            slow(chance.randint(0, 9)),
            stubborn(chance.randint(0, 9)),
            failing("bad luck", chance.randint(0, 9)),
        ]
    )


@pytest.mark.parametrize("block", range(10))
def test_whatever_happens_each_workspace_is_released_once_and_none_is_shared(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        chance = Random(seed)
        steps = [some_manner(chance) for _ in range(3)]
        fake = FakeWorkspaces(Path("/fake"), *steps, audits=chance.random() < 0.7)

        async def program(rt: Runtime, chance: Random = chance, fake: Any = fake) -> None:
            agents = Agents(fake.log, chance.randint(0, 5))
            handles = []
            for number in range(8):
                claim, kind = chance.choice("fg"), chance.choice(["loop", "thread", "process"])
                handles.append(
                    rt.submit(
                        agents.of_kind(kind, f"agent {number}"),
                        id=f"{claim}-{number}",
                        writes=claim,
                        retry=Retry(attempts=2, backoff=1),
                        timeout=chance.choice([None, 3, 8]),
                    )
                )
            for handle in handles:
                if chance.random() < 0.4:
                    await asyncio.sleep(chance.randint(0, 6))
                    handle.cancel()
            await rt.wait_all(handles)

        played(Judge(fake), program, seed=seed, grace=100, max_parallel=4)
        assert not fake.broken, (seed, fake.broken)
        assert not fake.open, (seed, fake.open)
