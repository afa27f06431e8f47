"""The code block of the specification of the library, line by line, with its gaps filled in."""

from __future__ import annotations

from pathlib import Path

import pytest

import interlock
from interlock import Rate, Retry, Runtime, State, Task, read, uses, write

pytestmark = pytest.mark.usefixtures("workspace")


async def build_api(ctx: interlock.TaskContext) -> str:
    target = ctx.workspace / "src" / "api" / f"{ctx.task.id}.txt"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("built")
    return ctx.task.id


def write_docs(chapter: int) -> int:
    Path("docs").mkdir(exist_ok=True)
    Path(f"docs/{chapter}.md").write_text(f"# Chapter {chapter}")
    return chapter * 10


async def test_the_code_block() -> None:
    async with Runtime(max_parallel=4, workspace=".", journal=None, resume=None) as rt:
        api = rt.submit(
            build_api,
            id="api",
            writes="src/api/**",
            reads=["schema/"],
            priority=5,
            timeout="10m",
            retry=Retry(attempts=3, backoff=1.0, max_backoff=60),
        )
        docs = rt.submit(write_docs, 3, id="docs", writes="docs/**", after=[api])
        outcome = await docs
        value = await api.result()
        assert value == "api"
        assert Path("src/api/api.txt").read_text() == "built"
        assert (outcome.status, outcome.result, outcome.error, outcome.attempts) == (
            "succeeded",
            30,
            None,
            1,
        )
        assert outcome.duration > 0

        result = await rt.run(
            [Task("a", build_api, writes="a/**"), Task("b", write_docs, args=(1,))],
            fail_fast=False,
            deadline="1h",
        )
        assert [each.task_id for each in result.outcomes] == ["a", "b"]
        assert result["a"].result == "a"
        assert result.all_succeeded
        assert result.speedup > 0
        result.raise_for_failures()
        pages = await rt.map(write_docs, range(20), writes="docs/{item}.md")
        assert [page.result for page in pages] == [10 * i for i in range(20)]
        assert sorted(Path("docs").iterdir()) == sorted(Path(f"docs/{i}.md") for i in range(20))

        assert rt.why("docs").state is State.SUCCEEDED
        assert rt.progress().succeeded == 24
        async for event in rt.events():
            assert event.kind is interlock.Kind.RUN_STARTED
            break
        assert api.cancel() is False  # it has ended
        await rt.shutdown(grace=30)


def test_the_same_without_async() -> None:
    result = interlock.run([Task("a", build_api), Task("b", write_docs, args=(2,))], max_parallel=4)
    assert [each.result for each in result.outcomes] == ["a", 20]


async def test_the_same_inside_a_running_loop() -> None:
    assert interlock.run([Task("a", build_api)], max_parallel=4).all_succeeded


# -- claims, capacities, limits ---------------------------------------------------------------


def test_the_shorthands_stand_for_claims() -> None:
    long = [
        write("src/**"),
        read("docs/"),
        uses("gpu"),
        uses("memory_mb", 2048),
        uses("db:staging", exclusive=True),
    ]
    short = Task(
        "a",
        write_docs,
        writes="src/**",
        reads="docs/",
        uses=["gpu", "memory_mb=2048", "db:staging!"],
    )
    assert Task("a", write_docs, claims=long).claims == short.claims


def test_conflicts_names_a_path_that_both_mean() -> None:
    conflict = interlock.conflicts(write("src/**"), read("src/*.py"))
    assert conflict
    assert conflict.witness.startswith("src/")
    assert conflict.witness.endswith(".py")
    assert interlock.conflicts(read("src/**"), read("src/*.py")) is None


async def test_capacities_bound_what_runs_at_once() -> None:
    running = most = 0

    async def on_the_gpu(ctx: interlock.TaskContext, number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await ctx.sleep(0.001)
        running -= 1

    async with Runtime(capacity={"gpu": 2, "memory_mb": 16_000}) as rt:
        await rt.map(on_the_gpu, range(10), uses=["gpu", "memory_mb=8000"])
    assert most == 2


async def test_a_rate_is_taken_from_in_mid_attempt_and_settled_afterwards() -> None:
    async def agent(ctx: interlock.TaskContext) -> list[int]:
        taken = await ctx.acquire("openai", tokens=800)
        taken.used(tokens=100)  # what was really used leaves room for another 800
        await ctx.acquire("openai", tokens=800)
        return [1, 2]

    limits = {"openai": Rate(requests="60/min", tokens="1k/min")}
    async with Runtime(limits=limits) as rt:
        assert (await rt.submit(agent)).result == [1, 2]


async def test_a_rate_is_no_limit_on_what_runs_but_on_what_is_taken_in_a_window() -> None:
    async def agent(ctx: interlock.TaskContext) -> None:
        for _ in range(3):
            await ctx.acquire("api")

    async with Runtime(limits={"api": Rate(requests="4/min")}) as rt:
        first = rt.submit(agent)
        assert (await first).succeeded
        second = rt.submit(agent, id="second")
        async for event in rt.events():
            if event.kind is interlock.Kind.GRANTED and event.task_id == "second":
                break
        reason = str(rt.why("second"))
        second.cancel()
    assert "the rate api (4 in 1 min)" in reason
