"""Files that cannot be read, or only at a price."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from interlock.errors import PlanError
from interlock.plan import yaml_tree
from interlock.plan.file_text import LARGEST
from interlock.plan.node import ListNode, MappingNode, ScalarNode
from interlock.plan.plan_file import load_plan
from interlock.plan.problems import Problems
from interlock.plan.yaml_tree import compose
from tests.unit.plan import files


def refused(data: bytes | str) -> str:
    path = Path("plan.yaml")
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    project = files.project()
    with pytest.raises(PlanError) as caught:
        load_plan(path, project)
    return str(caught.value)


def tree(text: str) -> MappingNode:
    problems = Problems("file")
    found = compose(text, problems)
    problems.raise_any()
    assert isinstance(found, MappingNode)
    return found


def test_a_file_that_is_not_there_is_named(workspace: Path) -> None:
    project = files.project()
    with pytest.raises(PlanError, match=r"^plans/none\.yaml: cannot be read: No such file"):
        load_plan(Path("plans/none.yaml"), project)


def test_a_folder_is_no_plan(workspace: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read: Is a directory"):
        load_plan(workspace, files.project())


def test_an_empty_file_is_no_plan(workspace: Path) -> None:
    assert refused("") == refused("# nothing\n") == "plan.yaml: the file is empty"


def test_what_is_not_utf_8_is_named_by_its_byte(workspace: Path) -> None:
    said = refused("tasks:\n  ä: {prompt: ".encode() + b"\xff}\n")
    assert said == ("plan.yaml:2:15: byte 22 (0xff) is not UTF-8; save the file as UTF-8")


def test_utf_16_is_said_to_be_that(workspace: Path) -> None:
    said = refused("tasks: []".encode("utf-16"))
    assert said == "plan.yaml:1:1: it is UTF-16; save it as UTF-8"


def test_a_byte_order_mark_does_no_harm(workspace: Path) -> None:
    assert files.plan("\ufefftasks:\n- x\n").tasks[0].prompt == "x"


def test_a_huge_file_is_refused_without_reading_it(workspace: Path) -> None:
    said = refused(b"# " + b"x" * LARGEST)
    assert said == "plan.yaml: it is larger than 8 MiB; split it"


@pytest.mark.parametrize("deep", ["[" * 100_000, "a: " + "{a: " * 5000, "- " * 50_000 + "x"])
def test_a_deep_file_is_refused(workspace: Path, deep: str) -> None:
    assert refused(deep).endswith("it is nested more than 40 levels deep")


def test_depth_counts_through_aliases_too(workspace: Path) -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 60)]
    assert refused("\n".join(lines)).endswith("it is nested more than 40 levels deep")


def test_a_bomb_of_aliases_is_refused(workspace: Path) -> None:
    lines = ["a0: &a0 [" + "x, " * 9 + "x]"]
    lines += [f"a{n}: &a{n} [" + f"*a{n - 1}, " * 9 + f"*a{n - 1}]" for n in range(1, 10)]
    assert "aliases repeat more than 100,000 values" in refused("\n".join(lines))


def test_a_bomb_of_merges_is_refused(workspace: Path) -> None:
    many = ", ".join(f"k{n}: v" for n in range(1000))
    lines = [f"a: &a {{{many}}}"] + [f"b{n}: {{<<: *a}}" for n in range(200)]
    assert "aliases repeat more than 100,000 values" in refused("\n".join(lines))


def test_anchors_aliases_and_merges_are_what_they_are_in_yaml() -> None:
    found = tree("a: &a {x: 1, y: 2}\nb: *a\nc: {<<: *a, x: 3}\nd: {<<: [*a, {z: 4}]}\n")
    assert found.get("a") is found.get("b")
    merged, several = found.get("c"), found.get("d")
    assert isinstance(merged, MappingNode)
    assert isinstance(several, MappingNode)
    assert {name: each[1].value for name, each in merged.entries.items()} == {  # type: ignore[union-attr]
        "x": "3",
        "y": "2",
    }
    assert set(several.entries) == {"x", "y", "z"}


def test_everything_knows_its_place() -> None:
    found = tree("a: x\nb:\n  - 'y'\n  - {c: z}\n")
    listed = found.get("b")
    assert isinstance(listed, ListNode)
    first, second = listed.items
    assert (listed.line, listed.column) == (3, 3)
    assert (first.line, first.column) == (3, 5)
    assert (second.line, second.column) == (4, 5)
    assert isinstance(first, ScalarNode)
    assert not first.plain


@pytest.mark.parametrize("word", ["no", "on", "off", "yes", "1.10", "0x1F", "1_000", "2026-01-01"])
def test_text_is_what_was_written(word: str, workspace: Path) -> None:
    """The country, the switch, the version: YAML 1.1 would make something else of them."""
    found = files.plan(f"tasks:\n  {word}:\n    prompt: {word}\n    labels: {{{word}: {word}}}\n")
    [task] = found.tasks
    assert (task.id, task.prompt, task.labels) == (word, word, {word: word})


def test_plain_yaml_without_libyaml_reads_the_same(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "a: &a {x: 1}\nb:\n- *a\n- 'q'\n- |\n  block\n- >-\n  folded\n  text\n- \"d\\tq\"\n"

    def shape(node: MappingNode | ListNode | ScalarNode) -> object:
        if isinstance(node, ScalarNode):
            return node.value, node.plain, node.line, node.column
        if isinstance(node, ListNode):
            return [shape(each) for each in node.items]
        return {name: shape(value) for name, (_, value) in node.entries.items()}

    with_libyaml = shape(tree(text))
    monkeypatch.setattr(yaml_tree, "_Loader", yaml.SafeLoader)
    assert shape(tree(text)) == with_libyaml
    assert "tab" in refused("a:\n\t- b\n")
