"""`run` and `delegate`: run agents and watch them."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

from interlock.errors import AlreadyRunning, UsageError
from interlock.model.duration import seconds, span
from interlock.plan.records import Plan, Project
from interlock.runtime.project import ProjectAgents, tasks_of
from interlock.service.coordinator import FinishedRun, ProjectCoordinator, carry_out
from interlock.service.exit_codes import ExitCode
from interlock.service.folder_lock import already_running
from interlock.service.project_folder import ProjectFolder, find_project
from interlock.service.resuming import (
    EarlierRun,
    interrupted_run,
    last_run_of_plan,
    last_unfinished_run,
)
from interlock.service.run_request import RunRequest
from interlock.views.cli import run_arguments
from interlock.views.cli.facts_json import run_json
from interlock.views.cli.graph_tree import tree
from interlock.views.cli.options import Debug, Json
from interlock.views.cli.plan_conflicts import find_conflicts, nodes, plan_json
from interlock.views.cli.printing import complain, print_json, say
from interlock.views.terminal.console import ignore_broken_pipe, make_console
from interlock.views.terminal.figures import plural
from interlock.views.terminal.watchers import watcher

Agent = Annotated[
    str | None,
    typer.Option("--agent", "-a", help="Agent for prompts given on the command line."),
]
MaxParallel = Annotated[
    int | None,
    typer.Option("--max-parallel", "-j", min=1, help="Maximum number of concurrent attempts."),
]
FailFast = Annotated[
    bool, typer.Option("--fail-fast", help="Cancel all other tasks at the first failure.")
]
Headless = Annotated[
    bool, typer.Option("--headless", help="No live view: print one line per important event.")
]
Deadline = Annotated[
    str | None,
    typer.Option(help="Time limit for the whole run, such as 30m; unfinished tasks time out."),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(run)
    app.command()(delegate)


def run(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="A plan file, or prompts: one task each.", show_default=False),
    ] = None,
    agent: Agent = None,
    max_parallel: MaxParallel = None,
    fail_fast: FailFast = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run; start nothing.")
    ] = False,
    as_json: Json = False,
    headless: Headless = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the last run; successful tasks are not repeated."),
    ] = False,
    deadline: Deadline = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this task and its dependencies. Repeatable.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Set a variable: KEY=VALUE. Repeatable.")
    ] = None,
    debug: Debug = False,
) -> int:
    """Run a plan or prompts, and wait for every task."""
    folder = find_project()
    project = folder.project()
    variables = run_arguments.parse_variables(set_ or ())
    request = RunRequest(only=tuple(only or ()), variables=variables)
    what = what or []
    earlier: EarlierRun | None = None
    if run_arguments.is_plan(what):
        request = request.with_options(plan=run_arguments.plan_path(folder, what[0]))
        earlier = last_run_of_plan(folder, request.plan) if resume else None
        if earlier is not None:
            request = earlier.request.continued(request.only, request.variables)
        if agent is not None:
            raise UsageError("-a is for prompts; in a plan each task names its agent")
    elif what:
        run_arguments.check_no_plan_among_prompts(what)
        chosen = agent or run_arguments.default_agent(project)
        request = request.with_options(texts=tuple((chosen, text) for text in what))
    elif resume:
        earlier = last_unfinished_run(folder)
        request = earlier.request.continued(request.only, request.variables)
    else:
        raise UsageError(
            'nothing to run; give a plan file, or prompts: interlock run "fix the login test"'
        )
    request = request.with_options(
        fail_fast=fail_fast,
        deadline=None if deadline is None else seconds(deadline, "--deadline"),
        max_parallel=max_parallel,
    )
    plan = run_arguments.plan_for(request, project, folder)
    if dry_run:
        return _dry_run(plan, project, as_json)
    if request.texts and not as_json:
        _warn_of_wide_claims(plan, project)
    if earlier is None and (interrupted := interrupted_run(folder)) and not as_json:
        say(
            f"Run {interrupted} was interrupted; you can resume it later with "
            "`interlock run --resume PLAN`."
        )
    run_id = None if earlier is None else earlier.run.id
    return _carry_out(folder, project, plan, request, as_json, headless, resume=run_id).code


def delegate(
    texts: Annotated[list[str], typer.Argument(help='Tasks, each as "agent: prompt".')],
    agent: Agent = None,
    max_parallel: MaxParallel = None,
    fail_fast: FailFast = False,
    as_json: Json = False,
    headless: Headless = False,
    deadline: Deadline = None,
    debug: Debug = False,
) -> int:
    """Run several prompts at once.

    Before the start, lists the prompts that cannot run at the same time; at the end, says how long
    they would have taken one after another.
    """
    folder = find_project()
    project = folder.project()
    split = [run_arguments.split_agent(text, project.agents) for text in texts]
    request = RunRequest(
        texts=tuple(
            (name or agent or run_arguments.default_agent(project), text) for name, text in split
        )
    ).with_options(
        fail_fast=fail_fast,
        deadline=None if deadline is None else seconds(deadline, "--deadline"),
        max_parallel=max_parallel,
    )
    plan = run_arguments.plan_for(request, project, folder)
    if not as_json:
        found = find_conflicts(tasks_of(plan, ProjectAgents(project)), project.capacity)
        for each in found:
            say(f"{each.one} and {each.other} take turns: {each.about}")
        if len(texts) > 1 and not found:
            say("No two of these tasks conflict.")
    finished = _carry_out(folder, project, plan, request, as_json, headless)
    if not as_json:
        facts = finished.facts
        with ignore_broken_pipe():
            say(
                f"Took {span(facts.duration)}; "
                f"one after another it would have taken {span(facts.one_by_one)}."
            )
    return finished.code


def _carry_out(
    folder: ProjectFolder,
    project: Project,
    plan: Plan,
    request: RunRequest,
    as_json: bool,
    headless: bool,
    *,
    resume: str | None = None,
) -> FinishedRun:
    run_arguments.check_no_secrets(request, project)
    folder.make()
    shown = watcher(silent=as_json, headless=headless, grace=project.grace)
    coordinator = ProjectCoordinator(folder, project, plan, request, shown, resume=resume)
    # What Python agents print must not get into the JSON document on standard output.
    elsewhere = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    try:
        with elsewhere:
            finished = carry_out(coordinator, folder)
    except AlreadyRunning as error:
        raise already_running(error) from error
    if finished.unsubmitted:
        complain(
            "these tasks of the resumed run are not in the plan any more and stay unfinished: "
            f"{', '.join(finished.unsubmitted)}"
        )
    if as_json:
        with ignore_broken_pipe():
            print_json(run_json(finished.facts))
            sys.stdout.flush()
    return finished


def _warn_of_wide_claims(plan: Plan, project: Project) -> None:
    """Prompts do not say what they write: warn a user that they take turns."""
    wide = {task.agent for task in plan.tasks if not project.agents[task.agent].owns}
    programs = sorted(name for name in wide if project.agents[name].command is not None)
    if programs and len(plan.tasks) > 1:
        say(
            f"It is not known what {' and '.join(programs)} will write, so each task claims the "
            "whole folder and they take turns. To run them side by side, set `owns` in "
            "interlock.yaml, or use a plan with `writes`."
        )


def _dry_run(plan: Plan, project: Project, as_json: bool) -> int:
    tasks = tasks_of(plan, ProjectAgents(project))
    found = find_conflicts(tasks, project.capacity)
    if as_json:
        print_json(plan_json(plan, tasks, found))
    else:
        make_console().print(tree(nodes(tasks)))
        for each in found:
            say(f"{each.one} and {each.other} take turns: {each.about}")
        say(f"{plural(len(tasks), 'task')}. Nothing was started.")
    return ExitCode.SUCCEEDED
