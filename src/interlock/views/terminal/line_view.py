"""A run as lines of text, one per important event, for output that is not a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.model.duration import span
from interlock.model.event import Event, Kind
from interlock.model.outcome import State
from interlock.views.forecast import seconds_left
from interlock.views.terminal import safe_text
from interlock.views.terminal.figures import about, clock
from interlock.views.terminal.reasons import ending
from interlock.views.terminal.state_styles import STYLES

_QUIET = 60.0
"""Seconds without output after which the counts are printed: CI systems kill silent jobs."""
_NAME = 24


class Lines(Protocol):
    """The stream that receives the lines."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> None: ...


class LineView:
    """Prints a run as lines. Pass it each event with the facts of its task after the event."""

    def __init__(self, stream: Lines, facts: Callable[[], RunFacts]) -> None:
        self._stream = stream
        self._facts = facts
        self._said_at = 0.0

    def tell(self, event: Event, task: TaskFacts | None, started_at: float) -> None:
        """Print the line of an event, if it has one."""
        said = event_text(event, task)
        if said:
            self._write(event.at, started_at, event.task_id, said)

    def refresh(self) -> None:
        """Print the counts if nothing has been printed for a minute."""
        facts = self._facts()
        self._said_at = self._said_at or facts.at
        if facts.at - self._said_at >= _QUIET:
            left = seconds_left(facts)
            soon = f"; {about(left)} left" if left else ""
            self._write(facts.at, facts.started_at, "", f"{facts.progress}{soon}")

    def _write(self, at: float, started_at: float, task_id: str, said: str) -> None:
        name = safe_text.line(task_id or "run")
        self._stream.write(
            f"{clock(at - started_at):>7}  {name:<{_NAME}}  {safe_text.line(said)}\n"
        )
        self._stream.flush()
        self._said_at = at


def event_text(event: Event, task: TaskFacts | None) -> str:
    """The text of an event; empty if it is not important enough for a line."""
    if task is None:
        return _of_run(event)
    match event.kind:
        case Kind.STARTED:
            return _started(task)
        case Kind.RETRYING:
            return f"attempt {task.attempt} of {task.attempts} failed: {_error(task)}"
        case Kind.NEEDS_YOU:
            return f"needs you: {task.question}"
        case Kind.RUNNING:
            return "continues"
        case Kind.STOP_REQUESTED:
            return "was told to stop"
        case Kind.INTERRUPTED:
            return "was interrupted when its coordinator ended"
        case Kind.REUSED:
            return "succeeded in an earlier run"
        case Kind.SETTLED:
            return _settled(task)
    return ""


def _of_run(event: Event) -> str:
    match event.kind:
        case Kind.RUN_STARTED:
            return "started"
        case Kind.RUN_ENDED:
            return "ended"
        case Kind.COMMAND:
            return {
                "pause": "paused",
                "resume": "resumed",
                "drain": "stopping: running tasks may finish",
                "shutdown": "stopping at once",
            }.get(event.fields.get("command", ""), "")
        case Kind.MISSED:
            return "some events were missed"
    return ""


def _started(task: TaskFacts) -> str:
    agent = f" with {task.agent}" if task.agent else ""
    attempt = f", attempt {task.attempt} of {task.attempts}" if task.attempt > 1 else ""
    claims = f": {', '.join(task.claims)}" if task.claims else ""
    return f"started{agent}{attempt}{claims}"


def _settled(task: TaskFacts) -> str:
    took = f"{'in' if task.state is State.SUCCEEDED else 'after'} {span(task.duration)}"
    attempt = f", attempt {task.attempt}" if task.attempt > 1 else ""
    why = ending(task) if task.state is not State.SUCCEEDED else ""
    log = f" (log: {task.log})" if task.log and task.state is not State.SUCCEEDED else ""
    took = f" {took}" if task.attempt else ""
    return f"{STYLES[task.state].word}{took}{attempt}{': ' if why else ''}{why}{log}"


def _error(task: TaskFacts) -> str:
    return (
        f"{task.error_type}: {task.error}" if task.error_type else task.error or "no reason given"
    )
