"""The structured log: the message is the event's kind, everything else is a field."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome, State
from interlock.model.redaction import Redaction

LOGGER = logging.getLogger("interlock")

_LEVELS = {
    Kind.RUN_STARTED: logging.INFO,
    Kind.RUN_ENDED: logging.INFO,
    Kind.SUBMITTED: logging.INFO,
    Kind.STARTED: logging.INFO,
    Kind.SETTLED: logging.INFO,
    Kind.NEEDS_YOU: logging.INFO,
    Kind.LOGGED: logging.INFO,
    Kind.RETRYING: logging.WARNING,
    Kind.ASKED_TO_STOP: logging.WARNING,
    Kind.DENIED: logging.WARNING,
    Kind.REFUSED: logging.WARNING,
}
_BAD = {State.FAILED: logging.ERROR, State.CONFLICTED: logging.ERROR}


class Log:
    """Writes events to the standard logger `interlock`; its handlers decide what follows."""

    def __init__(self, run_id: str, redaction: Redaction) -> None:
        self._run_id = run_id
        self._redaction = redaction

    def is_on(self) -> bool:
        """Whether anybody wants to read anything."""
        return LOGGER.hasHandlers() and LOGGER.isEnabledFor(logging.ERROR)

    def write(self, events: Sequence[Event]) -> None:
        """Log what happened."""
        for event in events:
            level = _level(event)
            if LOGGER.isEnabledFor(level):
                self._write(level, event.kind, {"task": event.task_id, **_brief(event)})

    def listener_failed(self, listener: Callable[..., Any], error: BaseException) -> None:
        """A listener raised; it is called again for the next event all the same."""
        self._write(logging.ERROR, "listener_failed", {"listener": _name(listener)}, error)

    def callback_failed(
        self, task_id: str, callback: Callable[..., Any], error: BaseException
    ) -> None:
        """What was to be called at the end of a task raised; the run goes on all the same."""
        about = {"task": task_id, "callback": _name(callback)}
        self._write(logging.ERROR, "callback_failed", about, error)

    def workspace_not_released(self, task_id: str, error: BaseException) -> None:
        """The workspace of an attempt could not be released; what the attempt held is free."""
        self._write(logging.ERROR, "workspace_not_released", {"task": task_id}, error)

    def unbound(self, tasks: tuple[str, ...]) -> None:
        """Tasks of a run that was taken up, and that the program did not bring again."""
        LOGGER.warning(
            "tasks of an unfinished run were not submitted again, and it stays open: %s",
            ", ".join(tasks),
            extra={"interlock": {"run": self._run_id, "tasks": ", ".join(tasks)}},
        )

    def interrupted(self, running: int, grace: float) -> None:
        """A signal came. In words: it is seen by a person at a terminal, and mostly nobody else."""
        LOGGER.warning(
            "interrupted: %d attempts may finish, for at most %g s; a second signal stops them",
            running,
            grace,
            extra={"interlock": {"run": self._run_id, "running": running, "grace": grace}},
        )

    def passed_over(self, run_id: str) -> None:
        """There is an unfinished run, and this is a new one."""
        LOGGER.warning(
            "run %s was not finished, and this is a new one; resume=%r takes it up",
            run_id,
            run_id,
            extra={"interlock": {"run": self._run_id}},
        )

    def trouble(self, error: Exception | None) -> None:
        """The journal cannot be written: nothing starts, and nothing is lost, until it can be."""
        if error is None:
            self._write(logging.INFO, "journal_works_again", {})
        else:
            self._write(logging.ERROR, "journal_stuck", {"reason": str(error)})

    def broken(self, error: BaseException) -> None:
        """A bug of ours."""
        self._write(logging.CRITICAL, "run_broken", {}, error)

    def _write(
        self, level: int, message: str, about: dict[str, Any], error: BaseException | None = None
    ) -> None:
        about = {"run": self._run_id} | {
            name: self._redaction.text(value) if isinstance(value, str) else value
            for name, value in about.items()
            if value
        }
        try:
            LOGGER.log(level, str(message), exc_info=error, extra={"interlock": about})
        except Exception:  # noqa: BLE001 - a stranger's handler or filter must not hurt the run
            if logging.raiseExceptions:  # as the handlers of `logging` do it themselves
                traceback.print_exc()


def _name(function: Callable[..., Any]) -> str:
    function = function.func if isinstance(function, partial) else function
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _level(event: Event) -> int:
    if event.kind is Kind.SETTLED and isinstance(event.data, Outcome):
        status = event.data.status
        if status is State.TIMED_OUT:
            return logging.WARNING
        return _BAD.get(status, logging.INFO)
    return _LEVELS.get(event.kind, logging.DEBUG)


def _brief(event: Event) -> dict[str, Any]:
    """The figures of an event. Never arguments, prompts or results: they may hold secrets."""
    data = event.data
    if isinstance(data, Outcome):
        return {
            "status": str(data.status),
            "attempts": data.attempts,
            "duration": round(data.duration, 6),
            "reason": data.reason,
        }
    if event.kind is Kind.SUBMITTED:
        return {"claims": ", ".join(map(str, data.claims)), "after": ", ".join(data.after)}
    names = ("asked", "attempt", "token", "reason", "detail", "line", "fraction", "message")
    return {name: value for name, value in event.fields.items() if name in names}


class TextFormatter(logging.Formatter):
    """`12:30:01 INFO settled task=api status=succeeded`."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        about = " ".join(f"{name}={_quoted(value)}" for name, value in _about(record))
        line = f"{at} {record.levelname} {record.getMessage()} {about}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= dict(_about(record))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, default=str)
        # Names of files that are no UTF-8 could not be written anywhere.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _about(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    yield from getattr(record, "interlock", {}).items()


def _quoted(value: Any) -> str:
    text = str(value)
    plain = text.isprintable() and not any(each in text for each in ' "=')
    # What cannot be printed is escaped: it may be a command to the terminal, or no text at all.
    return text if plain and text else json.dumps(text, ensure_ascii=not text.isprintable())
