"""Settings that every test shares."""

from __future__ import annotations

import asyncio
import inspect
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A judgement must depend on the commit alone: examples are the same in every run, and nothing
# fails for having been slow. HYPOTHESIS_PROFILE=explore looks for new examples instead.
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
    """The current folder, and so the workspace of every Runtime, belongs to the test alone."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An async test runs on an event loop of its own, and leaves nothing running on it."""
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
