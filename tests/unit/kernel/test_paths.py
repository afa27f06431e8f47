"""Claims on paths: exact, whatever the spelling; some may never be written."""

from __future__ import annotations

import pytest

from interlock.errors import ProtectedPath
from interlock.kernel import stimuli as s
from interlock.model.claim import write
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
