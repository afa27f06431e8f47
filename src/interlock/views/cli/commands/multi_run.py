"""`multi-run`: run the blocking agents of the project file side by side."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from interlock.errors import AlreadyRunning, AttemptsStillAlive, UsageError
from interlock.journal.state.run_fold import shown
from interlock.model.claim import Claim, as_claims
from interlock.model.duration import seconds, span
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.runtime.project import ProjectAgents
from interlock.runtime.runtime import Runtime
from interlock.service.exit_codes import ExitCode
from interlock.service.folder_lock import already_running, exclusive_run
from interlock.service.project_folder import ProjectFolder, find_project
from interlock.service.run_log import logging_to
from interlock.views.cli.printing import complain, print_json, say


def add_to(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("multi-run")(multi_run)


class BlockingAgent(NamedTuple):
    """A blocking agent under the name that the project file gives it."""

    role: str
    claims: tuple[Claim, ...]
    run_step: Any


def multi_run(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these agents; by default all blocking ones.")
    ] = None,
    max_concurrent: Annotated[
        int,
        typer.Option("--max-concurrent", "-j", min=1, help="Maximum number of concurrent agents."),
    ] = 3,
    timeout: Annotated[str, typer.Option(help="Time limit of each agent, such as 90s.")] = "2m",
    isolate: Annotated[
        bool, typer.Option("--isolate", help="Let the other agents finish when one fails.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Run the blocking agents of the project file.

    These are objects with a `run_step()`, such as `python: team:Reviewer`. They run in threads.
    """
    folder = find_project()
    agents = _blocking(folder, names or [])
    limit = seconds(timeout, "--timeout")
    folder.make()
    tasks = [
        Task(task_id, agent.run_step, claims=agent.claims, timeout=limit)
        for task_id, agent in _with_ids(agents)
    ]
    with logging_to(folder), exclusive_run(folder):
        try:
            outcomes = asyncio.run(_run(folder, tasks, max_concurrent, fail_fast=not isolate))
        except AlreadyRunning as error:
            raise already_running(error) from error
    failed = [each for each in outcomes if not each.succeeded]
    if failed and not isolate:
        # The failure and the cancellations that it caused have the same end time.
        first = min(failed, key=lambda each: (each.status is State.CANCELLED, each.ended_at))
        _tell(first, limit, debug)
    elif as_json:
        print_json([_json(each, limit) for each in outcomes])
    else:
        for each in outcomes:
            _tell(each, limit, debug)
    if failed:
        complain(f"the log is {folder.log}")
    return ExitCode.FAILED if failed else ExitCode.SUCCEEDED


async def _run(
    folder: ProjectFolder, tasks: list[Task], max_concurrent: int, *, fail_fast: bool
) -> list[Outcome[Any]]:
    outcomes: list[Outcome[Any]] = []
    runtime = Runtime(
        max_parallel=max_concurrent,
        workspace=folder.root,
        journal=folder.journal,
        order="first_come",
        grace=0.0,
        # A thread cannot be killed: one that ignores its timeout must not delay the next agent.
        zombies_hold_slots=False,
    )
    with contextlib.suppress(AttemptsStillAlive):  # it timed out, and its outcome says so
        async with runtime as rt:
            outcomes += await rt.run(tasks, fail_fast=fail_fast)
    return outcomes


def _blocking(folder: ProjectFolder, names: list[str]) -> list[BlockingAgent]:
    project = folder.project()
    agents = ProjectAgents(project)
    chosen = names or [name for name, spec in project.agents.items() if spec.python]
    found = []
    for name in chosen:
        agent, spec = agents.named(name), agents.spec(name)
        if hasattr(agent, "run_step"):
            claims = as_claims(writes=spec.owns, uses=spec.uses)
            found.append(BlockingAgent(spec.name, claims, agent.run_step))
        elif names:
            raise UsageError(f"{name} has no blocking run_step(); run it in a plan")
    if not found:
        raise UsageError(
            "no agent of the project file is an object with a blocking run_step(); "
            "name one with `python: module:Class`"
        )
    return found


def _with_ids(agents: list[BlockingAgent]) -> Iterator[tuple[str, BlockingAgent]]:
    """Each agent with an id for its task. One that is named twice runs twice: `role`, `role-2`."""
    seen: Counter[str] = Counter()
    for agent in agents:
        seen[agent.role] += 1
        count = seen[agent.role]
        yield agent.role if count == 1 else f"{agent.role}-{count}", agent


def _tell(outcome: Outcome[Any], limit: float, debug: bool) -> None:
    if outcome.succeeded:
        say(f"{outcome.task_id}: {shown(outcome.result)}")
        return
    complain(f"{outcome.task_id}: {_error(outcome, limit)}")
    if debug and outcome.exception is not None:
        complain("".join(traceback.format_exception(outcome.exception)))


def _error(outcome: Outcome[Any], limit: float) -> str:
    if outcome.status is State.TIMED_OUT:
        return f"TimeoutError: it has not finished within {span(limit)}"
    if outcome.exception is not None:
        return f"{type(outcome.exception).__name__}: {outcome.exception}"
    return outcome.reason or str(outcome.status)


def _json(outcome: Outcome[Any], limit: float) -> dict[str, Any]:
    return {
        "agent": outcome.task_id,
        "status": "succeeded" if outcome.succeeded else "failed",
        "result": shown(outcome.result) if outcome.succeeded else None,
        "error": None if outcome.succeeded else _error(outcome, limit),
    }
