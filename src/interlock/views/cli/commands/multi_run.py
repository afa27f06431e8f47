"""`multi-run`: the blocking agents of the project file, side by side."""

from __future__ import annotations

import asyncio
import traceback
from typing import Annotated, Any

import typer

from interlock.errors import AlreadyRunning, InterlockError, UsageError
from interlock.journal.state.run_fold import shown
from interlock.model.claim import Claim, as_claims
from interlock.model.duration import seconds
from interlock.patterns.scheduler.scheduler import TaskScheduler
from interlock.plan.records import AgentSpec
from interlock.runtime.project import ProjectAgents
from interlock.service.exit_codes import ExitCode
from interlock.service.folder_lock import already_running, exclusive_run
from interlock.service.project_folder import ProjectFolder, find_project
from interlock.service.run_log import logging_to
from interlock.views.cli.printing import complain, print_json, say


def add_to(app: typer.Typer) -> None:
    """The command of this file."""
    app.command("multi-run")(multi_run)


class _Configured:
    """A blocking agent under the name that the project file gives it."""

    def __init__(self, spec: AgentSpec, agent: Any) -> None:
        self.role = spec.name
        self.claims: tuple[Claim, ...] = as_claims(writes=spec.owns, uses=spec.uses)
        self.run_step = agent.run_step


def multi_run(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these agents; all blocking ones if not said.")
    ] = None,
    max_concurrent: Annotated[
        int, typer.Option("--max-concurrent", "-j", min=1, help="So many at once.")
    ] = 3,
    timeout: Annotated[str, typer.Option(help="For each agent, such as 90s.")] = "2m",
    isolate: Annotated[
        bool, typer.Option("--isolate", help="A failure leaves the others alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Facts as JSON, for programs.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks as well.")] = False,
) -> int:
    """Run the blocking agents of the project file.

    These are objects with a `run_step()`, such as `python: team:Reviewer`. They run in threads.
    """
    place = find_project()
    agents = _blocking(place, names or [])
    place.make()
    scheduler = TaskScheduler(
        max_concurrent,
        seconds(timeout, "--timeout"),
        on_error="isolate" if isolate else "fail_fast",
        claims=lambda agent: agent.claims,
        workspace=place.root,
        journal=place.journal,
    )
    with logging_to(place), exclusive_run(place):
        try:
            results = asyncio.run(scheduler.run(agents))
        except AlreadyRunning as error:
            raise already_running(error) from error
        except InterlockError:
            raise
        except Exception as error:  # noqa: BLE001 - what the first agent that failed has raised
            _tell(" ".join(getattr(error, "__notes__", ())), error, debug)
            return _failed(place)
    told = list(zip(agents, results, strict=True))
    if as_json:
        print_json([_facts(agent.role, result) for agent, result in told])
    else:
        for agent, result in told:
            _tell(agent.role, result, debug)
    failed = any(isinstance(each, BaseException) for each in results)
    return _failed(place) if failed else ExitCode.SUCCEEDED


def _blocking(place: ProjectFolder, names: list[str]) -> list[_Configured]:
    project = place.project()
    agents = ProjectAgents(project)
    chosen = names or [name for name, spec in project.agents.items() if spec.python]
    found = []
    for name in chosen:
        agent = agents.named(name)
        if hasattr(agent, "run_step"):
            found.append(_Configured(agents.spec(name), agent))
        elif names:
            raise UsageError(f"{name} has no blocking run_step(); run it in a plan")
    if not found:
        raise UsageError(
            "no agent of the project file is an object with a blocking run_step(); "
            "name one with `python: module:Class`"
        )
    return found


def _failed(place: ProjectFolder) -> ExitCode:
    complain(f"the log is {place.log}")
    return ExitCode.FAILED


def _tell(who: str, result: Any, debug: bool) -> None:
    if not isinstance(result, BaseException):
        say(f"{who}: {shown(result)}")
        return
    complain(f"{who}: {type(result).__name__}: {result}")
    if debug:
        complain("".join(traceback.format_exception(result)))


def _facts(role: str, result: Any) -> dict[str, Any]:
    failed = isinstance(result, BaseException)
    return {
        "agent": role,
        "status": "failed" if failed else "succeeded",
        "result": None if failed else shown(result),
        "error": f"{type(result).__name__}: {result}" if failed else None,
    }
