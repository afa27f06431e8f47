from __future__ import annotations

import pytest

from interlock.errors import ClaimOutsideWorkspace, InvalidPattern
from interlock.model.claim import Claim, read, uses, write
from interlock.model.conflict import Conflict, conflicts


@pytest.mark.parametrize("other", ["src/a.ts", "src/**/*.ts", "src/", "./src//a.ts"])
def test_a_subtree_conflicts_with_whatever_lies_in_it(other: str) -> None:
    assert conflicts(write("src/**"), write(other))
    assert conflicts(write(other), write("src/**"))


def test_files_of_a_folder_do_not_conflict_with_files_of_its_folders() -> None:
    assert conflicts(write("src/*.py"), write("src/a/b.py")) is None


def test_a_file_does_not_conflict_with_files_of_another_kind_anywhere() -> None:
    assert conflicts(write("src/a.py"), write("**/*.md")) is None
    assert conflicts(write("**/README.md"), write("**/*.py")) is None


def test_without_case_two_spellings_of_a_path_conflict() -> None:
    assert conflicts(write("SRC/*.py"), write("src/a.PY")) is None
    found = conflicts(write("SRC/*.py"), write("src/a.PY"), fold_case=True)
    assert found is not None
    assert found.witness == "src/a.py"


def test_two_reads_never_conflict() -> None:
    assert conflicts(read("src/**"), read("src/**")) is None


def test_a_read_conflicts_with_a_write_of_the_same_path() -> None:
    found = conflicts(read("docs/"), write("docs/*.md"))
    assert found == Conflict(read("docs/"), write("docs/*.md"), "docs/x.md")
    assert str(found) == "read docs/ conflicts with write docs/*.md: both match docs/x.md"


def test_a_claim_outside_the_workspace_is_refused() -> None:
    with pytest.raises(ClaimOutsideWorkspace):
        conflicts(write("../x"), write("x"))


def test_a_malformed_pattern_is_refused() -> None:
    with pytest.raises(InvalidPattern, match="position 4"):
        conflicts(write("src/[a"), write("x"))


def test_users_of_a_name_share_it() -> None:
    assert conflicts(uses("db"), uses("db")) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (uses("db", exclusive=True), uses("db")),
        (uses("db"), uses("db", exclusive=True)),
        (uses("db", exclusive=True), uses("db", exclusive=True)),
    ],
)
def test_whoever_wants_a_name_alone_conflicts_with_all_its_users(a: Claim, b: Claim) -> None:
    assert conflicts(a, b) == Conflict(a, b, "db")


def test_different_names_never_conflict() -> None:
    assert conflicts(uses("db", exclusive=True), uses("gpu", exclusive=True)) is None


def test_amounts_conflict_only_when_they_exceed_the_capacity_together() -> None:
    capacity = {"memory_mb": 3000}
    assert conflicts(uses("memory_mb", 1000), uses("memory_mb", 2000), capacity) is None
    assert conflicts(uses("memory_mb", 1001), uses("memory_mb", 2000), capacity)
    assert conflicts(uses("memory_mb", 1001), uses("memory_mb", 2000)) is None


def test_a_capacity_of_nothing_is_a_capacity() -> None:
    assert conflicts(uses("gpu"), uses("gpu"), {"gpu": 0})


def test_a_path_never_conflicts_with_a_name() -> None:
    assert conflicts(write("db"), uses("db", exclusive=True)) is None
    assert conflicts(uses("db", exclusive=True), write("**")) is None
