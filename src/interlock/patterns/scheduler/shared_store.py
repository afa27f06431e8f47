"""`SharedStore`: one writer at a time, or any number of readers, around any store."""

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
from interlock.patterns.scheduler.file_locks import FileLock
from interlock.patterns.scheduler.shared_lock import SharedLock

S = TypeVar("S")
T = TypeVar("T")


class SharedStore(Generic[S]):
    """A store that agents share: changes come one at a time, looks may come together.

        notes = SharedStore({})
        notes.write(lambda store: store.update(status="done"))
        notes.read(lambda store: store.get("status"))

    With a `path`, for stores that several processes have open, all that use that path exclude each
    other; the locks are files beside it. Without one it is for the threads of this process. A look
    that changes something is not seen as such.
    """

    def __init__(
        self,
        store: S,
        path: str | os.PathLike[str] | None = None,
        *,
        lock: FileLock | None = None,
    ) -> None:
        self._store = store
        if path is None:
            folder = tempfile.mkdtemp(prefix="interlock-")
            weakref.finalize(self, _remove, folder, os.getpid())
            path = Path(folder) / "store"
        self._lock = SharedLock(Path(os.path.realpath(path)), lock)

    def read(self, look: Callable[[S], T]) -> T:
        """Look at the store, beside others who do; nobody changes it meanwhile."""
        with self._lock.reading():
            return _done(look(self._store), "look")

    def write(self, change: Callable[[S], T]) -> T:
        """Change the store, alone."""
        with self._lock.writing():
            return _done(change(self._store), "change")

    @staticmethod
    def chroma(
        collection: Any,
        path: str | os.PathLike[str] | None = None,
        *,
        lock: FileLock | None = None,
    ) -> ChromaStore:
        """The same around a collection of Chroma, with the methods that it has."""
        return ChromaStore(SharedStore(collection, path, lock=lock), collection)


def _done(result: T, what: str) -> T:
    """What a function returned; an async one has done nothing yet, and would do it unlocked."""
    if inspect.iscoroutine(result):
        result.close()
    elif not inspect.isasyncgen(result):
        return result
    raise InvalidOption(f"a {what} cannot be async: the lock would be gone before it happens")


def _remove(folder: str, made_by: int) -> None:
    """Remove the locks of a store; a process that was forked leaves those of its parent alone."""
    if os.getpid() == made_by:
        shutil.rmtree(folder, ignore_errors=True)


_LOOKS = ("count", "get", "peek", "query")
_CHANGES = ("add", "delete", "modify", "update", "upsert")


class ChromaStore:
    """A collection of Chroma that agents share; called as the collection itself.

    `count`, `get`, `peek` and `query` look, `add`, `delete`, `modify`, `update` and `upsert`
    change. `store` is for more than one of them in a row: `store.write(lambda c: ...)`.
    """

    def __init__(self, store: SharedStore[Any], collection: Any) -> None:
        missing = [each for each in (*_LOOKS, *_CHANGES) if not _has(collection, each)]
        if missing:
            raise InvalidOption(f"{collection!r} is no collection: no {', '.join(missing)}")
        self.store = store

    def count(self, *args: Any, **kwargs: Any) -> Any:
        return self.store.read(lambda collection: collection.count(*args, **kwargs))

    def get(self, *args: Any, **kwargs: Any) -> Any:
        return self.store.read(lambda collection: collection.get(*args, **kwargs))

    def peek(self, *args: Any, **kwargs: Any) -> Any:
        return self.store.read(lambda collection: collection.peek(*args, **kwargs))

    def query(self, *args: Any, **kwargs: Any) -> Any:
        return self.store.read(lambda collection: collection.query(*args, **kwargs))

    def add(self, *args: Any, **kwargs: Any) -> Any:
        return self.store.write(lambda collection: collection.add(*args, **kwargs))

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        return self.store.write(lambda collection: collection.delete(*args, **kwargs))

    def modify(self, *args: Any, **kwargs: Any) -> Any:
        return self.store.write(lambda collection: collection.modify(*args, **kwargs))

    def update(self, *args: Any, **kwargs: Any) -> Any:
        return self.store.write(lambda collection: collection.update(*args, **kwargs))

    def upsert(self, *args: Any, **kwargs: Any) -> Any:
        return self.store.write(lambda collection: collection.upsert(*args, **kwargs))


def _has(collection: Any, method: str) -> bool:
    return callable(getattr(collection, method, None))
