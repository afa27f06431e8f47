"""The JSON Schemas, which editors use, say what the readers do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from interlock.plan import schema
from tests.unit.plan import files, test_plan, test_project
from tests.unit.plan.test_broken_files import PLANS, PROJECTS, Case, titled

PROJECT = jsonschema.Draft202012Validator(schema.project_schema())
PLAN = jsonschema.Draft202012Validator(schema.plan_schema())


def data(text: str) -> Any:
    """The file as editors see it: YAML 1.2, in which only true and false are truths."""
    return yaml.load(text, Loader=_Modern)


class _Modern(yaml.SafeLoader):
    """YAML 1.2, as far as these files go."""


_Modern.yaml_implicit_resolvers = {
    first: [
        (tag, form)
        for tag, form in resolvers
        if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp") or first in "tfTF"
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def test_the_files_of_the_package_are_those_of_the_tables(tmp_path: Path) -> None:
    """After a change of the tables: `python -m tools.plan_schemas`."""
    for written in schema.write_schemas(tmp_path):
        shipped = schema.FOLDER / written.name
        assert shipped.read_text(encoding="utf-8") == written.read_text(encoding="utf-8")


@pytest.mark.parametrize("validator", [PROJECT, PLAN])
def test_they_are_schemas(validator: jsonschema.Draft202012Validator) -> None:
    jsonschema.Draft202012Validator.check_schema(validator.schema)
    assert json.dumps(validator.schema)


def test_good_files_are_good_for_them() -> None:
    PROJECT.validate(data(test_project.WHOLE))
    PROJECT.validate(data(files.PROJECT))
    PLAN.validate(data(test_plan.WHOLE))
    PLAN.validate(data("tasks:\n- x\n- {prompt: y, for_each: [1, {a: b}], attempts: '{{n}}'}\n"))


# What only a look at the whole file, at other files or into the text shows.
FORM = {
    *("an unknown key", "keys that others use for the same", "an unknown key at the top"),
    *("no tasks", "tasks that are a text", "a list where a mapping belongs", "wrong types"),
    *("a task that is a list", "a key without a value", "an id in a task that has one"),
    *("what needs worktrees, budgets, merging", "an output that is no type", "times that are none"),
    *("numbers that are none", "a truth that YAML once had more words for"),
    *("a key that others use for the same", "a Python agent that is no module:function"),
    *("a preset that is not known", "worktrees, guards and budgets do not exist yet"),
    *(
        "a name of an agent with a colon",
        "what is no name of a variable",
        "a word that is not auto",
    ),
    *("priorities that are no numbers", "no slots", "a gate of more than everything"),
    *("a time that is none", "a project that is a list", "an agent that is text"),
}


@pytest.mark.parametrize("case", [c for c in PROJECTS if c.title in FORM], ids=titled)
def test_projects_of_the_wrong_form_are_wrong_for_them_too(case: Case) -> None:
    assert not PROJECT.is_valid(data(case.file))


@pytest.mark.parametrize("case", [c for c in PLANS if c.title in FORM], ids=titled)
def test_plans_of_the_wrong_form_are_wrong_for_them_too(case: Case) -> None:
    assert not PLAN.is_valid(data(case.file))


def test_every_key_is_described() -> None:
    for found in (schema.project_schema(), schema.plan_schema()):
        for name, each in found["properties"].items():
            assert each["description"], name
