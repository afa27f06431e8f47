from __future__ import annotations

import pytest

from interlock.errors import ClaimOutsideWorkspace, InvalidOwnership, InvalidPattern
from interlock.model.ownership import Ownership, SharedOwnership

RULES = Ownership({"architect": ["specs/", "docs/*.md"], "developer": "src/**"})


def test_a_path_belongs_to_whoever_the_rules_name() -> None:
    assert RULES.owner_of("specs/a/b.md") == "architect"
    assert RULES.owner_of("docs/a.md") == "architect"
    assert RULES.owner_of("./src//a.py") == "developer"


def test_an_owner_may_write_and_nobody_else() -> None:
    assert RULES.allows("developer", "src/a.py")
    assert not RULES.allows("architect", "src/a.py")
    assert not RULES.allows("stranger", "src/a.py")


def test_a_path_that_merely_ends_alike_is_not_owned() -> None:
    assert RULES.owner_of("other/src/a.py") is None
    assert RULES.owner_of("src2/a.py") is None


def test_an_unowned_path_is_refused_unless_the_rules_are_open() -> None:
    assert RULES.owner_of("README.md") is None
    assert not RULES.allows("developer", "README.md")
    assert Ownership({"developer": "src/"}, open=True).allows("developer", "README.md")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "src/../../x", ""])
def test_a_path_outside_the_workspace_is_refused_even_by_open_rules(path: str) -> None:
    assert not Ownership({"developer": "**"}, open=True).allows("developer", path)


def test_the_patterns_of_an_agent_are_told_as_they_were_written() -> None:
    assert RULES.owned_by("architect") == ("specs/", "docs/*.md")
    assert RULES.owned_by("developer") == ("src/**",)
    assert RULES.owned_by("stranger") == ()


def test_paths_that_two_agents_own_are_reported_with_a_witness() -> None:
    rules = Ownership({"a": ["src/*.py", "lib/"], "b": ["src/x*"], "c": "docs/"})
    (problem,) = rules.problems()
    assert problem == SharedOwnership(("a", "b"), ("src/*.py", "src/x*"), "src/x.py")
    assert str(problem) == "src/x.py belongs to a (src/*.py) and to b (src/x*)"


def test_of_overlapping_rules_the_first_decides() -> None:
    rules = Ownership({"a": "src/*.py", "b": "src/"})
    assert rules.owner_of("src/x.py") == "a"
    assert not rules.allows("b", "src/x.py")


def test_rules_that_do_not_overlap_have_no_problems() -> None:
    assert RULES.problems() == []
    assert Ownership({"a": ["src/", "src/**"]}).problems() == []


def test_gaps_are_reported() -> None:
    assert RULES.unowned(["src/a", "README.md", "docs/a/b.md"]) == ["README.md", "docs/a/b.md"]


def test_without_case_an_owner_is_found_by_either_spelling() -> None:
    assert Ownership({"a": "SRC/"}, fold_case=True).owner_of("src/x") == "a"
    assert Ownership({"a": "SRC/"}).owner_of("src/x") is None


def test_a_blank_owner_is_refused() -> None:
    with pytest.raises(InvalidOwnership, match="not blank"):
        Ownership({" ": "src/"})


def test_bad_patterns_are_refused() -> None:
    with pytest.raises(InvalidPattern):
        Ownership({"a": "src/["})
    with pytest.raises(ClaimOutsideWorkspace):
        Ownership({"a": "../x"})
