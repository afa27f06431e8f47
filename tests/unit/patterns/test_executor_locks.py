"""Locks of resources, and which resources overlap."""

from __future__ import annotations

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import (
    PARALLEL_LOCK_CONFLICT,
    InMemoryResourceLock,
    InvalidOption,
    ResourceLock,
    conflicts,
    write,
)
from interlock.model.patterns.overlap_index import OverlapIndex


async def test_a_resource_has_one_holder_who_may_take_it_again() -> None:
    lock = InMemoryResourceLock()
    assert await lock.acquire("a.py", "one")
    assert await lock.acquire("a.py", "one")
    assert not await lock.acquire("a.py", "two")
    assert lock.is_locked("a.py")
    assert lock.holder_of("a.py") == "one"
    await lock.release("a.py", "one")
    assert not lock.is_locked("a.py")
    assert lock.holder_of("a.py") is None
    assert await lock.acquire("a.py", "two")


async def test_a_release_by_somebody_else_is_a_warning_and_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lock = InMemoryResourceLock()
    await lock.acquire("a.py", "one")
    await lock.release("a.py", "two")
    assert lock.holder_of("a.py") == "one"
    warning = caplog.records[-1]
    assert (warning.levelno, warning.getMessage()) == (logging.WARNING, PARALLEL_LOCK_CONFLICT)
    await lock.release("b.py", "two")  # nobody's: nothing to warn of
    assert caplog.records[-1] is warning


async def test_all_that_a_holder_has_is_released_together() -> None:
    lock = InMemoryResourceLock()
    for resource, holder in (("a", "one"), ("b", "one"), ("c", "two")):
        await lock.acquire(resource, holder)
    assert await lock.release_all("one") == 2
    assert await lock.release_all("one") == 0
    assert [lock.holder_of(each) for each in "abc"] == [None, None, "two"]


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ("src/", "src/a.py"),
        ("src/a.py", "src/"),
        ("src/**", "./src//deep/a.py"),
        ("**/*.md", "docs/a.md"),
        ("docs/{a,b}.md", "docs/b.md"),
        ("src/{*.py,*.md}", "src/a.py"),
        ("src", "src/a.py"),
        ("/somewhere/else", "/somewhere/else"),
        ("[", "["),
    ],
)
async def test_what_overlaps_excludes_each_other(held: str, wanted: str) -> None:
    lock = InMemoryResourceLock()
    await lock.acquire(held, "one")
    assert not await lock.acquire(wanted, "two")
    assert lock.holder_of(wanted) == "one"
    assert await lock.acquire(wanted, "one")
    await lock.release_all("one")
    assert await lock.acquire(wanted, "two")


async def test_case_can_be_ignored() -> None:
    lock = InMemoryResourceLock(fold_case=True)
    await lock.acquire("README.md", "one")
    assert lock.is_locked("readme.md")
    assert not InMemoryResourceLock().is_locked("readme.md")


async def test_blank_names_are_refused() -> None:
    lock = InMemoryResourceLock()
    for resource, holder in ((" ", "one"), ("a", "")):
        with pytest.raises(InvalidOption, match="not blank"):
            await lock.acquire(resource, holder)


async def test_a_lock_can_be_waited_for() -> None:
    lock = InMemoryResourceLock()
    await lock.acquire("src/", "one")
    waiting = asyncio.ensure_future(lock.wait_until_free("src/a.py"))
    await asyncio.sleep(0)
    await lock.acquire("b", "two")
    await lock.release("b", "two")
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    await lock.release("src/", "one")
    await waiting


def test_it_is_a_resource_lock() -> None:
    assert isinstance(InMemoryResourceLock(), ResourceLock)


_name = st.sampled_from(["a", "b", "*", "**", "?", "{a,b}", "a*", "{a/b,*}", "[ab]"])
_pattern = st.builds(
    lambda names, slash: "/".join(names) + ("/" if slash else ""),
    st.lists(_name, min_size=1, max_size=4),
    st.booleans(),
)


@given(st.lists(_pattern, max_size=8, unique=True), _pattern, st.data())
def test_overlaps_are_found_as_by_comparing_each_with_each(
    held: list[str], wanted: str, data: st.DataObject
) -> None:
    resources = OverlapIndex()
    for each in held:
        resources.add(each, "one")
    gone = data.draw(st.lists(st.sampled_from(held), unique=True)) if held else []
    for each in gone:
        assert resources.remove(each, "one")
    left = [each for each in held if each not in gone]
    expected = any(conflicts(write(each), write(wanted)) for each in left)
    assert (resources.against(wanted, "two") is not None) == expected
    assert resources.against(wanted, "one") is None
    assert len(resources) == len(left)
    assert resources.of("one") == left
