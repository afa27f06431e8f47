"""Locks for what threads and processes share: many may look, one may change, nobody starves.

Two files are locked. Whoever comes stands in the `turn` first; a writer keeps it until everybody
has left the `room`, so that those who come after it wait behind it. On a network the locks are
worth what its file system makes of them. The files stay: somebody might be about to lock them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from interlock.errors import InvalidOption, WouldDeadlock
from interlock.patterns.scheduler.file_locks import HERE, FileLock, best_lock

_ENDINGS = (".turn", ".lock")


class SharedLock:
    """Many readers or one writer, in the order of their coming. Usable from every thread.

    All locks of one (real) path are the same lock, whoever made them.
    """

    def __init__(self, path: Path, lock: FileLock | None = None) -> None:
        if path.name.startswith(".") and path.name.endswith(_ENDINGS):
            raise InvalidOption(f"{path.name!r} is what a lock file is called; take another name")
        self._turn, self._room = (path.with_name(f".{path.name}{each}") for each in _ENDINGS)
        self._lock = lock or best_lock()
        self._key = self._lock, path

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Nobody changes anything meanwhile."""
        if self._is_inside():
            yield
            return
        with ExitStack() as room:
            with self._lock(self._turn, True):
                room.enter_context(self._lock(self._room, False))
            with self._entered("reading"):
                yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Nobody else looks or changes anything meanwhile."""
        if self._is_inside() == "reading":
            raise WouldDeadlock(
                "a change inside of a look would wait for the look to end; change it afterwards"
            )
        if self._is_inside():
            yield
            return
        with self._lock(self._turn, True), self._lock(self._room, True), self._entered("writing"):
            yield

    def _is_inside(self) -> str:
        """What this thread is doing here already."""
        return HERE.inside.get(self._key, "")

    @contextmanager
    def _entered(self, doing: str) -> Iterator[None]:
        HERE.inside[self._key] = doing
        try:
            yield
        finally:
            del HERE.inside[self._key]
