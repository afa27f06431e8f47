"""A folder and a clean process for every test with real threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.sleeper import Sleeper


@pytest.fixture(autouse=True)
def _workspace(workspace: Path) -> None:
    """Every Runtime here has a workspace of its own."""


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=30)
        assert not thread.is_alive(), f"thread {thread.name!r} is still running"


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    """A blocking agent that ends when it is woken up, at the latest at the end of the test."""
    sleeper = Sleeper()
    yield sleeper
    sleeper.wake_up()
