"""`status`, `why`, `logs` and `events`: see what happens, in this or another terminal."""

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
from interlock.views.cli.options import Json, TaskId
from interlock.views.cli.printing import print_json
from interlock.views.cli.task_log import follow_log, read_log
from interlock.views.cli.why_json import explanation_json
from interlock.views.terminal import safe_text
from interlock.views.terminal import status as status_view
from interlock.views.terminal.console import can_be_live, make_console
from interlock.views.terminal.event_lines import event_json, line_of
from interlock.views.terminal.explanation import render_explanation
from interlock.views.terminal.watchers import watch

_CPU_SAMPLE = 0.12
"""Seconds over which CPU use is measured. Less than a tenth of a second gives no usable figure."""

_MAX_NUMBER = 2**63 - 1
"""The largest number that the journal can give an event."""


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (status, why, logs, events):
        app.command()(command)


def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep updating the view.")] = False,
    as_json: Json = False,
) -> int:
    """Show the state of the last run.

    Lists the running tasks with their files, the waiting ones with the reason, and recent outcomes.
    """
    folder = find_project()
    if watch:
        return _watch(folder)
    facts = facts_of(folder)
    if as_json:
        print_json(run_json(facts))
        return 0
    resources = _resources() if facts.active else ()
    make_console().print(status_view.status(facts, _why_of(folder, facts), resources=resources))
    return 0


def why(task: TaskId, as_json: Json = False) -> int:
    """Explain why a task is not running.

    Lists every reason, when the last of them is expected to clear, and what would help.
    """
    folder = find_project()
    facts = facts_of(folder)
    found = task_of(facts, task)
    explanation = explain_offline(facts, task)
    if not found.state.is_end:
        with contextlib.suppress(NotRunning):
            explanation = ask(folder.folder, "why", task=found.id)
    if as_json:
        print_json(explanation_json(explanation, found))
    else:
        make_console().print(render_explanation(explanation, found))
    return 0


def logs(
    task: TaskId,
    follow_: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing until the task has ended.")
    ] = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Which attempt; by default the last one.")
    ] = None,
) -> int:
    """Show what a task has printed."""
    folder = find_project()
    with last_run(folder) as (reader, run):
        followed = FollowedRun(folder, reader, run)
        task = task_of(followed.facts(), task).id
        if follow_:
            follow_log(folder, followed, task, sys.stdout)
        else:
            read_log(folder, followed, task, attempt, sys.stdout)
    return 0


def events(
    follow_: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing as events happen.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    since: Annotated[
        int, typer.Option(min=0, max=_MAX_NUMBER, help="Only events after this number.")
    ] = 0,
) -> int:
    """Show the events of the last run."""
    folder = find_project()
    with last_run(folder) as (reader, run):
        followed = FollowedRun(folder, reader, run)
        listed = followed.events(since) if follow_ else reader.all_events(run, since)
        for event in listed:
            if as_json:
                print(json.dumps(event_json(event)), flush=follow_)
            else:
                print(safe_text.line(line_of(event)), flush=follow_)
    return 0


def _resources() -> Sequence[tuple[str, str]]:
    load = LoadText()
    Flag().wait(_CPU_SAMPLE)
    cpu, memory = load.read()
    return (("CPU", cpu or "unknown"), ("memory", memory))


def _watch(folder: ProjectFolder) -> int:
    console = make_console()
    if not can_be_live(console):
        raise UsageError(
            "--watch needs a terminal; `interlock events -f` follows a run line by line"
        )
    with last_run(folder) as (reader, run):
        followed = FollowedRun(folder, reader, run)
        watch(console, followed, _why_of(folder, followed.facts()))
    return 0


def _why_of(folder: ProjectFolder, facts: RunFacts) -> Callable[[str], Explanation | None]:
    answers = facts.active

    def why_of(task_id: str) -> Explanation | None:
        nonlocal answers
        try:
            return ask(folder.folder, "why", task=task_id) if answers else None
        except NoReply:
            answers = False  # do not wait for it again with every further task
        except InterlockError:
            pass  # the run has just ended
        return None

    return why_of
