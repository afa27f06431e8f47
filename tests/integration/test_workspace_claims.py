"""What claims mean on a real disk: links, folders, odd names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    Claim,
    ClaimOutsideWorkspace,
    InvalidOption,
    InvalidPattern,
    ProtectedPath,
    Runtime,
    State,
    TaskContext,
)


def nothing() -> None:
    """An agent that does nothing."""


async def granted(pattern: str | Path, **options: Any) -> str:
    """The pattern of a claim as it was granted."""
    async with Runtime(**options) as rt:
        handle = rt.submit(nothing, writes=pattern)
        await handle
    [claim] = handle.task.claims
    return claim.resource


async def exclude_each_other(one: str, other: str, **options: Any) -> bool:
    """Whether the second of two claims waits while the first one is held."""
    async with Runtime(**options) as rt:

        async def holds() -> bool:
            second = rt.submit(nothing, writes=other)
            return second.state is State.WAITING

        return bool(await rt.submit(holds, writes=one).result())


async def test_a_link_is_what_it_leads_to(workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "link").symlink_to("real")
    (workspace / "chain").symlink_to(workspace / "link")
    assert await granted("link/a.py") == "real/a.py"
    assert await granted("chain/*.py") == "real/*.py"
    assert await granted("link") == "real/"
    assert await exclude_each_other("chain/a.py", "real/")
    assert not await exclude_each_other("chain/a.py", "real/b.py")


async def test_a_link_to_a_file_is_that_file(workspace: Path) -> None:
    (workspace / "a.txt").touch()
    (workspace / "b.txt").symlink_to("a.txt")
    assert await exclude_each_other("b.txt", "a.txt")


async def test_two_steps_up_from_a_link_are_taken_where_it_leads(workspace: Path) -> None:
    (workspace / "deep" / "down").mkdir(parents=True)
    (workspace / "link").symlink_to("deep/down")
    assert await granted("link/../a.py") == "deep/a.py"


async def test_a_link_that_leaves_the_workspace_is_refused(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (workspace / "out").symlink_to(tmp_path_factory.mktemp("outside"))
    for pattern in ("out", "out/", "out/a.py", "out/**"):
        with pytest.raises(ClaimOutsideWorkspace, match="'nothing'"):
            await granted(pattern)


async def test_a_link_that_leaves_and_comes_back_is_inside(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "round").symlink_to(workspace.parent / workspace.name / "src")
    assert await granted("round/a.py") == "src/a.py"


async def test_a_link_that_leads_to_itself_is_a_name_like_any_other(workspace: Path) -> None:
    (workspace / "loop").symlink_to("loop")
    assert await granted("loop") == "loop"


async def test_a_name_is_no_pattern_because_a_link_leads_there(workspace: Path) -> None:
    """`a[1]` as a pattern would be `a1`: the claim would protect something else."""
    (workspace / "a[1]").mkdir()
    (workspace / "link").symlink_to("a[1]")
    assert await granted("link/x*.py") == "a\\[1]/x*.py"
    assert await exclude_each_other("link/x.py", "a\\[1]/")
    assert not await exclude_each_other("link/x.py", "a1/x.py")


async def test_an_escaped_name_is_looked_up_as_it_is_called(workspace: Path) -> None:
    (workspace / "{x}").mkdir()
    assert await granted("\\{x\\}") == "\\{x\\}/"
    assert await exclude_each_other("\\{x\\}", "\\{x\\}/a.py")


async def test_a_plain_name_that_is_a_folder_means_all_that_is_in_it(workspace: Path) -> None:
    (workspace / "src").mkdir()
    assert await granted("src") == "src/"
    assert await granted("nothing-there") == "nothing-there"
    assert await exclude_each_other("src", "src/deep/a.md")
    assert await exclude_each_other("src", "**/*.md")
    assert not await exclude_each_other("nothing-there", "**/*.md")


@pytest.mark.parametrize("spelling", [".", "./", "", "src/.."])
async def test_the_workspace_itself_means_everything(spelling: str, workspace: Path) -> None:
    whole = spelling or str(workspace)
    assert await granted(whole) == "**"


async def test_absolute_paths_inside_are_relative_to_the_workspace(workspace: Path) -> None:
    assert await granted(str(workspace / "src" / "a.py")) == "src/a.py"
    assert await granted(workspace / "src" / "a.py") == "src/a.py"
    assert await granted(f"{workspace}/src/**") == "src/**"
    assert await exclude_each_other(f"{workspace}/a.py", "./x/../a.py")


async def test_an_absolute_path_through_a_link_to_the_workspace_is_inside(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    door = tmp_path_factory.mktemp("elsewhere") / "door"
    door.symlink_to(workspace)
    assert await granted(str(door / "a.py")) == "a.py"
    assert await granted("a.py", workspace=door) == "a.py"


@pytest.mark.parametrize("pattern", ["/", "/etc/passwd", "/*.py", "/**", "..", "../a", "a/../../b"])
async def test_paths_that_leave_the_workspace_are_refused(pattern: str) -> None:
    with pytest.raises(ClaimOutsideWorkspace, match="outside the workspace"):
        await granted(pattern)


async def test_a_neighbour_whose_name_begins_the_same_is_outside(workspace: Path) -> None:
    with pytest.raises(ClaimOutsideWorkspace):
        await granted(f"{workspace}-2/a.py")


async def test_steps_up_after_a_wildcard_are_refused() -> None:
    with pytest.raises(InvalidPattern):
        await granted("src/*/../../../etc")


async def test_claims_in_mid_flight_are_looked_up_the_same_way(workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "link").symlink_to("real")

    async def extends(ctx: TaskContext) -> tuple[Claim, ...]:
        with pytest.raises(ClaimOutsideWorkspace):
            await ctx.extend(writes="../out")
        await ctx.extend(writes="link")
        return ctx.extra

    async with Runtime() as rt:
        [claim] = await rt.submit(extends).result()
    assert claim.resource == "real/"


async def test_protected_paths_are_protected_under_every_name(workspace: Path) -> None:
    (workspace / "secrets").mkdir()
    (workspace / "link").symlink_to("secrets")
    async with Runtime(protected=["secrets/"]) as rt:
        for pattern in ("secrets", "link/key", "./x/../secrets/key", "**"):
            with pytest.raises(ProtectedPath):
                rt.submit(nothing, writes=pattern)
        assert (await rt.submit(nothing, reads="link/key")).succeeded


async def test_case_counts_where_the_file_system_says_so() -> None:
    assert not await exclude_each_other("SRC/A.py", "src/a.py")


async def test_case_does_not_count_where_the_file_system_says_so(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "samefile", lambda one, other: True)
    assert await exclude_each_other("SRC/A.py", "src/a.py")
    assert await exclude_each_other(str(workspace).upper() + "/a.py", "A.PY")


async def test_names_that_are_no_utf_8_can_be_claimed(workspace: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    try:
        (workspace / name).mkdir()
    except OSError:
        pytest.skip("this file system takes no such names")
    (workspace / "link").symlink_to(name)
    assert await granted("link") == f"{name}/"
    assert await exclude_each_other("link/a.py", f"{name}/*.py")


async def test_both_unicode_forms_of_a_name_are_one_name() -> None:
    assert await exclude_each_other("caf\u00e9.txt", "cafe\u0301.txt")


@pytest.mark.parametrize("folder", ["missing", "file.txt"])
def test_a_workspace_that_is_no_folder_is_refused(folder: str, workspace: Path) -> None:
    (workspace / "file.txt").touch()
    with pytest.raises(InvalidOption, match="is no folder"):
        Runtime(workspace=folder)


async def test_a_runtime_writes_nothing_into_its_workspace(workspace: Path) -> None:
    async with Runtime() as rt:
        await rt.submit(nothing, writes="src/")
    assert list(workspace.iterdir()) == []
