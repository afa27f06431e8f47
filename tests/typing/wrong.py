"""Wrong uses that a type checker finds. An error that is not found leaves an unused `ignore`."""

from __future__ import annotations

from interlock import Retry, Runtime, Task, TaskContext, read, uses


def agent(number: int) -> int:
    return number


async def wrong(rt: Runtime, ctx: TaskContext) -> None:
    rt.submit(agent, 1, prioritty=5)  # type: ignore[call-overload]
    rt.submit(agent, 1, priority="high")  # type: ignore[call-overload]
    rt.submit(agent, 1, retry=3)  # type: ignore[call-overload]
    rt.submit(agent, 1, after=3)  # type: ignore[call-overload]
    rt.submit(agent, 1, claims=["src/"])  # type: ignore[arg-type,list-item]
    rt.submit(agent, 1, timeout=[])  # type: ignore[call-overload]
    rt.submit("codex")  # type: ignore[call-overload]
    rt.submit(Task("a", agent), priority=5)  # type: ignore[call-overload]
    await rt.run([agent])  # type: ignore[list-item]
    await rt.run([], fail_fast="no")  # type: ignore[arg-type]
    await rt.map(agent)  # type: ignore[call-overload]
    rt.why(3)  # type: ignore[arg-type]
    rt.submitt(agent)  # type: ignore[attr-defined]

    text: str = await rt.submit(agent, 1).result()  # type: ignore[assignment]
    number: int = (await rt.submit(agent, 1)).result  # type: ignore[assignment]
    (await rt.submit(agent, 1)).result = 2  # type: ignore[misc]
    (await rt.submit(agent, 1)).status = "failed"  # type: ignore[misc,assignment]
    print(text, number)

    Task("a", agent).priority = 3  # type: ignore[misc]
    Task("a", agent, args=(1,)).kwargs["new"] = 1  # type: ignore[index]
    Task(1, agent)  # type: ignore[arg-type]
    Retry(attempts="3")  # type: ignore[arg-type]
    read(3)  # type: ignore[arg-type]
    uses("gpu", "2")  # type: ignore[arg-type]

    ctx.attempts  # type: ignore[attr-defined]  # noqa: B018
    ctx.results["a"] = 1  # type: ignore[index]
    ctx.ask(3)  # type: ignore[arg-type]
    ctx.report("half")  # type: ignore[arg-type]
    answer: int = await ctx.ask("Land it?")  # type: ignore[assignment]
    print(answer)
