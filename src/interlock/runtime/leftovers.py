"""Attempts that outlived their Runtime: what they hold stays held in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from interlock.model.claim import Claim


class Leftover:
    """An attempt that would not stop, and what it holds."""

    def __init__(self, name: str, claims: tuple[Claim, ...]) -> None:
        self.name = name
        self.claims = claims
        self._gone = False
        self._watchers: list[Callable[[], None]] = []

    def watch(self, when_gone: Callable[[], None]) -> None:
        """Call this, on whatever thread, when the attempt is gone; at once if it is."""
        with _LOCK:
            if not self._gone:
                self._watchers.append(when_gone)
                return
        when_gone()

    def vacate(self) -> None:
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
_KEPT: dict[Path, list[Leftover]] = {}
"""By workspace. Of the process, because it is the process that such a thread lives in."""


def leave(workspace: Path, leftover: Leftover) -> None:
    """Keep what an attempt holds from every later Runtime on the same workspace."""
    with _LOCK:
        _KEPT.setdefault(workspace, []).append(leftover)


def left_in(workspace: Path) -> tuple[Leftover, ...]:
    """What is still held there by attempts of earlier runs."""
    with _LOCK:
        return tuple(_KEPT.get(workspace, ()))
