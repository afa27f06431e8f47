"""Attempts that have outlived their Runtime: what they hold stays held in this process.

A thread that ignores its cancellation goes on when its Runtime has been left. A later Runtime of
the same process must not grant its claims to others, so orphans are kept here until they are gone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from interlock.model.claim import Claim, Mode
from interlock.model.conflict import conflicts
from interlock.runtime.claim_paths import escaped


class Orphan:
    """An attempt that has not stopped, and the claims that it holds."""

    def __init__(
        self,
        name: str,
        claims: tuple[Claim, ...],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.name = name
        self.claims = claims
        self._loop = loop
        """The only loop that can run it, if it is a coroutine."""
        self._gone = False
        self._watchers: list[Callable[[], None]] = []

    def watch(self, when_gone: Callable[[], None]) -> None:
        """Call this, on any thread, when the attempt is gone; at once if it already is."""
        with _LOCK:
            if not self._gone:
                self._watchers.append(when_gone)
                return
        when_gone()

    def can_never_run_again(self) -> bool:
        """Whether it is a coroutine whose loop has been closed."""
        return self._loop is not None and self._loop.is_closed()

    def release(self) -> None:
        """Release its claims: the attempt is gone. From any thread."""
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
"""By workspace. Global, because a thread that cannot be ended belongs to the process."""


def keep_orphan(workspace: Path, orphan: Orphan) -> None:
    """Keep the claims of an attempt from every later Runtime on the same workspace."""
    with _LOCK:
        _KEPT.setdefault(workspace, []).append(orphan)


def orphans_in(workspace: Path) -> list[tuple[Orphan, tuple[Claim, ...]]]:
    """Return the orphans of earlier runs that matter for a workspace, and their claims there."""
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
    """Translate claims between workspaces: names apply everywhere, paths where folders nest."""
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
                seen.append(Claim("**", claim.mode))  # too much rather than too little
    return tuple(seen)
