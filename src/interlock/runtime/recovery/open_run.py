"""Open a run: a new one, one that continues a closed run, or an interrupted one that is resumed.

Everything that a resume needs is read before anything is written, so that a journal that cannot be
read is left as it is. The events of the run are read once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from interlock.errors import UsageError
from interlock.journal.port import Journal
from interlock.journal.reader import Reader, Run
from interlock.journal.schema.own_records import NotStored
from interlock.journal.sqlite import SqliteJournal
from interlock.journal.state.run_state import RunState
from interlock.journal.store import Durability
from interlock.model.labels import RETRY_OF_LABEL
from interlock.model.outcome import Outcome, State
from interlock.model.redaction import Redaction
from interlock.model.task import Task
from interlock.runtime.ports import Ports
from interlock.runtime.recorded_types import RECORDED_TYPES
from interlock.runtime.recovery.known_tasks import (
    EarlierSuccess,
    KnownTasks,
    WhenChanged,
    WhenInterrupted,
    fold_run,
)

Unserializable = Literal["refuse", "mark"]


class DurableOptions(NamedTuple):
    """The options of a run with a journal on disk."""

    durability: Durability
    on_interrupted: WhenInterrupted
    on_changed: WhenChanged
    unserializable: Unserializable
    secrets: tuple[str, ...]
    workspace: str
    """The folder that paths are relative to. In another one they would name other files."""


class OpenedRun(NamedTuple):
    """A run that has been opened, with its journal and what that knows of it."""

    run_id: str
    journal: Journal
    epoch: float
    """When the run began, in seconds since 1970."""
    elapsed: float = 0.0
    """How many seconds ago that was."""
    known_tasks: KnownTasks | None = None
    first_token: int = 1
    disk: SqliteJournal | None = None
    """The journal, if it is on disk."""
    redaction: Redaction = Redaction(())
    """Hides secrets in what is written anywhere else than to the journal."""
    passed_over: str = ""
    """The id of an interrupted run that is not resumed by this one."""


def new_run_id(ports: Ports) -> str:
    """A readable and unique id for a run."""
    at = datetime.fromtimestamp(ports.wall(), UTC)
    return f"{at:%Y%m%d-%H%M%S}-{ports.chance.getrandbits(32):08x}"


def open_in_memory(run_id: str, options: DurableOptions, ports: Ports) -> OpenedRun:
    """Begin a run without a journal on disk; it cannot be resumed."""
    redaction = Redaction(options.secrets)
    return OpenedRun(run_id, ports.journal(), ports.wall(), redaction=redaction)


async def open_on_disk(
    path: str | os.PathLike[str],
    resume: bool | str | None,
    run_id: str,
    options: DurableOptions,
    ports: Ports,
    on_trouble: Callable[[Exception | None], None],
) -> OpenedRun:
    """Begin a run in a journal on disk, or continue the one that `resume` names."""
    journal = ports.open_journal(
        path,
        durability=options.durability,
        redact=options.secrets,
        known=RECORDED_TYPES,
        on_trouble=on_trouble,
    )
    try:
        former = _run_to_continue(journal.read, resume)
        if former is not None:
            _check_workspace(journal, former, options.workspace)
        if former is not None and former.is_open:
            return await _resume(journal, former, options, ports)
        return await _begin(journal, run_id, former, options, ports)
    except BaseException:
        journal.close()
        raise


def _run_to_continue(read: Reader, resume: bool | str | None) -> Run | None:
    """The run to continue, if there is one."""
    if resume is None or resume is False:
        return None
    if resume == "open":
        last = read.last_run()
        return last if last is not None and last.is_open else None
    return read.last_run() if resume is True else read.run(resume)


def _check_workspace(journal: SqliteJournal, former: Run, workspace: str) -> None:
    """Reject another workspace: what was done in one folder is not done in another."""
    before = former.options.get("workspace", workspace)
    if before != journal.codec.redaction.text(workspace):
        raise UsageError(
            f"run {former.id} had the workspace {before}, and this one has {workspace}; resume it "
            f"with workspace={before!r}, or start a new run without resume"
        )


def is_whole(outcome: Outcome[Any]) -> bool:
    """Whether the result could be stored; otherwise the task has to run again."""
    return not isinstance(outcome.result, NotStored)


async def _begin(
    journal: SqliteJournal, run_id: str, former: Run | None, options: DurableOptions, ports: Ports
) -> OpenedRun:
    now = ports.wall()
    inherits = None if former is None else former.id
    inherited = _successes(journal.read, inherits)
    # Fencing tokens only grow, across runs: what they protect does not know where a run begins.
    token = journal.read.last_token() + 1
    last = journal.read.last_run()
    passed_over = last.id if former is None and last is not None and last.is_open else ""
    kept = {"first_token": token, "workspace": options.workspace}
    await journal.begin(run_id, now, inherits=inherits, options=kept)
    known_tasks = _known_tasks(journal, options, None, inherited)
    redaction = journal.codec.redaction
    return OpenedRun(run_id, journal, now, 0.0, known_tasks, token, journal, redaction, passed_over)


def _successes(read: Reader, run: str | None) -> dict[str, EarlierSuccess]:
    """The successes of a run and of those it continues; of several the last one."""
    found: dict[str, EarlierSuccess] = {}
    for former in _chain(read, run):
        for row in read.tasks(former):
            if row.state is State.SUCCEEDED and row.task_id not in found:
                outcome = read.outcome_of(former, row)
                if outcome is not None and is_whole(outcome):
                    found[row.task_id] = done = EarlierSuccess(row.fingerprint, outcome)
                    first = row.labels.get(RETRY_OF_LABEL)
                    if first is not None:
                        again = replace(outcome, task_id=first)
                        found.setdefault(first, done._replace(outcome=again))
    return found


def _chain(read: Reader, run: str | None) -> Iterator[Run]:
    """A run, the run that it continues, and so on: the last one first."""
    runs = {} if run is None else {each.id: each for each in read.runs()}
    while run is not None and run in runs:
        former = runs.pop(run)
        yield former
        run = former.inherits


async def _resume(
    journal: SqliteJournal, run: Run, options: DurableOptions, ports: Ports
) -> OpenedRun:
    past = fold_run(run.started_at, journal.read.all_events(run))
    for row in journal.read.tasks(run):
        past.tasks[row.task_id].fingerprint = row.fingerprint
    # The time of the run must not go back if the clock was set back.
    elapsed = max(ports.wall() - run.started_at, past.latest)
    known_tasks = _known_tasks(journal, options, past, _successes(journal.read, run.inherits))
    await journal.begin(run.id, run.started_at)
    first_token = max(past.last_token, journal.read.last_token()) + 1
    redaction = journal.codec.redaction
    return OpenedRun(
        run.id, journal, run.started_at, elapsed, known_tasks, first_token, journal, redaction
    )


def _known_tasks(
    journal: SqliteJournal,
    options: DurableOptions,
    past: RunState | None,
    inherited: dict[str, EarlierSuccess],
) -> KnownTasks:
    def fingerprint(task: Task) -> str:
        return journal.codec.task(task)[1]

    def by_key(key: str) -> Outcome[Any] | None:
        success = journal.read.success(key)
        return success.outcome if success is not None and is_whole(success.outcome) else None

    return KnownTasks(
        fingerprint,
        past,
        inherited,
        by_key,
        when_changed=options.on_changed,
        asks=options.on_interrupted == "ask",
    )
