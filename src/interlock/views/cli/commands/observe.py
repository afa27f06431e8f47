"""`status`, `why`, `logs` and `events`: what goes on, in this or in another terminal."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Sequence
from threading import Event as Flag
from typing import Annotated

import typer

from interlock.errors import InterlockError, NotRunning, UsageError
from interlock.journal.state.run_facts import RunFacts
from interlock.model.why import Explanation
from interlock.runtime.control.client import ask
from interlock.runtime.control.protocol import NoReply
from interlock.runtime.load_text import LoadText
from interlock.service.project_folder import ProjectFolder, find_project
from interlock.views.cli.facts_json import run_json
from interlock.views.cli.last_run import FollowedRun, explain_offline, facts_of, last_run, task_of
from interlock.views.cli.printing import print_json
from interlock.views.cli.task_log import follow_log, read_log
from interlock.views.cli.why_json import explanation_json
from interlock.views.terminal import explanation as why_view
from interlock.views.terminal import safe_text
from interlock.views.terminal import status as status_view
from interlock.views.terminal.console import can_be_live, make_console
from interlock.views.terminal.event_lines import event_json, line_of
from interlock.views.terminal.watchers import watch

_MOMENT = 0.12
"""Seconds over which the use of the CPU is measured: less than a tenth says nothing."""

_LAST = 2**63 - 1
"""No event has a larger number: there is no room for one in the journal."""

Json = Annotated[bool, typer.Option("--json", help="Facts as JSON, for programs.")]


def add_to(app: typer.Typer) -> None:
    """The commands of this file."""
    for command in (status, why, logs, events):
        app.command()(command)


def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on showing it.")] = False,
    as_json: Json = False,
) -> int:
    """Show how the last run stands.

    What runs on which files, what waits and for what, what has ended and how.
    """
    place = find_project()
    if watch:
        return _watch(place)
    facts = facts_of(place)
    if as_json:
        print_json(run_json(facts))
        return 0
    resources = _resources() if facts.active else ()
    make_console().print(status_view.status(facts, _why_of(place, facts), resources=resources))
    return 0


def why(
    task: Annotated[str, typer.Argument(help="The id of a task.")], as_json: Json = False
) -> int:
    """Say why a task is not running.

    Every reason at once, when the last of them is expected to be gone, and what would help.
    """
    place = find_project()
    facts = facts_of(place)
    found = task_of(facts, task)
    explanation = explain_offline(facts, task)
    if not found.state.is_end:
        with contextlib.suppress(NotRunning):
            explanation = ask(place.folder, "why", task=found.id)
    if as_json:
        print_json(explanation_json(explanation, found))
    else:
        make_console().print(why_view.render_explanation(explanation, found))
    return 0


def logs(
    task: Annotated[str, typer.Argument(help="The id of a task.")],
    follow_: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")
    ] = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Which attempt; the last one if not said.")
    ] = None,
) -> int:
    """Show what a task has printed."""
    place = find_project()
    with last_run(place) as (reader, run):
        following = FollowedRun(place, reader, run)
        task = task_of(following.facts(), task).id
        if follow_:
            follow_log(place, following, task, sys.stdout)
        else:
            read_log(place, following, task, attempt, sys.stdout)
    return 0


def events(
    follow_: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they come.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    since: Annotated[int, typer.Option(min=0, max=_LAST, help="Only those after this number.")] = 0,
) -> int:
    """Show what happened in the last run."""
    place = find_project()
    with last_run(place) as (reader, run):
        following = FollowedRun(place, reader, run)
        story = following.events(since) if follow_ else reader.all_events(run, since)
        for event in story:
            if as_json:
                print(json.dumps(event_json(event)), flush=follow_)
            else:
                print(safe_text.line(line_of(event)), flush=follow_)
    return 0


def _resources() -> Sequence[tuple[str, str]]:
    load = LoadText()
    Flag().wait(_MOMENT)
    cpu, memory = load.read()
    return (("CPU", cpu or "unknown"), ("memory", memory))


def _watch(place: ProjectFolder) -> int:
    console = make_console()
    if not can_be_live(console):
        raise UsageError("--watch needs a terminal; `interlock events -f` follows a run in lines")
    with last_run(place) as (reader, run):
        following = FollowedRun(place, reader, run)
        watch(console, following, _why_of(place, following.facts()))
    return 0


def _why_of(place: ProjectFolder, facts: RunFacts) -> Callable[[str], Explanation | None]:
    answers = facts.active

    def why_of(task_id: str) -> Explanation | None:
        nonlocal answers
        try:
            return ask(place.folder, "why", task=task_id) if answers else None
        except NoReply:
            answers = False  # nor will it for the next task, and each would have to wait for it
        except InterlockError:
            pass  # it has just ended
        return None

    return why_of
