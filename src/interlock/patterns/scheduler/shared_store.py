"""`SharedStore`: serialised writes and concurrent reads around any store."""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from interlock.errors import InvalidOption
from interlock.system.reader_writer_lock import LockMethod, ReaderWriterLock

S = TypeVar("S")
T = TypeVar("T")


class SharedStore(Generic[S]):
    """A store that agents share: one writer at a time, or any number of readers.

        notes = SharedStore({})
        notes.write(lambda store: store.update(status="done"))
        notes.read(lambda store: store.get("status"))

    With a `path`, all processes that use the same path exclude each other; the locks are files
    beside it. Without one, the store is for the threads of this process. A function passed to
    `read` must not change the store: that cannot be detected.
    """

    def __init__(
        self,
        store: S,
        path: str | os.PathLike[str] | None = None,
        *,
        lock: LockMethod | None = None,
    ) -> None:
        self._store = store
        if path is None:
            folder = tempfile.mkdtemp(prefix="interlock-")
            weakref.finalize(self, _remove, folder, os.getpid())
            path = Path(folder) / "store"
        self._lock = ReaderWriterLock(Path(os.path.realpath(path)), lock)

    def read(self, function: Callable[[S], T]) -> T:
        """Call a function with the store, beside other readers; no write happens meanwhile."""
        with self._lock.reading():
            return _require_sync(function(self._store), "read")

    def write(self, function: Callable[[S], T]) -> T:
        """Call a function with the store, exclusively."""
        with self._lock.writing():
            return _require_sync(function(self._store), "write")

    @staticmethod
    def chroma(
        collection: Any,
        path: str | os.PathLike[str] | None = None,
        *,
        lock: LockMethod | None = None,
    ) -> ChromaStore:
        """Wrap a Chroma collection in an object with the same methods."""
        return ChromaStore(SharedStore(collection, path, lock=lock), collection)


def _require_sync(result: T, what: str) -> T:
    """Return a result; reject a coroutine, which would run after the lock was released."""
    if inspect.iscoroutine(result):
        result.close()
    elif not inspect.isasyncgen(result):
        return result
    raise InvalidOption(
        f"the function of a {what} cannot be async: it would run after the lock was released"
    )


def _remove(folder: str, owner: int) -> None:
    """Remove the lock files of a store, unless this is a forked child of their owner."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


_NAMES = ("count", "get", "peek", "query", "add", "delete", "modify", "update", "upsert")


def _reads(name: str) -> Callable[..., Any]:
    def method(self: ChromaStore, /, *args: Any, **kwargs: Any) -> Any:
        return self.store.read(lambda collection: getattr(collection, name)(*args, **kwargs))

    return method


def _writes(name: str) -> Callable[..., Any]:
    def method(self: ChromaStore, /, *args: Any, **kwargs: Any) -> Any:
        return self.store.write(lambda collection: getattr(collection, name)(*args, **kwargs))

    return method


class ChromaStore:
    """A Chroma collection that agents share, with the methods of the collection itself.

    Use `store` for several of them as one step: `store.write(lambda collection: ...)`.
    """

    def __init__(self, store: SharedStore[Any], collection: Any) -> None:
        missing = [each for each in _NAMES if not callable(getattr(collection, each, None))]
        if missing:
            raise InvalidOption(f"{collection!r} is not a collection: no {', '.join(missing)}")
        self.store = store

    count, get, peek, query = map(_reads, _NAMES[:4])
    add, delete, modify, update, upsert = map(_writes, _NAMES[4:])
