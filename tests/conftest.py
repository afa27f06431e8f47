"""Settings that every test shares."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from interlock.errors import UnreadableJournal
from interlock.journal.sqlite import SqliteJournal
from interlock.testing.replay import replay

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with Ctrl-C ignored, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A result must depend on the commit alone: examples are the same in every run, and no test fails
# for being slow. HYPOTHESIS_PROFILE=explore looks for new examples instead.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore",
    settings.get_profile("fixed"),
    derandomize=False,
    max_examples=2_000,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the test alone; it is the current folder, and so the default workspace."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test on an event loop of its own, on which it may leave nothing running."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    names = inspect.signature(test).parameters

    async def main() -> None:
        await test(**{name: pyfuncitem.funcargs[name] for name in names})
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"still running: {[task.get_name() for task in left]}"

    asyncio.run(main())
    return True


@pytest.fixture(autouse=True)
def _every_journal_replays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replay every journal that a test makes; a damaged one is skipped."""
    made: dict[Path, None] = {}
    make = SqliteJournal.__init__

    def remembering(journal: SqliteJournal, path: str | Path, **options: Any) -> None:
        make(journal, path, **options)
        made[journal.path] = None

    monkeypatch.setattr(SqliteJournal, "__init__", remembering)
    yield
    for path in made:
        if not path.exists():
            continue
        with contextlib.suppress(UnreadableJournal):
            differences = replay(path)
            assert not differences, "\n".join(map(str, differences))
