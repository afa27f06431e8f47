"""Which run to go on with: another one since must not make an interrupted run unreachable."""

from __future__ import annotations

from typing import NamedTuple

from interlock.errors import UsageError
from interlock.journal.reader import Reader, Run
from interlock.model.outcome import State
from interlock.service.project_folder import Place
from interlock.service.request import NAMESPACE, Request, from_record
from interlock.views.cli.finding import is_active


class Former(NamedTuple):
    """A run, and what it was asked to do."""

    run: Run
    request: Request


def run_of_plan(place: Place, plan: str) -> Former | None:
    """The last run of a plan; None if there was none."""
    if not place.journal.exists():
        return None
    with place.reader() as reader:
        for former in _formers(reader):
            if former.request.plan == plan:
                return former
    return None


def run_to_go_on_with(place: Place) -> Former:
    """The last run of which something is left to do."""
    with place.reader() as reader:
        formers = _formers(reader)
        for former in formers:
            counts = reader.status(former.run).counts
            if former.run.is_open or set(counts) - {State.SUCCEEDED}:
                return former
    if formers:
        raise UsageError("nothing is left to do: all that was run here has succeeded")
    raise UsageError(f"nothing of the command line has run in {place.root} yet; name the plan")


def unfinished(place: Place) -> str:
    """The last run, if it was cut off."""
    if not place.journal.exists() or is_active(place):
        return ""
    with place.reader() as reader:
        last = reader.last_run()
        return last.id if last is not None and last.is_open else ""


def _formers(reader: Reader) -> list[Former]:
    """All runs of the command line, the last one first."""
    found = []
    for run in reversed(reader.runs()):
        request = from_record(reader.record(NAMESPACE, run.id))
        if request is not None:
            found.append(Former(run, request))
    return found
