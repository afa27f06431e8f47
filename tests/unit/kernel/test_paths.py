"""Claims on paths: exact, whatever the spelling; some may never be written."""

from __future__ import annotations

from itertools import product

import pytest

from interlock.errors import ProtectedPath
from interlock.kernel import stimuli as s
from interlock.model.claim import write
from interlock.model.conflict import conflicts
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, started


def test_a_protected_path_may_be_read_but_never_written() -> None:
    run = Judged(protected=["secrets/", "**/*.pem"])
    assert started(run.submit(Task("a", reads="secrets/key"))) == ["a"]
    for pattern in ("secrets/key", "**", "certs/a.pem", "{docs,secrets}/x"):
        run.refuses(s.Submit((Task("b", writes=pattern),)), ProtectedPath, "protected")
    claim = s.Extend("a", run.tokens["a"], 1, (write("secrets/key"),))
    run.refuses(claim, ProtectedPath, "only read it")


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ("src/**", "src/a.ts"),
        ("src/**", "src/**/*.ts"),
        ("src/**", "src/"),
        ("src/", "./src//a.ts"),
        ("src/a.ts", "src"),
        ("src", "src/deep/er/a.ts"),
        ("src/*.py", "src/a.py"),
        ("src/{a,b}.py", "src/[bc].py"),
        ("**/*.md", "docs/x.md"),
        ("docs/", "**/*.md"),
        (".", "x"),
        ("x/../y", "y"),
    ],
)
def test_two_spellings_of_a_path_are_one_file(held: str, wanted: str) -> None:  # pitfall 6
    for first, second in ((held, wanted), (wanted, held)):
        run = Judged()
        run.submit(Task("holder", writes=first))
        assert started(run.submit(Task("wants", reads=second))) == []
        assert started(run.ends("holder")) == ["wants"]


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ("src/*.py", "src/a/b.py"),
        ("src/a.ts", "src/a.tsx"),
        ("src/ab", "src/a"),
        ("Makefile", "**/*.md"),
        ("docs/", "doc"),
        ("src/[!a].py", "src/a.py"),
    ],
)
def test_paths_that_no_file_could_share_run_side_by_side(held: str, wanted: str) -> None:
    run = Judged()
    both = (Task("a", writes=held), Task("b", writes=wanted))
    assert sorted(started(run.submit(*both))) == ["a", "b"]


def test_paths_that_differ_in_case_are_one_file_only_where_case_is_folded() -> None:
    for fold_case, beside in ((True, []), (False, ["b"])):
        run = Judged(fold_case=fold_case)
        run.submit(Task("a", writes="src/Read[M]e.md"))
        assert started(run.submit(Task("b", writes="SRC/README.MD"))) == beside


SPELLINGS = (
    "a.py", "a.py/", "a.py/b.md", "a.py/*.md", "*.py", "*.md", "**/*.md", "**/a.py", "**/a.py/*",
    "x/a.py", "x/a.py/b.md", "x/*/b.md", "x/**/b.*", "{a.py,x}/b.md", "x/", "x", "**", "*/*.p?",
)  # fmt: skip


@pytest.mark.parametrize("held", SPELLINGS)
def test_the_kernel_keeps_apart_just_what_conflicts_also_folders_called_like_files(
    held: str,
) -> None:
    for wanted, first in product(SPELLINGS, ("src/other.py", held)):
        run = Judged()
        # Somebody else has been there before, so that the places are known in another order.
        run.submit(Task("first", reads=first))
        run.ends("first")
        run.submit(Task("holder", writes=held))
        beside = not conflicts(write(held), write(wanted))
        assert started(run.submit(Task("wants", writes=wanted))) == ["wants"] * beside
        run.ends("holder")


def test_a_folder_that_is_claimed_late_waits_for_what_is_held_below_it() -> None:
    run = Judged()
    run.submit(Task("a", writes="src/x/a"), Task("b", reads="src/y/b"), Task("c", reads="src/y/b"))
    assert started(run.submit(Task("all", writes="src/"))) == []
    assert started(run.submit(Task("reads", reads="src/y/"), Task("late", reads="src/x/"))) == [
        "reads"
    ]
    for task_id in ("a", "b", "c", "reads"):
        assert "all" not in started(run.ends(task_id))
    assert started(run.ends("late")) == ["all"]


def test_a_start_in_a_folder_overtakes_those_who_waited_below_before_it_was_claimed() -> None:
    run = Judged(slots=2)
    run.submit(Task("holder", writes="docs/"))
    run.submit(Task("old", writes=["src/x/a", "docs/"]))
    for number in range(4):
        run.submit(Task(f"wide{number}", writes="src/"))
        run.ends(f"wide{number}")
    assert [each.task_id for each in run.kernel.reservations()] == ["old"]
    assert started(run.submit(Task("wide", writes="src/"))) == []
