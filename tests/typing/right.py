"""What type checkers know of the library. Read by mypy alone; nothing here is ever run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, assert_type

import interlock
from interlock import (
    Claim,
    ErrorRecord,
    Event,
    Explanation,
    Handle,
    Message,
    Outcome,
    Progress,
    Retry,
    RunResult,
    Runtime,
    Session,
    State,
    Task,
    TaskContext,
)


async def build_api(ctx: TaskContext) -> str:
    return ctx.task.id


def write_docs(chapter: int) -> int:
    return chapter


async def nothing() -> None: ...


class Runs:
    async def run(self, ctx: TaskContext) -> bytes:
        return b""


class RunsBlocking:
    def run(self, ctx: TaskContext) -> float:
        return 0.5


class Steps:
    def run_step(self) -> list[str]:
        return []


class Called:
    async def __call__(self, ctx: TaskContext, number: int) -> set[int]:
        return {number}


@interlock.process
def in_a_process(number: int) -> dict[str, int]:
    return {"number": number}


async def handles_and_outcomes_carry_the_return_type(rt: Runtime) -> None:
    api = rt.submit(build_api, id="api", writes="src/api/**", reads=["schema/"], priority=5)
    assert_type(api, Handle[str])
    outcome = await api
    assert_type(outcome, Outcome[str])
    assert_type(outcome.result, str | None)
    assert_type(await api.result(), str)
    assert_type(api.wait(), Outcome[str])
    assert_type(api.wait(timeout=1.5), Outcome[str])
    assert_type(api.result().wait(), str)
    assert_type(api.outcome, Outcome[str] | None)

    docs = rt.submit(write_docs, 3, after=[api], timeout="10m", retry=Retry(attempts=3))
    assert_type(docs, Handle[int])
    assert_type(await docs.result(), int)
    assert_type(rt.submit(nothing), Handle[None])


async def every_kind_of_agent_does(rt: Runtime) -> None:
    assert_type(await rt.submit(Runs()).result(), bytes)
    assert_type(await rt.submit(RunsBlocking()).result(), float)
    assert_type(await rt.submit(Steps()).result(), list[str])
    assert_type(await rt.submit(Called(), 3).result(), set[int])
    assert_type(await rt.submit(Runs().run).result(), bytes)
    assert_type(await rt.submit(in_a_process, 3).result(), dict[str, int])
    assert_type(await rt.submit(interlock.process(write_docs), 3).result(), int)
    assert_type(in_a_process(3), dict[str, int])
    assert_type(await rt.submit(lambda: 1.5).result(), float)
    assert_type(await rt.submit(Task("a", build_api)).result(), Any)


async def outcomes_are_typed(rt: Runtime) -> None:
    outcome = await rt.submit(write_docs, 1)
    assert_type(outcome.task_id, str)
    assert_type(outcome.status, State)
    assert_type(outcome.error, ErrorRecord | None)
    assert_type(outcome.exception, BaseException | None)
    assert_type(outcome.attempts, int)
    assert_type(outcome.duration, float)
    assert_type(outcome.started_at, datetime | None)
    assert_type(outcome.usage.cost, float)
    assert_type(outcome.changed_paths, tuple[str, ...])
    general: Outcome[object] = outcome  # a more special outcome is also a more general one
    assert_type(general.result, object | None)


async def run_and_map_are_typed(rt: Runtime) -> None:
    tasks = [Task("a", build_api, writes="a/**"), Task("b", write_docs, args=(1,))]
    result = await rt.run(tasks, fail_fast=False, deadline="1h")
    assert_type(result, RunResult)
    assert_type(result.outcomes, tuple[Outcome[Any], ...])
    assert_type(result["a"], Outcome[Any])
    assert_type(iter(result), Iterator[Outcome[Any]])
    assert_type(result.all_succeeded, bool)
    assert_type(result.speedup, float)
    assert_type(interlock.run(tasks, max_parallel=4), RunResult)
    assert_type(await rt.map(write_docs, range(20), writes="{item}.md"), list[Outcome[int]])
    assert_type(await rt.map(nothing, []), list[Outcome[None]])


async def looking_is_typed(rt: Runtime) -> None:
    assert_type(rt.why("docs"), Explanation)
    assert_type(rt.progress(), Progress)
    async for event in rt.events():
        assert_type(event, Event)
    assert_type(rt.outcomes, tuple[Outcome[Any], ...])
    conflict = interlock.conflicts(interlock.write("a"), interlock.read("b"))
    if conflict:
        assert_type(conflict.witness, str)


async def contexts_are_typed(ctx: TaskContext) -> None:
    assert_type(interlock.current(), TaskContext)
    assert_type(interlock.cancelled(), bool)
    assert_type(ctx.task, Task)
    assert_type(ctx.prompt, str | None)
    assert_type(ctx.attempt, int)
    assert_type(ctx.workspace, Path)
    assert_type(ctx.session, Session)
    assert_type(ctx.session.messages, tuple[Message, ...])
    assert_type(ctx.results, Mapping[str, Outcome[Any]])
    assert_type(ctx.extra, tuple[Claim, ...])
    assert_type(await ctx.ask("Land it?"), str)
    assert_type(ctx.ask("Land it?").wait(), str)
    assert_type(await ctx.sleep(1), None)
    assert_type(await ctx.extend(writes="more/"), None)
    (await ctx.acquire("openai", tokens=800)).used(tokens=650)
    assert_type(ctx.submit(write_docs, 1), Handle[int])
    assert_type(await ctx.map(write_docs, [1]), list[Outcome[int]])
    assert_type(ctx.run([]).wait(), RunResult)
