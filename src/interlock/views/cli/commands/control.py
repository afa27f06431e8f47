"""`cancel`, `retry`, `pause`, `resume`, `prioritize` and `answer`: tell a run that goes on."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from interlock.errors import NotRunning, UsageError
from interlock.runtime.control.client import ask
from interlock.service.project_folder import find_project
from interlock.views.cli.printing import print_json, say

TaskId = Annotated[str, typer.Argument(help="The id of a task.")]
Json = Annotated[bool, typer.Option("--json", help="Facts as JSON, for programs.")]


def add_to(app: typer.Typer) -> None:
    """The commands of this file."""
    for command in (cancel, retry, pause, resume, prioritize, answer):
        app.command()(command)


def cancel(
    tasks: Annotated[list[str] | None, typer.Argument(help="Ids of tasks.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All tasks that have not ended.")
    ] = False,
    as_json: Json = False,
) -> int:
    """End tasks; what comes after them is skipped."""
    if bool(tasks) == everything:
        raise UsageError("name the tasks to cancel, or say --all")
    ended = ask(find_project().folder, "cancel", tasks=None if everything else tasks)
    said = f"Cancelled: {', '.join(ended)}." if ended else "They had all ended already."
    return _say({"cancelled": ended}, said, as_json)


def retry(task: TaskId, as_json: Json = False) -> int:
    """Do a task again that did not succeed.

    All that was skipped because of it is done again as well. Of a run that has ended,
    `interlock run --resume` tries again all that did not succeed.
    """
    try:
        names = ask(find_project().folder, "retry", task=task)
    except NotRunning as error:
        raise UsageError(
            f"{error}; `interlock run --resume` tries again all that did not succeed"
        ) from error
    said = ", ".join(f"{old} again as {new}" for old, new in names.items())
    return _say({"submitted": names}, f"Submitted {said}.", as_json)


def pause(
    task: Annotated[str | None, typer.Argument(help="Only this task.")] = None,
    as_json: Json = False,
) -> int:
    """Start nothing more; what runs goes on."""
    ask(find_project().folder, "pause", task=task)
    what = task or "everything"
    undo = f"interlock resume {task}" if task else "interlock resume"
    return _say({"paused": what}, f"Paused {what}. `{undo}` ends it.", as_json)


def resume(
    task: Annotated[str | None, typer.Argument(help="Only this task.")] = None,
    as_json: Json = False,
) -> int:
    """End a pause.

    A run that was interrupted goes on with `interlock run --resume`.
    """
    ask(find_project().folder, "resume", task=task)
    what = task or "everything"
    return _say({"resumed": what}, f"Resumed {what}.", as_json)


def prioritize(
    task: TaskId,
    priority: Annotated[str, typer.Argument(help="A number, or a name from the project file.")],
    as_json: Json = False,
) -> int:
    """Give a task another priority.

    The higher number goes first, among those that could start.
    """
    place = find_project()
    named = place.project().priorities
    if priority in named:
        number = named[priority]
    else:
        try:
            number = int(priority)
        except ValueError:
            known = f", or {', '.join(named)}" if named else ""
            raise UsageError(f"{priority!r} is no priority; write a whole number{known}") from None
    ask(place.folder, "prioritize", task=task, priority=number)
    facts = {"task": task, "priority": number}
    return _say(facts, f"{task} has priority {number} now.", as_json)


def answer(
    task: TaskId,
    text: Annotated[str, typer.Argument(help="What to tell it: yes, no, or more.")],
    as_json: Json = False,
) -> int:
    """Answer a task that needs you."""
    place = find_project()
    ask(place.folder, "answer", task=task, answer=text)
    return _say({"task": task, "answer": text}, f"LineWatcher {task}: {text}", as_json)


def _say(facts: dict[str, Any], words: str, as_json: bool) -> int:
    if as_json:
        print_json(facts)
    else:
        say(words)
    return 0
