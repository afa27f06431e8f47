"""Which run `--resume` continues. A later run must not make an interrupted one unreachable."""

from __future__ import annotations

from typing import NamedTuple

from interlock.errors import UsageError
from interlock.journal.reader import Reader, Run
from interlock.model.outcome import State
from interlock.service.project_folder import ProjectFolder
from interlock.service.run_request import NAMESPACE, RunRequest, from_record


class EarlierRun(NamedTuple):
    """A run in the journal, and what it was asked to do."""

    run: Run
    request: RunRequest


def last_run_of_plan(folder: ProjectFolder, plan: str) -> EarlierRun | None:
    """The last run of a plan; None if there was none."""
    if not folder.journal.exists():
        return None
    with folder.reader() as reader:
        for earlier in _earlier_runs(reader):
            if earlier.request.plan == plan:
                return earlier
    return None


def last_unfinished_run(folder: ProjectFolder) -> EarlierRun:
    """The last run in which some task has not succeeded."""
    with folder.reader() as reader:
        runs = _earlier_runs(reader)
        for earlier in runs:
            counts = reader.status(earlier.run).counts
            if earlier.run.is_open or set(counts) - {State.SUCCEEDED}:
                return earlier
    if runs:
        raise UsageError("nothing is left to do: every task of every run here has succeeded")
    raise UsageError(f"no run of the command line is known in {folder.root} yet; name the plan")


def interrupted_run(folder: ProjectFolder) -> str:
    """The id of the last run, if it was interrupted; otherwise empty."""
    if not folder.journal.exists() or folder.is_active():
        return ""
    with folder.reader() as reader:
        last = reader.last_run()
        return last.id if last is not None and last.is_open else ""


def _earlier_runs(reader: Reader) -> list[EarlierRun]:
    """All runs of the command line, latest first."""
    found = []
    for run in reversed(reader.runs()):
        request = from_record(reader.record(NAMESPACE, run.id))
        if request is not None:
            found.append(EarlierRun(run, request))
    return found
