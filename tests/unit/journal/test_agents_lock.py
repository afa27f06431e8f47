"""The lock that says whether anything is left of the agents of a journal."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from interlock.execution.processes.supervised_attempt import inheritable_lock
from interlock.journal.agents_lock import AgentsLock


def test_it_is_free_where_nobody_was(tmp_path: Path) -> None:
    lock = AgentsLock(tmp_path / "j.db")
    assert lock.is_free()
    assert lock.is_free()
    assert lock.path.name == "j.db.agents.lock"


def test_it_is_not_free_as_long_as_somebody_has_inherited_it(tmp_path: Path) -> None:
    lock = AgentsLock(tmp_path / "j.db")
    with ExitStack() as launching:
        opened = [launching.enter_context(inheritable_lock(lock.path)) for _ in range(2)]
        supervisors = [os.dup(each) for each in opened if each is not None]
    assert len(supervisors) == 2
    for each in supervisors:
        assert not lock.is_free()
        os.close(each)
    assert lock.is_free()


def test_without_a_journal_there_is_nothing_to_lend() -> None:
    with inheritable_lock(None) as nothing:
        assert nothing is None
