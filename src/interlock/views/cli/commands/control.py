"""`cancel`, `retry`, `pause`, `resume`, `prioritize`, `answer`: control a run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from interlock.errors import NotRunning, UsageError
from interlock.runtime.control.client import ask
from interlock.service.project_folder import find_project
from interlock.views.cli.options import Json, TaskId
from interlock.views.cli.printing import print_json, say


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (cancel, retry, pause, resume, prioritize, answer):
        app.command()(command)


def cancel(
    tasks: Annotated[list[str] | None, typer.Argument(help="The ids of tasks.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Cancel every task that has not ended.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Cancel tasks; tasks that depend on them are skipped."""
    if bool(tasks) == everything:
        raise UsageError("name the tasks to cancel, or use --all")
    cancelled = ask(find_project().folder, "cancel", tasks=None if everything else tasks)
    text = f"Cancelled: {', '.join(cancelled)}." if cancelled else "All of them had already ended."
    return _print({"cancelled": cancelled}, text, as_json)


def retry(task: TaskId, as_json: Json = False) -> int:
    """Repeat a task that did not succeed.

    Tasks that were skipped because of it run again as well. For a run that has ended, use
    `interlock run --resume`: it repeats every task that did not succeed.
    """
    try:
        names = ask(find_project().folder, "retry", task=task)
    except NotRunning as error:
        raise UsageError(
            f"{error}; `interlock run --resume` repeats every task that did not succeed"
        ) from error
    submitted = ", ".join(f"{old} again as {new}" for old, new in names.items())
    return _print({"submitted": names}, f"Submitted {submitted}.", as_json)


def pause(
    task: Annotated[str | None, typer.Argument(help="Pause only this task.")] = None,
    as_json: Json = False,
) -> int:
    """Start no new attempts until `interlock resume`; running attempts continue."""
    ask(find_project().folder, "pause", task=task)
    what = task or "everything"
    undo = f"interlock resume {task}" if task else "interlock resume"
    return _print({"paused": what}, f"Paused {task or 'the run'}. Resume with `{undo}`.", as_json)


def resume(
    task: Annotated[str | None, typer.Argument(help="Resume only this task.")] = None,
    as_json: Json = False,
) -> int:
    """End a pause.

    To continue an interrupted run, use `interlock run --resume`.
    """
    ask(find_project().folder, "resume", task=task)
    what = task or "everything"
    return _print({"resumed": what}, f"Resumed {task or 'the run'}.", as_json)


def prioritize(
    task: TaskId,
    priority: Annotated[str, typer.Argument(help="A number, or a name from the project file.")],
    as_json: Json = False,
) -> int:
    """Change the priority of a task.

    Among tasks that could start, the one with the highest number starts first.
    """
    folder = find_project()
    named = folder.project().priorities
    if priority in named:
        number = named[priority]
    else:
        try:
            number = int(priority)
        except ValueError:
            known = f", or one of: {', '.join(named)}" if named else ""
            raise UsageError(
                f"{priority!r} is not a valid priority; use a whole number{known}"
            ) from None
    ask(folder.folder, "prioritize", task=task, priority=number)
    facts = {"task": task, "priority": number}
    return _print(facts, f"{task} now has priority {number}.", as_json)


def answer(
    task: TaskId,
    text: Annotated[str, typer.Argument(help="The answer: yes, no, or any text.")],
    as_json: Json = False,
) -> int:
    """Answer the question of a task that needs you."""
    ask(find_project().folder, "answer", task=task, answer=text)
    return _print({"task": task, "answer": text}, f"Answered {task}: {text}", as_json)


def _print(facts: dict[str, Any], text: str, as_json: bool) -> int:
    if as_json:
        print_json(facts)
    else:
        say(text)
    return 0
