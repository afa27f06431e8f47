"""A store that threads and processes share: changes one at a time, looks together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import InvalidOption, SharedStore, WouldDeadlock
from interlock.system import reader_writer_lock as scheduler_files
from interlock.system.reader_writer_lock import LockMethod, by_sqlite, flocked

LOCKS = pytest.mark.parametrize("lock", [flocked, by_sqlite])

COUNTS = """
import sys
from pathlib import Path
from interlock import SharedStore
from interlock.system import reader_writer_lock as scheduler_files

def one_more(file):
    file.write_text(str(int(file.read_text()) + 1))

store = SharedStore(Path("count.txt"), "count.txt", lock=getattr(scheduler_files, sys.argv[1]))
for _ in range(100):
    store.write(one_more)
"""


@LOCKS
def test_processes_that_change_a_store_lose_nothing(lock: LockMethod) -> None:
    Path("count.txt").write_text("0", encoding="ascii")
    source = str(Path(interlock.__file__).parents[1])
    command = [sys.executable, "-c", COUNTS, str(lock.__name__)]
    processes = [
        subprocess.Popen(command, env={**os.environ, "PYTHONPATH": source}) for _ in range(3)
    ]
    store = SharedStore(Path("count.txt"), "count.txt", lock=lock)
    while any(each.poll() is None for each in processes):
        assert store.read(lambda file: file.read_text(encoding="ascii"))  # never half written
    assert [each.wait(60) for each in processes] == [0, 0, 0]
    assert Path("count.txt").read_text(encoding="ascii") == "300"


class Watched:
    """A store that notices who is in it at the same time."""

    def __init__(self) -> None:
        self.value = 0
        self.inside = 0

    def change(self) -> None:
        assert self.inside == 0
        self.inside += 1
        before = self.value
        threading.Event().wait(0.0001)  # let others come, if they can
        self.value = before + 1
        self.inside -= 1

    def look(self) -> int:
        assert self.inside == 0
        return self.value


@LOCKS
def test_threads_that_change_and_look_do_so_apart(lock: LockMethod) -> None:
    store = SharedStore(Watched(), lock=lock)

    def work(_: int) -> None:
        for _ in range(20):
            store.write(Watched.change)
            store.read(Watched.look)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    assert store.read(Watched.look) == 100


@LOCKS
def test_looks_may_come_together(lock: LockMethod) -> None:
    all_inside = threading.Barrier(4)
    store = SharedStore([1, 2, 3], lock=lock)

    def look(numbers: list[int]) -> int:
        all_inside.wait(60)  # broken, if one of them had to wait outside
        return sum(numbers)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: store.read(look), range(4))) == [6, 6, 6, 6]


def test_whoever_looks_after_a_change_was_wanted_waits_for_it() -> None:
    """Otherwise a writer would wait for ever behind readers who take turns."""
    has_turn = threading.Event()

    @contextmanager
    def watched(path: Path, alone: bool) -> Iterator[None]:
        with flocked(path, alone):
            if path.suffix == ".turn" and threading.current_thread().name == "writer":
                has_turn.set()
            yield

    store: SharedStore[list[str]] = SharedStore([], lock=watched)
    looking, let_go = threading.Event(), threading.Event()

    def first(_: list[str]) -> None:
        looking.set()
        assert let_go.wait(60)

    reader = threading.Thread(target=store.read, args=(first,))
    writer = threading.Thread(
        target=store.write, args=(lambda told: told.append("changed"),), name="writer"
    )
    reader.start()
    assert looking.wait(60)
    writer.start()
    assert has_turn.wait(60)  # it waits for the reader to leave
    seen: list[list[str]] = []
    second = threading.Thread(target=lambda: seen.append(store.read(list)))
    second.start()
    let_go.set()
    for each in (reader, writer, second):
        each.join(60)
    assert seen == [["changed"]]


def test_looks_and_changes_may_be_nested_unless_they_would_wait_for_themselves() -> None:
    store: SharedStore[dict[str, int]] = SharedStore({})

    def change(inner: dict[str, int]) -> int:
        store.write(lambda same: same.update(a=1))
        return store.read(lambda same: same["a"])

    assert store.write(change) == 1
    assert store.read(lambda _: store.read(len)) == 1
    with pytest.raises(WouldDeadlock, match="afterwards"):
        store.read(lambda _: store.write(len))
    assert store.write(len) == 1  # and all is free again


@LOCKS
def test_two_stores_of_one_path_are_inside_of_each_other(lock: LockMethod) -> None:
    Path("link").symlink_to("shared")
    one: SharedStore[list[int]] = SharedStore([], "shared", lock=lock)
    two: SharedStore[list[int]] = SharedStore([], "link", lock=lock)
    one.write(lambda _: two.write(lambda numbers: numbers.append(1)))
    assert one.write(lambda _: two.read(list)) == [1]
    with pytest.raises(WouldDeadlock, match="afterwards"):
        one.read(lambda _: two.write(len))
    assert two.write(len) == 1


@LOCKS
def test_who_wait_for_each_other_inside_of_two_stores_are_told(
    lock: LockMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_files, "NESTED_TIMEOUT", 0.1)
    stores = [SharedStore([name], name, lock=lock) for name in ("a", "b")]
    both_inside = threading.Barrier(2)

    def cross(mine: SharedStore[list[str]], other: SharedStore[list[str]]) -> int:
        def change(_: list[str]) -> int:
            both_inside.wait(60)
            return other.write(len)

        return mine.write(change)

    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(cross, *pair) for pair in (stores, stores[::-1])]
        errors = [each.exception(60) for each in calls]
    told = [str(each) for each in errors if isinstance(each, WouldDeadlock)]
    assert told  # the one that comes first; the other may get through then
    for each in told:
        assert re.search(r"waited 0\.1 s for the lock \S+\.[ab]\.\w+ inside of \S+[ab]: ", each)
    assert [each.write(len) for each in stores] == [1, 1]


def test_locks_have_names_that_are_nobody_elses() -> None:
    SharedStore([], "n").write(len)
    assert {each.name for each in Path().iterdir()} == {".n.turn", ".n.lock"}
    for name in (".n.lock", ".n.turn"):
        with pytest.raises(InvalidOption, match="lock file"):
            SharedStore([], name)


FORKS = """
import os, sys
from interlock import SharedStore
store = SharedStore([])
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
store.write(lambda numbers: numbers.append(1))
print(store.read(list))
"""


def test_a_forked_process_that_ends_leaves_the_locks_to_its_parent() -> None:
    Path("tmp").mkdir()
    source = str(Path(interlock.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "TMPDIR": os.path.abspath("tmp")}
    command = [sys.executable, "-c", FORKS]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("[1]\n", "")
    assert list(Path("tmp").iterdir()) == []  # and the parent takes them away


def test_what_is_async_is_neither_a_look_nor_a_change() -> None:
    store: SharedStore[list[int]] = SharedStore([])

    async def later(numbers: list[int]) -> None:
        numbers.append(1)

    async def each(numbers: list[int]) -> AsyncIterator[int]:
        for number in numbers:
            yield number

    for call in (store.read, store.write):
        for fn in (later, each):
            with pytest.raises(InvalidOption, match="cannot be async"):
                call(fn)
    assert store.read(list) == []


def test_what_a_change_raises_reaches_its_caller_and_frees_the_store() -> None:
    store: SharedStore[list[int]] = SharedStore([])
    with pytest.raises(IndexError):
        store.write(lambda numbers: numbers.pop())
    with pytest.raises(IndexError):
        store.read(lambda numbers: numbers[0])
    assert store.write(len) == 0


class Collection:
    """A stand-in for a collection of Chroma: its methods and their ways, kept in a dict.

    As there, `add` passes over ids that are known, `upsert` does not, `update` passes over ids that
    are not, and answers are dicts of parallel lists. Unlike there, it minds who comes when.
    """

    def __init__(self) -> None:
        self.name = "notes"
        self._records: dict[str, tuple[str | None, dict[str, Any] | None]] = {}
        self._writers = self._readers = 0
        self.most_readers = 0
        self._count = threading.Lock()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._count:
            assert self._writers == self._readers == 0, "somebody else is in the collection"
            self._writers += 1
        yield
        with self._count:
            self._writers -= 1

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._count:
            assert self._writers == 0, "somebody changes the collection"
            self._readers += 1
            self.most_readers = max(self.most_readers, self._readers)
        yield
        with self._count:
            self._readers -= 1

    def add(self, ids: Any, *, documents: Any = None, metadatas: Any = None) -> None:
        with self._writing():
            for id, document, metadata in _rows(ids, documents, metadatas):
                self._records.setdefault(id, (document, metadata))

    def upsert(self, ids: Any, *, documents: Any = None, metadatas: Any = None) -> None:
        with self._writing():
            for id, document, metadata in _rows(ids, documents, metadatas):
                self._records[id] = (document, metadata)

    def update(self, ids: Any, *, documents: Any = None, metadatas: Any = None) -> None:
        with self._writing():
            for id, document, metadata in _rows(ids, documents, metadatas):
                if id in self._records:
                    self._records[id] = (document, metadata)

    def delete(self, ids: Any = None, where: dict[str, Any] | None = None) -> None:
        with self._writing():
            for id in self._found(ids, where):
                del self._records[id]

    def modify(self, name: str | None = None, metadata: dict[str, Any] | None = None) -> None:
        with self._writing():
            self.name = name or self.name

    def get(self, ids: Any = None, where: dict[str, Any] | None = None) -> dict[str, Any]:
        with self._reading():
            found = self._found(ids, where)
            records = [self._records[id] for id in found]
            return {
                "ids": found,
                "documents": [document for document, _ in records],
                "metadatas": [metadata for _, metadata in records],
            }

    def query(self, *, query_texts: list[str], n_results: int = 10) -> dict[str, Any]:
        with self._reading():
            found = [
                [id for id, (document, _) in self._records.items() if text in (document or "")]
                for text in query_texts
            ]
            return {"ids": [ids[:n_results] for ids in found]}

    def peek(self, limit: int = 10) -> dict[str, Any]:
        with self._reading():
            return {"ids": list(self._records)[:limit]}

    def count(self) -> int:
        with self._reading():
            return len(self._records)

    def _found(self, ids: Any, where: dict[str, Any] | None) -> list[str]:
        return [
            id
            for id, (_, metadata) in self._records.items()
            if (ids is None or id in _listed(ids))
            and all((metadata or {}).get(name) == value for name, value in (where or {}).items())
        ]


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)


def _rows(ids: Any, documents: Any, metadatas: Any) -> Iterator[tuple[str, Any, Any]]:
    listed = _listed(ids)
    nothing = [None] * len(listed)
    yield from zip(listed, documents or nothing, metadatas or nothing, strict=True)


def test_a_collection_is_called_as_ever() -> None:
    notes = SharedStore.chroma(Collection())
    notes.add(["1", "2"], documents=["the spec", "the code"], metadatas=[{"by": "a"}, {"by": "b"}])
    notes.add(["1"], documents=["another spec"])
    notes.upsert(["3"], documents=["the tests"], metadatas=[{"by": "b"}])
    notes.update(["2"], documents=["better code"], metadatas=[{"by": "b"}])
    notes.delete(["3"])
    notes.modify(name="ours")
    assert notes.count() == 2
    assert notes.get(ids=["1"])["documents"] == ["the spec"]
    assert notes.get(where={"by": "b"})["documents"] == ["better code"]
    assert notes.query(query_texts=["spec"], n_results=1) == {"ids": [["1"]]}
    assert notes.peek(limit=1) == {"ids": ["1"]}


def test_several_steps_on_a_collection_can_be_one_change() -> None:
    notes = SharedStore.chroma(Collection())

    def add_next(_: int) -> None:
        notes.store.write(lambda inner: inner.add([str(inner.count())]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_next, range(20)))
    assert notes.peek(limit=20) == {"ids": [str(number) for number in range(20)]}


def test_agents_that_share_a_collection_change_it_one_at_a_time() -> None:
    collection = Collection()
    notes = SharedStore.chroma(collection)

    def work(agent: int) -> None:
        for number in range(20):
            notes.upsert([f"{agent}.{number}"], documents=["text"])
            assert notes.get(ids=[f"{agent}.{number}"])["documents"] == ["text"]

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    assert notes.count() == 100


def test_what_is_no_collection_is_refused() -> None:
    with pytest.raises(InvalidOption, match="no count, get, peek"):
        SharedStore.chroma(object())
