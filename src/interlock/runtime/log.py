"""The one structured log: the message is a constant, everything else is a field.

Every room that logs uses LOGGER from here. Fields of a run are in `record.interlock`, a dict, where
they cannot clash with what `logging` itself keeps in a record. The formatters also show fields that
were given as plain `extra={"job": ...}`, as systems and programs do.
"""

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
# Without any handler Python would print warnings to stderr, which belongs to the program.
LOGGER.addHandler(logging.NullHandler())

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "interlock", "taskName"}
"""Attributes that are not fields: those that `logging` gives every record."""

_LEVELS = {
    Kind.RUN_STARTED: logging.INFO,
    Kind.RUN_ENDED: logging.INFO,
    Kind.SUBMITTED: logging.INFO,
    Kind.STARTED: logging.INFO,
    Kind.SETTLED: logging.INFO,
    Kind.NEEDS_YOU: logging.INFO,
    Kind.LOGGED: logging.INFO,
    Kind.RETRYING: logging.WARNING,
    Kind.STOP_REQUESTED: logging.WARNING,
    Kind.DENIED: logging.WARNING,
    Kind.REFUSED: logging.WARNING,
}
_BAD = {State.FAILED: logging.ERROR, State.CONFLICTED: logging.ERROR}


class Log:
    """Writes the events of one run to the standard logger `interlock`."""

    def __init__(self, run_id: str, redaction: Redaction) -> None:
        self._run_id = run_id
        self._redaction = redaction

    def is_on(self) -> bool:
        """Whether any line could reach a handler: if not, events need not be made at all."""
        return LOGGER.isEnabledFor(logging.ERROR) and _has_handler()

    def write(self, events: Sequence[Event]) -> None:
        """Log events, each at the level of its kind."""
        for event in events:
            level = _level(event)
            if LOGGER.isEnabledFor(level):
                self._write(level, event.kind, {"task": event.task_id, **_brief(event)})

    def listener_failed(self, listener: Callable[..., Any], error: BaseException) -> None:
        """A listener raised. It is called again for the next event."""
        self._write(logging.ERROR, "listener_failed", {"listener": _name(listener)}, error)

    def callback_failed(
        self, task_id: str, callback: Callable[..., Any], error: BaseException
    ) -> None:
        """A function that was to be called at the end of a task raised. The run continues."""
        about = {"task": task_id, "callback": _name(callback)}
        self._write(logging.ERROR, "callback_failed", about, error)

    def workspace_not_released(self, task_id: str, error: BaseException) -> None:
        """The workspace of an attempt could not be released; what the attempt held is free."""
        self._write(logging.ERROR, "workspace_not_released", {"task": task_id}, error)

    def unbound(self, tasks: tuple[str, ...]) -> None:
        """Unfinished tasks of a resumed run that the program did not submit again."""
        LOGGER.warning(
            "tasks of an unfinished run were not submitted again, and it stays open: %s",
            ", ".join(tasks),
            extra={"interlock": {"run": self._run_id, "tasks": ", ".join(tasks)}},
        )

    def interrupted(self, running: int, grace: float) -> None:
        """A signal came. In words, because it is mostly read by a person at a terminal."""
        LOGGER.warning(
            "interrupted: %d running attempts may finish (up to %g s); a second signal stops them",
            running,
            grace,
            extra={"interlock": {"run": self._run_id, "running": running, "grace": grace}},
        )

    def passed_over(self, run_id: str) -> None:
        """The journal has an unfinished run, and this is a new one."""
        LOGGER.warning(
            "run %s is unfinished, and this is a new run; continue it with resume=%r",
            run_id,
            run_id,
            extra={"interlock": {"run": self._run_id}},
        )

    def trouble(self, error: Exception | None) -> None:
        """The journal cannot be written, so nothing starts until it can; None: it can again."""
        if error is None:
            self._write(logging.INFO, "journal_works_again", {})
        else:
            self._write(logging.ERROR, "journal_stuck", {"reason": str(error)})

    def broken(self, error: BaseException) -> None:
        """The run was ended by a bug of ours."""
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
        except Exception:  # noqa: BLE001 - a handler of the program must not hurt the run
            if logging.raiseExceptions:  # as the handlers of `logging` do themselves
                traceback.print_exc()


def _has_handler() -> bool:
    """Whether a handler of the program receives our records; NullHandlers discard them."""
    logger: logging.Logger | None = LOGGER
    while logger is not None:
        if any(not isinstance(each, logging.NullHandler) for each in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


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
    names = ("command", "attempt", "token", "reason", "detail", "line", "fraction", "message")
    return {name: value for name, value in event.fields.items() if name in names}


class TextFormatter(logging.Formatter):
    """`12:30:01 INFO settled task=api status=succeeded`."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        about = " ".join(f"{name}={_quoted(value)}" for name, value in _about(record))
        line = f"{at} {record.levelname} {record.getMessage()} {about}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "level": record.levelname.lower(), "event": record.getMessage()}
        # A field cannot replace what every line has.
        line |= {name: value for name, value in _about(record) if name not in line}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, default=str)
        # File names that are not UTF-8 could not be written to any stream.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _about(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """The fields of a record, those of the run first."""
    yield from getattr(record, "interlock", {}).items()
    for name, value in vars(record).items():
        if name not in _OWN:
            yield name, value


def _quoted(value: Any) -> str:
    text = str(value)
    plain = text.isprintable() and not any(each in text for each in ' "=')
    # Unprintable text is escaped: it may be a command to the terminal.
    return text if plain and text else json.dumps(text, ensure_ascii=not text.isprintable())
