"""The lock that says whether anything is left of the agents of a journal."""

from __future__ import annotations

import os
from pathlib import Path

from interlock.journal.agents_lock import AgentsLock


def test_it_is_free_where_nobody_was(tmp_path: Path) -> None:
    lock = AgentsLock(tmp_path / "j.db")
    assert lock.descriptor is None
    assert lock.is_free()
    assert lock.is_free()
    lock.release()
    lock.release()
    assert lock.path.name == "j.db.agents.lock"


def test_it_is_not_free_as_long_as_somebody_has_inherited_it(tmp_path: Path) -> None:
    first, second = AgentsLock(tmp_path / "j.db"), AgentsLock(tmp_path / "j.db")
    assert first.is_free()
    assert first.descriptor is not None
    supervisors = [os.dup(first.descriptor) for _ in range(2)]
    first.release()
    for each in supervisors:
        assert not second.is_free()
        os.close(each)
    assert second.is_free()
    second.release()


def test_a_fork_of_ours_has_no_part_in_it(tmp_path: Path) -> None:
    first, second = AgentsLock(tmp_path / "j.db"), AgentsLock(tmp_path / "j.db")
    assert first.is_free()
    read, write = os.pipe()
    ready, say = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.write(say, b".")
        os.read(read, 1)
        os._exit(0)
    os.read(ready, 1)
    first.release()
    assert second.is_free()
    second.release()
    os.close(write)
    os.waitpid(child, 0)
    for each in (read, ready, say):
        os.close(each)
