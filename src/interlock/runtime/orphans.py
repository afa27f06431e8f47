"""Attempts that outlived their Runtime: what they hold stays held in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from interlock.model.claim import Claim, Mode
from interlock.model.conflict import conflicts
from interlock.runtime.claim_paths import escaped


class Orphan:
    """An attempt that would not stop, and what it holds."""

    def __init__(
        self,
        name: str,
        claims: tuple[Claim, ...],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.name = name
        self.claims = claims
        self._loop = loop
        """The loop that it can only run on, if it is a coroutine."""
        self._gone = False
        self._watchers: list[Callable[[], None]] = []

    def watch(self, when_gone: Callable[[], None]) -> None:
        """Call this, on whatever thread, when the attempt is gone; at once if it is."""
        with _LOCK:
            if not self._gone:
                self._watchers.append(when_gone)
                return
        when_gone()

    def can_never_run_again(self) -> bool:
        """Whether it is a coroutine whose loop was closed."""
        return self._loop is not None and self._loop.is_closed()

    def release(self) -> None:
        """The attempt is gone. From any thread."""
        with _LOCK:
            self._gone = True
            watchers, self._watchers = self._watchers, []
            for kept in _KEPT.values():
                if self in kept:
                    kept.remove(self)
        for watcher in watchers:
            watcher()


_LOCK = threading.Lock()
_KEPT: dict[Path, list[Orphan]] = {}
"""By workspace. Of the process, because it is the process that such a thread lives in."""


def keep_orphan(workspace: Path, orphan: Orphan) -> None:
    """Keep what an attempt holds from every later Runtime on the same workspace."""
    with _LOCK:
        _KEPT.setdefault(workspace, []).append(orphan)


def orphans_in(workspace: Path) -> list[tuple[Orphan, tuple[Claim, ...]]]:
    """What is still held there by attempts of earlier runs, and which claims that means there."""
    with _LOCK:
        kept = [(folder, each) for folder, listed in _KEPT.items() for each in listed]
    found = []
    for folder, each in kept:
        if each.can_never_run_again():
            each.release()
        else:
            found.append((each, _seen_from(workspace, folder, each.claims)))
    return found


def _seen_from(here: Path, there: Path, claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """Claims of another workspace: names mean the same everywhere, paths where folders nest."""
    if here == there:
        return claims
    seen = [claim for claim in claims if not claim.is_path]
    for claim in claims:
        if not claim.is_path:
            continue
        if here in there.parents:
            below = escaped(there.relative_to(here).as_posix())
            seen.append(Claim(f"{below}/{claim.resource}", claim.mode))
        elif there in here.parents:
            inside = escaped(here.relative_to(there).as_posix())
            if conflicts(claim, Claim(f"{inside}/**", Mode.WRITE)):
                seen.append(Claim("**", claim.mode))  # more than it is, rather than less
    return tuple(seen)
