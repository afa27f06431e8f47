"""The rooms of the package, and that the check of them would notice each kind of breach."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layering import MAY_IMPORT, violations


def problems(folder: Path, file: str, code: str) -> list[str]:
    """What the check says about a package that holds just this file."""
    path = folder / "interlock" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")
    return [violation.problem for violation in violations(folder / "interlock")]


def test_every_import_of_the_package_is_allowed_by_the_table_of_rooms() -> None:
    assert [str(violation) for violation in violations()] == []


def test_the_table_lets_imports_go_only_upwards() -> None:
    above: set[str] = set()
    for room, allowed in MAY_IMPORT.items():
        assert allowed <= above, room
        above.add(room)


def test_only_the_runtime_and_what_stands_on_it_sees_kernel_execution_and_journal_together() -> (
    None
):
    together = {"kernel", "execution", "journal"}
    assert {room for room, allowed in MAY_IMPORT.items() if together <= allowed} == {
        "runtime",
        "testing",
        "__init__",
    }


@pytest.mark.parametrize(
    "code",
    [
        "import interlock.runtime",
        "import interlock.runtime.loop as loop",
        "from interlock.runtime.loop import Loop, Turn",
        "from interlock import runtime",
        "from .. import runtime",
        "from ..runtime import Loop",
        "from ..runtime.loop import Loop",
        "def late():\n    from interlock.runtime import Loop",
        "class Late:\n    import interlock.runtime",
        "import typing\nif typing.TYPE_CHECKING:\n    from interlock.runtime import Loop",
        "try:\n    import json\nexcept ImportError:\n    import interlock.runtime",
    ],
)
def test_an_import_of_a_lower_room_is_found_wherever_it_is_written(
    tmp_path: Path, code: str
) -> None:
    assert problems(tmp_path, "journal/memory.py", code) == [
        "'journal' may not import the room 'runtime'"
    ]


@pytest.mark.parametrize(
    "code",
    [
        'import importlib\nimportlib.import_module("interlock.runtime.loop")',
        'from importlib import import_module\nimport_module(name="interlock.runtime")',
        'from importlib import import_module as load\nload("interlock.runtime")',
        'from importlib import import_module\nimport_module("..runtime", __package__)',
        'from importlib import import_module\nimport_module(".runtime", package="interlock")',
        '__import__("interlock.runtime")',
        'import pkgutil\npkgutil.resolve_name("interlock.runtime:Runtime")',
        'from importlib import import_module\nHOMES = {"Loop": "interlock.runtime"}\n'
        "def find(name):\n    return import_module(HOMES[name])",
    ],
)
def test_a_module_named_by_text_counts_as_imported(tmp_path: Path, code: str) -> None:
    assert problems(tmp_path, "journal/memory.py", code) == [
        "'journal' may not import the room 'runtime'"
    ]


@pytest.mark.parametrize(
    "code",
    [
        'from importlib import import_module\nimport_module(f"interlock.{room}")',
        'from importlib import import_module\nimport_module("interlock." + room)',
        'from importlib import import_module\nimport_module("." + room, __package__)',
        'from importlib import import_module\nimport_module(".runtime", where)',
        "from ... import anything",
    ],
)
def test_an_import_whose_target_cannot_be_told_is_refused(tmp_path: Path, code: str) -> None:
    [problem] = problems(tmp_path, "runtime/loop.py", code)
    assert "cannot be checked" in problem


def test_text_that_looks_like_a_module_is_harmless_where_nothing_is_loaded_by_name(
    tmp_path: Path,
) -> None:
    assert problems(tmp_path, "journal/memory.py", 'EVENT = "interlock.task.started"') == []


def test_loading_a_users_module_by_its_name_is_allowed(tmp_path: Path) -> None:
    code = "from importlib import import_module\ndef agent(name):\n    return import_module(name)"
    assert problems(tmp_path, "execution/callables.py", code) == []


@pytest.mark.parametrize("file", ["scheduler.py", "scheduler/core.py", "__about__.py"])
def test_a_room_that_is_not_in_the_table_is_refused(tmp_path: Path, file: str) -> None:
    [problem] = problems(tmp_path, file, "")
    assert "is not in the table of rooms" in problem


def test_an_import_of_a_room_that_is_not_in_the_table_is_refused(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, "testing/world.py", "import interlock.scheduler")
    assert problem == "imports interlock.scheduler, which is not in the table of rooms"


@pytest.mark.parametrize("file", ["model/utils.py", "kernel/helpers/text.py", "views/_web_util.py"])
def test_a_drawer_for_odds_and_ends_is_refused(tmp_path: Path, file: str) -> None:
    [problem] = problems(tmp_path, file, "")
    assert "is a drawer, not a room" in problem


def test_errors_import_nothing_of_ours(tmp_path: Path) -> None:
    assert problems(tmp_path, "errors.py", "from interlock.model.task import Task") == [
        "'errors' may not import the room 'model'"
    ]


@pytest.mark.parametrize(
    "code", ["import interlock", "from interlock import Task", "from .. import *"]
)
def test_no_room_imports_the_public_api(tmp_path: Path, code: str) -> None:
    assert problems(tmp_path, "testing/world.py", code) == [
        "'testing' may not import the public API"
    ]


def test_the_public_api_offers_neither_testing_nor_views(tmp_path: Path) -> None:
    assert problems(tmp_path, "__init__.py", "from . import testing\nfrom .views import web") == [
        "'__init__' may not import the room 'testing'",
        "'__init__' may not import the room 'views'",
    ]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("errors.py", "import pydantic"),
        ("model/task.py", "import attrs"),
        ("kernel/kernel.py", "from pydantic import BaseModel"),
        ("kernel/kernel.py", "def late():\n    import sortedcontainers"),
    ],
)
def test_the_pure_rooms_stand_on_the_standard_library(tmp_path: Path, file: str, code: str) -> None:
    [problem] = problems(tmp_path, file, code)
    assert "may import only the standard library" in problem


def test_the_model_may_use_pydantic_and_outer_rooms_what_they_need(tmp_path: Path) -> None:
    assert problems(tmp_path, "model/plan.py", "import pydantic") == []
    assert problems(tmp_path, "views/web.py", "import starlette") == []


@pytest.mark.parametrize(
    "module",
    [
        *("time", "datetime", "random", "uuid", "asyncio", "threading"),
        *("os", "io", "socket", "sqlite3", "logging"),
    ],
)
def test_the_kernel_reaches_for_no_clock_chance_thread_file_or_log(
    tmp_path: Path, module: str
) -> None:
    expected = [f"the kernel is pure: no {module!r}"]
    assert problems(tmp_path, "kernel/kernel.py", f"import {module}") == expected
    assert problems(tmp_path, "kernel/kernel.py", f"from {module} import thing") == expected


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("async def start(): ...", "the kernel is pure: no async"),
        ("def show(task):\n    print(task)", "the kernel is pure: no print()"),
        ("def load(path):\n    return open(path)", "the kernel is pure: no open()"),
    ],
)
def test_the_kernel_does_nothing_but_decide(tmp_path: Path, code: str, problem: str) -> None:
    assert problems(tmp_path, "kernel/kernel.py", code) == [problem]


def test_a_file_that_cannot_be_read_is_refused_rather_than_passed_over(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, "model/task.py", "def broken(:")
    assert problem.startswith("cannot be read")


def test_a_breach_names_its_file_and_line(tmp_path: Path) -> None:
    problems(tmp_path, "kernel/claims.py", '"""Claims."""\n\nimport time\n')
    [violation] = violations(tmp_path / "interlock")
    assert str(violation) == "interlock/kernel/claims.py:3: the kernel is pure: no 'time'"
