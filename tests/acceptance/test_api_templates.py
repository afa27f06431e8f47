"""Results of one task in the prompt of the next."""

from __future__ import annotations

from pathlib import Path

from interlock import Retry, Runtime, Task, TaskContext, Template


def says(ctx: TaskContext) -> str:
    return f"<{ctx.prompt}>"


async def test_a_prompt_quotes_the_results_of_other_tasks(workspace: Path) -> None:
    async with Runtime() as rt:
        result = await rt.run(
            [
                Task("both", says, prompt=Template("{{one.output}} and {{two.output}}")),
                Task("one", says, prompt="1"),
                Task("two", says, prompt="2"),
            ]
        )
    assert result["both"].result == "<<1> and <2>>"


async def test_a_part_that_the_result_does_not_have_fails_the_task_at_once(
    workspace: Path,
) -> None:
    async with Runtime() as rt:
        one = rt.submit(says, id="one", prompt="1")
        two = rt.submit(says, prompt=Template("{{one.output.title}}"), after=one)
        outcome = await two
    assert outcome.reason == (
        "AgentFailed: {{one.output.title}} in the prompt: the result has no 'title'"
    )


async def test_children_quote_the_children_of_their_own_attempt(workspace: Path) -> None:
    """The first attempt's `part` failed, so that of the second one goes by another id."""

    async def part(ctx: TaskContext) -> str:
        if ctx.prompt == "1":
            raise ValueError("not yet")
        return f"part of attempt {ctx.prompt}"

    async def parent(ctx: TaskContext) -> str | None:
        ctx.submit(part, id="part", prompt=str(ctx.attempt))
        quoting = await ctx.submit(says, id="quotes", prompt=Template("{{part.output}}"))
        if not quoting.succeeded:
            raise ValueError(quoting.reason)
        return quoting.result

    async with Runtime() as rt:
        task = Task("parent", parent)
        from_attempts = rt.submit(task.replace(retry=Retry(attempts=2, backoff=0)))
        outcome = await from_attempts
    assert outcome.result == "<part of attempt 2>"


async def test_map_fills_the_item_into_a_template(workspace: Path) -> None:
    async with Runtime() as rt:
        rt.submit(says, id="one", prompt="1")
        template = Template("{item}: {{one.output}}")
        found = await rt.map(lambda ctx, item: ctx.prompt, ["a", "b"], prompt=template)
    assert [each.result for each in found] == ["a: <1>", "b: <1>"]
