"""The book of a scheduler: what is known of each job beside what the program says, kept on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, Protocol

from interlock.patterns.cron.owed import Missed

Switched = Literal["enabled", "disabled", "removed"]
_RECENT = 20
"""So many firings and pauses of each job are remembered."""


class Records(Protocol):
    """Where the book is kept: `rt.records(...)`."""

    def items(self) -> Iterator[tuple[str, Any]]: ...

    async def put(self, key: str, value: Any) -> None: ...


@dataclass
class Page:
    """What is known of one job."""

    switched: Switched | None = None
    """What `enable`, `disable` or `remove` said last. It wins over what `add` says."""
    plan: str = ""
    """The schedule and its zone. Under another one, nothing of the past is owed."""
    anchor: float = 0.0
    """From when intervals are counted."""
    since: float | None = None
    """Up to this moment everything that was due is fired, merged or missed."""
    runs: int = 0
    """Scheduled firings that have ended, however they did."""
    merged: int = 0
    missed: int = 0
    last_scheduled: dict[str, Any] | None = None
    last_manual: dict[str, Any] | None = None
    set_back: dict[str, str] | None = None
    """From which moment to which the clock was set back when the job last had to begin anew."""
    firings: list[dict[str, Any]] = field(default_factory=list)
    misses: list[dict[str, Any]] = field(default_factory=list)

    def miss(self, missed: Missed) -> None:
        """Times have passed for which nothing will run."""
        self.missed += missed.times
        entry = {
            "count": missed.times,
            "at_least": missed.at_least,
            "first": moment(missed.first),
            "last": moment(missed.last),
        }
        self.misses.append(entry)
        del self.misses[:-_RECENT]

    def begin_anew(self, since: float, now: float) -> dict[str, str]:
        """All up to `since` was done, and now it is far from being as late as that."""
        self.set_back = {"from": moment(int(since)), "to": moment(int(now))}
        self.since = now
        return self.set_back

    def may_come_again(self, due: float) -> bool:
        """Whether a time that was fired comes again on a clock that was set back by a lot."""
        until = None if self.set_back is None else at(self.set_back["from"])
        return until is not None and due <= until

    def ended(self, record: dict[str, Any]) -> None:
        """A firing is over; what was run by hand does not stand in the place of the others."""
        if record["trigger"] == "schedule":
            self.last_scheduled = record
            self.runs += 1
        else:
            self.last_manual = record
        self.firings.append(record)
        del self.firings[:-_RECENT]


class Book:
    """A page for each job, and which of them are to be written down."""

    def __init__(self) -> None:
        self._pages: dict[str, Page] = {}
        self._dirty: dict[str, None] = {}
        self._writing = asyncio.Lock()

    def page(self, job_id: str) -> Page:
        """The page of a job, empty if it is new."""
        page = self._pages.get(job_id)
        if page is None:
            page = self._pages[job_id] = Page()
        return page

    def changed(self, job_id: str) -> None:
        """A page is to be written down again."""
        self._dirty[job_id] = None

    def switch(self, job_id: str, to: Switched | None) -> None:
        """Something was decided about a job, for good."""
        self.page(job_id).switched = to
        self.changed(job_id)

    def load(self, records: Records) -> None:
        """Take over what is written; what was decided since and is not written yet stands."""
        names = {each.name for each in fields(Page)}
        for job_id, kept in records.items():
            # A later version may have written more than we know.
            page = Page(**{name: kept[name] for name in names & set(kept)})
            if job_id in self._dirty:
                page.switched = self.page(job_id).switched
            self._pages[job_id] = page

    async def write(self, records: Records, saved: Callable[[], Awaitable[None]]) -> None:
        """Write down what has changed; it is there for good when this returns.

        Never before the run itself is `saved`: a crash between the two would lose a firing that the
        book says has been fired. The other way round it is found in the run.
        """
        async with self._writing:
            while self._dirty:
                pages = {job_id: asdict(self.page(job_id)) for job_id in self._dirty}
                self._dirty.clear()
                try:
                    await saved()
                    for job_id, page in pages.items():
                        await records.put(job_id, page)
                except BaseException:
                    self._dirty.update(dict.fromkeys(pages))
                    raise


@lru_cache(maxsize=64)  # many jobs are due at the same moments
def moment(at: float) -> str:
    """A moment as text, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC).isoformat()[:-6]}Z"


def at(text: str) -> float | None:
    """The moment that a text names; None for other texts."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
