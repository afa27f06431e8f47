"""The shell owns its state: no other module assigns to it or to its parts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import interlock

SOURCE = Path(interlock.__file__).parent
SHELL = {"shell", "_shell"}


def _written(tree: ast.AST) -> Iterator[ast.expr]:
    """The targets of all assignments and deletions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.Delete):
            yield from node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            yield node.target


def _reaches_into_the_shell(target: ast.expr) -> bool:
    """Whether it is `shell.x`, `shell.x[...]`, `self._shell.x.y` and the like."""
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        if name in SHELL:
            return True
    return False


def test_no_other_module_assigns_to_the_shell_or_to_its_parts() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{target.lineno}: {ast.unparse(target)}"
        for path in sorted(SOURCE.rglob("*.py"))
        for target in _written(ast.parse(path.read_text(encoding="utf-8")))
        if _reaches_into_the_shell(target)
    ]
    assert found == []


def test_an_assignment_would_be_noticed() -> None:
    tree = ast.parse("shell.tasks.x[1] = 2\nself._shell.broken = None\nself.shell = shell\ny = 1")
    assert [_reaches_into_the_shell(each) for each in _written(tree)] == [True, True, False, False]
