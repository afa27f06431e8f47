"""What `interlock` offers, and that it stays light to import."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import interlock
from interlock import errors


def test_every_public_name_can_be_imported() -> None:
    for name in interlock.__all__:
        assert getattr(interlock, name) is not None, name


def test_what_type_checkers_see_is_what_is_there() -> None:
    tree = ast.parse(Path(interlock.__file__).read_bytes())
    homes = {
        alias.name: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("interlock.")
        for alias in node.names
    }
    assert {*homes, "__version__"} == set(interlock.__all__)
    for name, home in homes.items():
        value = getattr(interlock, name)
        # Constants do not know where they come from.
        assert getattr(value, "__module__", home) == home, name
        assert getattr(import_module(home), name) is value, name


def test_every_error_is_public_and_drawn_in_the_tree() -> None:
    classes = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.InterlockError)
    }
    drawn = set(re.findall(r"^[│├└─ ]*(\w+)", errors.__doc__ or "", re.MULTILINE)) - {"Every"}
    assert classes == drawn
    assert classes <= set(interlock.__all__)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert interlock.__version__ == version("interlock")


def test_dir_lists_the_public_names_before_they_are_used() -> None:
    assert set(interlock.__all__) <= set(dir(interlock))


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Tsak'"):
        getattr(interlock, "Tsak")  # noqa: B009 - a plain attribute would not pass the type check


def test_importing_interlock_imports_none_of_its_rooms() -> None:
    code = "import sys, interlock; print(*[m for m in sys.modules if m.startswith('interlock.')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


def test_pydantic_is_imported_by_those_who_use_it_alone() -> None:
    code = (
        "import sys, interlock; interlock.Runtime, interlock.Task; print('pydantic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False"]
