"""`run` and `delegate`: give agents something to do, and watch."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from interlock.errors import AlreadyRunning, InvalidOption, UsageError
from interlock.model.duration import seconds, span
from interlock.model.redaction import HIDDEN
from interlock.plan.env_file import secret_values
from interlock.plan.plan_file import load_plan, plan_of_prompts
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
from interlock.views.cli.facts_json import run_json
from interlock.views.cli.graph_tree import tree
from interlock.views.cli.plan_conflicts import find_conflicts, nodes, plan_json
from interlock.views.cli.printing import complain, print_json, say
from interlock.views.terminal.console import ignore_broken_pipe, make_console
from interlock.views.terminal.figures import plural
from interlock.views.terminal.watchers import watcher

Agent = Annotated[str | None, typer.Option("--agent", "-a", help="Who does the texts.")]
MaxParallel = Annotated[
    int | None, typer.Option("--max-parallel", "-j", min=1, help="So many attempts at once.")
]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="The first failure cancels the rest.")]
Json = Annotated[bool, typer.Option("--json", help="Facts as JSON, for programs.")]
Headless = Annotated[
    bool, typer.Option("--headless", help="No live view: one line for what matters.")
]
Deadline = Annotated[
    str | None, typer.Option(help="For all of it, such as 30m: what is unfinished then times out.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Tracebacks as well.")]


def add_to(app: typer.Typer) -> None:
    """The commands of this file."""
    app.command()(run)
    app.command()(delegate)


def run(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="A plan file; or texts, each of which is a task.", show_default=False),
    ] = None,
    agent: Agent = None,
    max_parallel: MaxParallel = None,
    fail_fast: FailFast = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen; start nothing.")
    ] = False,
    as_json: Json = False,
    headless: Headless = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the last run of it; what succeeded is kept."),
    ] = False,
    deadline: Deadline = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this task and what it comes after. Repeatable.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE for a variable. Repeatable.")
    ] = None,
    debug: Debug = False,
) -> int:
    """Run a plan, or a few texts, and wait for all of it."""
    place = find_project()
    project = place.project()
    request = RunRequest(only=tuple(only or ()), variables=_variables(set_ or ()))
    what = what or []
    former: EarlierRun | None = None
    if _is_plan(what):
        request = request.with_options(plan=_from(place, what[0]))
        former = last_run_of_plan(place, request.plan) if resume else None
        if former is not None:
            request = former.request.continued(request.only, request.variables)
        if agent is not None:
            raise UsageError("-a is for texts; in a plan each task names its agent")
    elif what:
        _refuse_plans_among_texts(what)
        whose = agent or _only_agent(project)
        request = request.with_options(texts=tuple((whose, text) for text in what))
    elif resume:
        former = last_unfinished_run(place)
        request = former.request.continued(request.only, request.variables)
    else:
        raise UsageError(
            'what is to run? A plan file, or texts: interlock run "fix the login test"'
        )
    request = request.with_options(
        fail_fast=fail_fast,
        deadline=None if deadline is None else seconds(deadline, "--deadline"),
        max_parallel=max_parallel,
    )
    plan = plan_for(request, project, place)
    if dry_run:
        return _foresee(plan, project, as_json)
    if request.texts and not as_json:
        _warn_of_wide_claims(plan, project)
    if former is None and (cut_off := interrupted_run(place)) and not as_json:
        say(f"Run {cut_off} was not finished; `interlock run --resume PLAN` goes on with it later.")
    run_id = None if former is None else former.run.id
    return _carry_out(place, project, plan, request, as_json, headless, resume=run_id).code


def delegate(
    texts: Annotated[list[str], typer.Argument(help='"agent: what it is to do", for each task.')],
    agent: Agent = None,
    max_parallel: MaxParallel = None,
    fail_fast: FailFast = False,
    as_json: Json = False,
    headless: Headless = False,
    deadline: Deadline = None,
    debug: Debug = False,
) -> int:
    """Hand out several texts at once.

    Says first which of them cannot run at the same time, and in the end how long it would have
    taken one after another.
    """
    place = find_project()
    project = place.project()
    split = [split_agent(text, project.agents) for text in texts]
    request = RunRequest(
        texts=tuple((name or agent or _only_agent(project), text) for name, text in split)
    ).with_options(
        fail_fast=fail_fast,
        deadline=None if deadline is None else seconds(deadline, "--deadline"),
        max_parallel=max_parallel,
    )
    plan = plan_for(request, project, place)
    if not as_json:
        found = find_conflicts(tasks_of(plan, ProjectAgents(project)), project.capacity)
        for each in found:
            say(f"{each.one} and {each.other} take turns: {each.about}")
        if len(texts) > 1 and not found:
            say("None of them conflict.")
    ended = _carry_out(place, project, plan, request, as_json, headless)
    if not as_json:
        facts = ended.facts
        with ignore_broken_pipe():
            say(f"Together {span(facts.duration)}; one after another {span(facts.one_by_one)}.")
    return ended.code


def plan_for(request: RunRequest, project: Project, place: ProjectFolder) -> Plan:
    """The plan that a request means."""
    if not request.plan:
        return plan_of_prompts(request.texts, project)
    hidden = [name for name, value in request.variables.items() if HIDDEN in value]
    if hidden:
        raise UsageError(
            f"{', '.join(hidden)} had a secret in it, which is not kept; say it again with --set "
            f"{hidden[0]}=..., or give the agent the secret by name"
        )
    return load_plan(
        place.root / request.plan,
        project,
        variables=request.variables,
        only=request.only,
    )


def _from(place: ProjectFolder, plan: str) -> str:
    """The path of a plan, said from the project's folder: another day it is asked for elsewhere."""
    return os.path.relpath(Path(plan).absolute(), place.root)


