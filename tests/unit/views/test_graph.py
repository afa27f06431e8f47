"""A plan's graph as tree, DOT and Mermaid, whatever its tasks are called."""

from __future__ import annotations

import re

import pytest

from interlock.errors import DependencyCycle
from interlock.views.cli.graph_text import dot, mermaid
from interlock.views.cli.graph_tree import tree
from tests.unit.views.runs import task, text_of

PLAN = [
    task("schema", claims=("writes schema/",)),
    task("api", after=("schema",)),
    task("web", after=("schema",)),
    task("tests", after=("api", "web"), agent="pytest"),
]
NASTY = 'a"]; end\\"\n-->"<script>`{x}` #35; | %% 日本'


def test_each_task_is_in_the_tree_once_below_what_it_comes_after() -> None:
    assert text_of(tree(PLAN)).splitlines() == [
        "schema       codex   writes schema/",
        "├─ api       codex",
        "└─ web       codex",
        "   └─ tests  pytest  after api, web",
    ]


def test_a_very_long_chain_is_still_a_tree() -> None:
    chain = [task(f"t{n}", after=(f"t{n - 1}",) if n else ()) for n in range(3_000)]
    lines = text_of(tree(chain), width=80).splitlines()
    assert len(lines) == 3_000
    assert max(map(len, lines)) <= 80
    assert "(2991 levels)" in lines[-1]
    assert "t2999" in lines[-1]


def test_a_cycle_is_refused_as_in_a_plan() -> None:
    with pytest.raises(DependencyCycle):
        tree([task("a", after=("b",)), task("b", after=("a",))])


def test_dot_has_every_task_and_edge() -> None:
    made = dot(PLAN)
    assert '"schema" [label="schema\\ncodex\\nwrites schema/"];' in made
    assert made.count(" -> ") == 4
    assert '"web" -> "tests";' in made


def test_nothing_in_a_name_can_end_a_text_of_dot() -> None:
    made = dot([task(NASTY), task("b", after=(NASTY,))], name=NASTY)
    # Without all texts, correctly read, only the grammar is left.
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "T", made)
    assert re.fullmatch(
        r"digraph T \{\n  rankdir=LR;\n  node \[shape=box\];\n"
        r"(  T \[label=T\];\n)+(  T -> T;\n)+\}\n",
        bare,
    )


def test_mermaid_has_every_task_and_edge() -> None:
    made = mermaid(PLAN)
    assert made.startswith('flowchart LR\n  t0["schema<br>codex<br>writes schema/"]\n')
    assert made.count(" --> ") == 4


def test_nothing_in_a_name_can_be_taken_for_mermaid_or_html() -> None:
    made = mermaid([task(NASTY), task("b", after=(NASTY, "unknown"))])
    for line in made.splitlines()[1:]:
        assert re.fullmatch(r'  t\d+(\["[\w #;/.&<br>-]*"\]| --> t\d+)', line)
    assert "<script" not in made
    assert '["unknown"]' in made
