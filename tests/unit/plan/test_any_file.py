"""Whatever is in a file: it is read, or refused with a PlanError; nothing else ever happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from interlock.errors import PlanError
from interlock.plan.env_file import read_env_file
from interlock.plan.file_keys import AGENT, PLAN, PROJECT, TASK
from interlock.plan.plan_file import load_plan
from interlock.plan.project_file import load_project
from interlock.plan.records import Plan, Project
from tests.unit.plan import files, test_plan, test_project
from tests.unit.plan.test_broken_files import PLANS, PROJECTS

T = TypeVar("T")

# Pieces that mean something to YAML or to us, to be put where they do not belong.
PIECES = [
    *("{{", "}}", "{{item}}", "{{a.output}}", "{{schema.output.x}}", "\\{{", "&a ", "*a", "<<: *a"),
    *(
        "'",
        '"',
        "[",
        "]",
        "{",
        "}",
        ": ",
        "- ",
        "? ",
        "|\n",
        ">-\n",
        "\n",
        "\t",
        "#",
        "!!int ",
        "%",
    ),
    *("---\n", "...\n", "~", "null", "true", "no", "0", "-1", "1e999", ".nan", "1:30", "9" * 400),
    *("**", "../", "/", "[a", "{a,", "\\", "gpu=2", "db!", "=", "!", "60/min", "10m", "auto"),
    *("\x00", "\x07", "\x85", "\u2028", "\ufeff", "é", "\U0001f600", "sk-abcdefghijklmnopqrst"),
    *TASK,
    *PLAN.keys,
    *PROJECT.keys,
    *AGENT.keys,
]
GOOD = [test_plan.WHOLE, test_project.WHOLE, files.PROJECT]
GOOD += [case.file for case in (*PLANS, *PROJECTS)]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A file in which some pieces were put in, taken out, or doubled."""
    text = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        to = min(len(text), at + draw(st.sampled_from([0, 0, 1, 5, 40])))
        piece = draw(st.sampled_from(PIECES) | st.just(text[at:to] * 2) | st.text(max_size=3))
        text = text[:at] + piece + text[to:]
    data = text.encode("utf-8", "replace")
    if draw(st.integers(0, 20)) == 0:
        data = data[:-3] + draw(st.binary(max_size=6))
    return data


def read(load: Callable[[], T]) -> T | PlanError:
    """What was read, or why not; any other exception goes through."""
    try:
        return load()
    except PlanError as error:
        return error


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


@pytest.fixture(scope="module")
def project(folder: Path) -> Project:
    (folder / "interlock.yaml").write_text(files.PROJECT)
    return load_project(folder / "interlock.yaml")


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(data=mutated())
@example(data=b"tasks: {a: {prompt: x, for_each: [[]]}}")
@example(data=b"tasks: {a: {prompt: x, with: {a: {{b}}}}}")
@example(data=b"tasks: {'': {prompt: x}, ' ': {prompt: y}}")
@example(data=b"tasks:\n- {id: , prompt: x}\n- {id: [a], prompt: x}\n")
def test_a_plan_is_read_or_refused(data: bytes, folder: Path, project: Project) -> None:
    path = folder / "plan.yaml"
    path.write_bytes(data)
    found = read(lambda: load_plan(path, project))
    if isinstance(found, Plan):
        assert found.tasks or found.warnings
    else:
        assert found.problems
        assert all(each.text and each.file == str(path) for each in found.problems)


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(data=mutated())
@example(data=b"limits: {a: {requests: 0/min}}")
@example(data=b"limits: {a: {requests: 9999999999999999M/min, tokens: 1/0s}}")
def test_a_project_is_read_or_refused(data: bytes, folder: Path) -> None:
    path = folder / "broken.yaml"
    path.write_bytes(data)
    found = read(lambda: load_project(path))
    assert isinstance(found, Project) or found.problems


@given(data=st.binary() | st.text(alphabet="AB_= '\"\\#\nexport").map(str.encode))
def test_an_env_file_is_read_or_refused(data: bytes, folder: Path) -> None:
    path = folder / ".env"
    path.write_bytes(data)
    found = read(lambda: read_env_file(path))
    if isinstance(found, dict):
        assert all(name.isidentifier() for name in found)
    else:
        assert found.problems


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 10**20)
    | st.floats()
    | st.sampled_from([*PIECES, "a", "b", "coder", "helper", "gpu", "openai", "10m", "src/**"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "{{item}}", "API_KEY", "cpu"]), inner)
    ),
    max_leaves=6,
)


def record(keys: Mapping[str, object]) -> st.SearchStrategy[dict[str, object]]:
    """A mapping with some of the keys, and anything as their values."""
    return st.dictionaries(st.sampled_from([*keys, "x"]), VALUES, max_size=5)


TASKS = st.lists(record({**TASK, "id": 0}) | VALUES, max_size=4) | st.dictionaries(
    st.sampled_from(["a", "b", "c-{{item}}", "{{x}}"]), record(TASK) | VALUES, max_size=4
)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(tasks=TASKS, rest=record(PLAN.keys))
def test_a_plan_of_any_values_is_read_or_refused(
    tasks: object, rest: dict[str, object], folder: Path, project: Project
) -> None:
    path = folder / "values.yaml"
    path.write_bytes(yaml.safe_dump({**rest, "tasks": tasks}, allow_unicode=True).encode())
    found = read(lambda: load_plan(path, project))
    assert isinstance(found, Plan) or found.problems


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    agents=st.dictionaries(st.sampled_from(["a", "b", "c:d", ""]), record(AGENT.keys)),
    rest=record(PROJECT.keys),
)
def test_a_project_of_any_values_is_read_or_refused(
    agents: object, rest: dict[str, object], folder: Path
) -> None:
    path = folder / "values.yaml"
    path.write_bytes(yaml.safe_dump({**rest, "agents": agents}, allow_unicode=True).encode())
    found = read(lambda: load_project(path))
    assert isinstance(found, Project) or found.problems
