"""The tutorial and the reference are true: code runs, names exist, links lead somewhere."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import errors
from tests.acceptance import documents

SYSTEMS = [
    str(each.relative_to(documents.ROOT)) for each in documents.ROOT.glob("docs/systems/*.md")
]
DOCUMENTS = [
    *("docs/tutorial.md", "docs/durable.md", "docs/agents.md", "docs/library.md"),
    "docs/testing.md",
    *sorted(SYSTEMS),
]
EVERYTHING = [
    str(each.relative_to(documents.ROOT)) for each in sorted(documents.ROOT.glob("docs/**/*.md"))
]
REFERENCE = documents.read("docs/library.md")
SECTIONS = {
    title: text
    for title, _, text in (
        part.partition("\n") for part in re.split(r"^## ", REFERENCE, flags=re.M)
    )
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_code_prints_what_the_document_says(name: str, tmp_path: Path) -> None:
    assert documents.check(name, tmp_path) == documents.read(name).count("```python") > 0


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_file_and_heading_that_is_linked_exists(name: str) -> None:
    assert documents.missing_links(name) == []
    assert documents.missing_headings(name) == []


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md", "docs/decisions.md"])
def test_every_source_file_that_the_design_names_exists(name: str) -> None:
    rooms = "kernel|model|plan|execution|journal|runtime|patterns|service|views|testing|system"
    for path in re.findall(
        rf"`((?:src/interlock/|tests/|docs/|tools/|(?:{rooms})/)[\w./*-]+)`", documents.read(name)
    ):
        full = (
            path
            if path.split("/")[0] in ("src", "tests", "docs", "tools")
            else f"src/interlock/{path}"
        )
        assert [*documents.ROOT.glob(full.rstrip("/"))] or [*documents.ROOT.glob(f"{full}.py")], (
            path
        )


def _missing(names: list[str], text: str) -> list[str]:
    """Those names that stand nowhere in the text as code."""
    fence = re.compile(r"^```\w*\n.*?^```$", re.M | re.S)
    code = " ".join([*fence.findall(text), *re.findall(r"`[^`]+`", fence.sub("", text))])
    said = set(re.findall(r"\w+", code))
    return [name for name in names if name not in said]


def _members(kind: type) -> list[str]:
    """What users may call or look at; the rest of these classes is for the runtime."""
    for_the_runtime = {
        "check_open",
        "close",
        "renamed",
        "settle",
        "settled",
        "give_up",
        "door",
        "runs_on_the_loop",
    }
    for_the_runtime |= {"fresh_id", "plain_id"}
    return [name for name in dir(kind) if name[0] != "_" and name not in for_the_runtime]


def _options(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_the_reference_mentions_every_public_name() -> None:
    everywhere = "\n".join(map(documents.read, DOCUMENTS))
    assert _missing(interlock.__all__, everywhere) == []


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("Runtime", _options(interlock.Runtime)),
        ("Runtime", [*_members(interlock.Runtime), "run_id"]),
        ("Runtime", _members(interlock.RunResult)),
        ("Runtime", _members(interlock.Explanation)),
        ("Task", _options(interlock.Task)),
        ("Task", _options(interlock.Retry) + _options(interlock.Rate)),
        ("Runtime", _options(interlock.Breaker) + _options(interlock.Gate)),
        ("Runtime", _options(interlock.Auto) + _options(interlock.Load)),
        ("TaskContext", _members(interlock.TaskContext)),
        ("Handle", _members(interlock.Handle)),
        ("Outcome", _members(interlock.Outcome)),
        ("Outcome", _members(interlock.ErrorRecord)),
        ("Outcome", list(interlock.State)),
        ("Events", list(interlock.Kind)),
        ("Events", [*interlock.Event._fields, "time", "fields"]),
    ],
)
def test_a_section_of_the_reference_is_complete(section: str, names: list[str]) -> None:
    assert _missing(names, SECTIONS[section]) == []


def test_the_tree_of_errors_is_that_of_the_code() -> None:
    tree = (errors.__doc__ or "").partition("\n\n")[2].strip()
    assert tree in SECTIONS["Errors"]


def test_the_defaults_of_the_reference_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", SECTIONS["Runtime"], re.M))
    parameters = inspect.signature(interlock.Runtime).parameters
    assert rows["max_parallel"] == str(parameters["max_parallel"].default)
    assert rows["workspace"] == f'`"{parameters["workspace"].default}"`'
    assert rows["grace"] == f"{parameters['grace'].default:g}"
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(interlock.Retry).parameters.items()
    }
    assert f"Retry({', '.join(f'{k}={v!r}' for k, v in defaults.items())})" in SECTIONS["Task"]


# -- the seven systems ------------------------------------------------------------------------

OVERVIEW = documents.read("docs/systems/README.md")
PAGES = sorted(name for name in SYSTEMS if not name.endswith("README.md"))


def test_every_system_can_be_chosen_from_the_overview() -> None:
    assert len(PAGES) == 7
    choices = OVERVIEW.partition("## ")[0]
    for name in PAGES:
        assert f"]({Path(name).name})" in choices


def test_there_is_one_migration_table_and_every_page_leads_to_it() -> None:
    for name in PAGES:
        text = documents.read(name)
        assert "(README.md#migration)" in text, name
        assert "| you have |" not in text, name


def test_the_migration_table_has_every_name_that_the_systems_export() -> None:
    table = OVERVIEW.partition("## Migration")[2]
    exported = [
        name
        for name in interlock.__all__
        if getattr(interlock, name).__class__ is not str
        and getattr(interlock, name).__module__.startswith("interlock.patterns")
    ]
    assert len(exported) > 20
    assert _missing(exported, table) == []
