"""docs/plan.md: its files can be loaded, and its tables are those of the readers."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from interlock.plan.composite_kinds import RecordKind
from interlock.plan.file_keys import AGENT, DEFAULTS, LISTED_TASK, PLAN, PROJECT
from interlock.plan.plan_file import load_plan
from interlock.plan.project_file import load_project
from interlock.plan.schema import plan_schema, project_schema
from tests.acceptance import documents

NAME = "docs/plan.md"
TEXT = documents.read(NAME)
FILES = re.findall(r"^```yaml\n# (interlock|plan)\.yaml\n(.*?)^```$", TEXT, re.M | re.S)


def test_every_file_in_it_can_be_loaded(workspace: Path) -> None:
    assert len(FILES) == TEXT.count("```yaml") > 4
    first = next(text for kind, text in FILES if kind == "interlock")
    for kind, text in FILES:
        Path(f"{kind}.yaml").write_text(text)
        if kind == "interlock":
            assert load_project(Path("interlock.yaml")).agents
            continue
        Path("first.yaml").write_text(first)
        project = load_project(Path("first.yaml"))
        variables = {"target": "production"} if "target:" in text else {}
        assert load_plan(Path("plan.yaml"), project, variables=variables).tasks


@pytest.mark.parametrize(("kind", "text"), FILES)
def test_every_file_in_it_fits_its_schema(kind: str, text: str) -> None:
    schema = project_schema() if kind == "interlock" else plan_schema()
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(text))


@pytest.mark.parametrize("record", [PLAN, LISTED_TASK, PROJECT, AGENT])
def test_its_tables_are_those_of_the_readers(record: RecordKind) -> None:
    rows = [f"| `{name}` | {key.says} |" for name, key in record.keys.items() if not key.later]
    assert "\n".join(["| key | meaning |", "|---|---|", *rows]) + "\n\n" in TEXT


def test_what_can_be_a_default_and_what_does_not_exist_yet_is_said() -> None:
    defaults = ", ".join(f"`{name}`" for name, key in DEFAULTS.keys.items() if not key.later)
    assert f"`defaults` may contain: {defaults}." in TEXT
    section = TEXT.partition("## What does not exist yet")[2].partition("\n## ")[0]
    for name, key in LISTED_TASK.keys.items():
        assert not key.later or f"`{name}`" in section


def test_its_code_prints_what_it_says_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    assert documents.check(NAME, tmp_path) == 1
    assert documents.missing_links(NAME) == []