def _carry_out(
    place: ProjectFolder,
    project: Project,
    plan: Plan,
    request: RunRequest,
    as_json: bool,
    headless: bool,
    *,
    resume: str | None = None,
) -> FinishedRun:
    _refuse_secrets(request, project)
    place.make()
    shown = watcher(silent=as_json, headless=headless)
    coordinator = ProjectCoordinator(place, project, plan, request, shown, resume=resume)
    # What Python agents print must not get into the one document that programs read.
    elsewhere = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    try:
        with elsewhere:
            ended = carry_out(coordinator, place)
    except AlreadyRunning as error:
        raise already_running(error) from error
    if ended.unsubmitted:
        complain(
            "these tasks of the run that was taken up are not in the plan now, and stay "
            f"unfinished: {', '.join(ended.unsubmitted)}"
        )
    if as_json:
        with ignore_broken_pipe():
            print_json(run_json(ended.facts))
            sys.stdout.flush()
    return ended


def _refuse_secrets(request: RunRequest, project: Project) -> None:
    """A text on the command line is in the history of a shell and in the list of processes."""
    said = [*(text for _, text in request.texts), *request.variables.values()]
    for name, value in secret_values(project, os.environ).items():
        if any(value in text for text in said):
            raise UsageError(
                f"a text has the value of the secret {name} in it; agents that need it are given "
                "it by name, with `secrets` in interlock.yaml"
            )


def _refuse_plans_among_texts(what: Sequence[str]) -> None:
    for each in what:
        if len(what) > 1 and each.endswith((".yaml", ".yml")) and Path(each).is_file():
            raise UsageError(f"{each} is a plan file; run one plan at a time, or only texts")


def _warn_of_wide_claims(plan: Plan, project: Project) -> None:
    """Texts do not say what they write. Whoever expects them side by side should know."""
    wide = {task.agent for task in plan.tasks if not project.agents[task.agent].owns}
    programs = sorted(name for name in wide if project.agents[name].command is not None)
    if programs and len(plan.tasks) > 1:
        who = " and ".join(programs)
        say(
            f"Nobody says what {who} will write, so each task claims the whole folder, and they "
            "take turns. `owns` in interlock.yaml, or a plan with `writes`, lets them run together."
        )


def _foresee(plan: Plan, project: Project, as_json: bool) -> int:
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


def _is_plan(what: Sequence[str]) -> bool:
    if len(what) != 1:
        return False
    return what[0].endswith((".yaml", ".yml")) or (
        "\n" not in what[0] and len(what[0]) < 1000 and Path(what[0]).is_file()
    )


def split_agent(text: str, agents: Iterable[str]) -> tuple[str | None, str]:
    """`agent: text`; the part before the colon counts only if there is an agent of that name."""
    name, colon, rest = text.partition(":")
    name, known = name.strip(), list(agents)
    if colon and name in known:
        return name, rest.strip()
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    if colon and close and " " not in name:
        complain(f"there is no agent {name!r} (did you mean {close[0]!r}?), so all of it is text")
    return None, text.strip()


def _only_agent(project: Project) -> str:
    if project.defaults.agent is not None:
        return project.defaults.agent
    if len(project.agents) == 1:
        return next(iter(project.agents))
    if not project.agents:
        raise UsageError(
            "no agent is configured here: `interlock init` writes a project file to fill in"
        )
    raise UsageError(f"which agent? Say -a with one of: {', '.join(project.agents)}")


def _variables(given: Sequence[str]) -> dict[str, str]:
    variables = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise InvalidOption(f"--set {each!r}: write KEY=VALUE")
        variables[name.strip()] = value
    return variables
