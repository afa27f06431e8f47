"""Which agent type owns which paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import (
    AgentTask,
    FileOwnership,
    InvalidOwnership,
    TaskQueue,
    delegate_tasks_parallel,
)

RULES = {"architect": ["docs/", "specs/*.md"], "developer": "src/**"}


@pytest.fixture
def ownership(tmp_path: Path) -> FileOwnership:
    return FileOwnership(RULES, workspace=tmp_path)


def test_owned_paths_are_told_under_both_names(ownership: FileOwnership) -> None:
    assert ownership.get_owned_paths("architect") == ["docs/", "specs/*.md"]
    assert ownership.get_allowed_paths("developer") == ["src/**"]
    assert ownership.get_owned_paths("stranger") == []


def test_a_path_has_one_owner_however_it_is_spelled(
    ownership: FileOwnership, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("src")
    for path in ("src/a.py", "./src//x/../a.py", "link/a.py", tmp_path / "src" / "a.py"):
        assert ownership.get_owner(path) == "developer"
        assert ownership.check_ownership("developer", path)
        assert not ownership.check_ownership("architect", path)


def test_an_unowned_path_is_refused_unless_the_rules_are_open(
    ownership: FileOwnership, tmp_path: Path
) -> None:
    assert ownership.get_owner("README.md") is None
    assert not ownership.check_ownership("architect", "README.md")
    assert FileOwnership(RULES, open=True, workspace=tmp_path).check_ownership("x", "README.md")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "src/../../x"])
def test_a_path_outside_belongs_to_nobody_even_with_open_rules(path: str, tmp_path: Path) -> None:
    rules = FileOwnership({"developer": "**"}, open=True, workspace=tmp_path)
    assert rules.get_owner(path) is None
    assert not rules.check_ownership("developer", path)


def test_overlaps_are_reported(tmp_path: Path) -> None:
    rules = FileOwnership({"a": "src/*.py", "b": "src/"}, workspace=tmp_path)
    [problem] = rules.validate_rules()
    assert str(problem) == "src/x.py belongs to a (src/*.py) and to b (src/)"


def test_gaps_are_reported_as_files_or_as_whole_folders(
    ownership: FileOwnership, tmp_path: Path
) -> None:
    for path in ("docs/deep/a.md", "specs/a.md", "specs/old/b.md", "src/x/y.py", "etc/a/b", "top"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("")
    assert [str(each) for each in ownership.validate_rules()] == [
        "etc/ has no owner",
        "specs/old/ has no owner",
        "top has no owner",
    ]
    assert FileOwnership(RULES, open=True, workspace=tmp_path).validate_rules() == []


def test_names_with_wildcards_in_them_are_names(tmp_path: Path) -> None:
    (tmp_path / "[x]").mkdir()
    (tmp_path / "[x]" / "a").write_text("")
    assert FileOwnership({"a": "x/"}, workspace=tmp_path).get_owner("[x]/a") is None
    [gap] = FileOwnership({"a": "x/"}, workspace=tmp_path).validate_rules()
    assert str(gap) == "[x]/ has no owner"
    assert FileOwnership({"a": r"\[x]/"}, workspace=tmp_path).validate_rules() == []


def test_none_stands_for_all_that_the_agent_type_owns(
    ownership: FileOwnership, tmp_path: Path
) -> None:
    with TaskQueue(ownership=ownership, workspace=tmp_path) as queue:
        future = queue.submit_task(AgentTask("architect", "", None, int))
        assert future.result() == 0
        claims = [str(each) for each in queue.runtime.handle("architect#1").task.claims]
        assert claims == ["agent architect!", "write docs/", "write specs/*.md"]
        with pytest.raises(InvalidOwnership, match="stranger"):
            queue.submit_task(AgentTask("stranger", "", None, int))


@pytest.mark.parametrize(
    ("agent", "files", "why"),
    [
        ("architect", "src/a.py", "belongs to developer"),
        pytest.param(
            "developer", "README.md", "has no owner", id="developer-README.md-belongs to nobody"
        ),
        ("developer", "../x", "outside the workspace"),
        ("developer", "**/*.md", "docs/x.md too, which belongs to architect"),
        ("developer", "etc/*", "does not own all"),
        ("stranger", "src/**", "belongs to developer"),
    ],
)
def test_a_task_for_the_files_of_others_is_refused(
    agent: str, files: str, why: str, ownership: FileOwnership, tmp_path: Path
) -> None:
    with (
        TaskQueue(ownership=ownership, workspace=tmp_path) as queue,
        pytest.raises(InvalidOwnership, match=why),
    ):
        queue.submit_task(AgentTask(agent, "", [files], int))


@pytest.mark.parametrize("files", ["src/a.py", "src/", "src/**/*.py", "src/{a,b}.py", "./src/x"])
def test_a_task_for_its_own_files_is_taken(
    files: str, ownership: FileOwnership, tmp_path: Path
) -> None:
    with TaskQueue(ownership=ownership, workspace=tmp_path) as queue:
        assert queue.submit_task(AgentTask("developer", "", [files], int)).result() == 0
        assert queue.submit_task(AgentTask("anybody", "", [], int)).result() == 0


def test_open_rules_leave_what_nobody_owns_to_all(tmp_path: Path) -> None:
    rules = FileOwnership(RULES, open=True, workspace=tmp_path)
    with TaskQueue(ownership=rules, workspace=tmp_path) as queue:
        assert queue.submit_task(AgentTask("x", "", ["etc/*", "README.md"], int)).result() == 0
        with pytest.raises(InvalidOwnership):
            queue.submit_task(AgentTask("x", "", ["**"], int))


def test_methods_called_on_the_class_apply_to_the_project_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "docs"
    below.mkdir()
    monkeypatch.chdir(below)
    with pytest.raises(InvalidOwnership, match=r"no interlock\.yaml"):
        FileOwnership.get_owned_paths("architect")
    (tmp_path / "interlock.yaml").write_text(
        "agents:\n  architect:\n    command: [echo]\n    owns: [docs/, '*.md']\n"
        "  developer:\n    command: [echo]\n    owns: [src/]\n"
    )
    assert FileOwnership.get_owned_paths("architect") == ["docs/", "*.md"]
    assert FileOwnership.get_allowed_paths("developer") == ["src/"]
    assert FileOwnership.get_owned_paths("stranger") == []
    assert FileOwnership.get_owner("src/a.py") == "developer"
    assert FileOwnership.check_ownership("architect", "README.md")
    assert [str(each) for each in FileOwnership.validate_rules()] == ["interlock.yaml has no owner"]


def test_a_task_delegated_without_files_is_read_only(tmp_path: Path) -> None:
    with TaskQueue(workspace=tmp_path) as queue:
        entry = {"agent_type": "a", "description": "look", "execute_fn": lambda: "seen"}
        [future] = delegate_tasks_parallel([entry], queue=queue)
        assert future.result(30) == "seen"
