"""The JSON Schemas of project and plan files, for editors.

They are made from the tables by which the files are read. The package ships them in `schemas/`;
`make docs` writes those files again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from interlock.plan.file_keys import LISTED_TASK, NAMED_TASK, PLAN, PROJECT
from interlock.plan.scalar_kinds import Schema

FOLDER: Final = Path(__file__).parent / "schemas"
PROJECT_SCHEMA: Final = "project.schema.json"
PLAN_SCHEMA: Final = "plan.schema.json"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def project_schema() -> Schema:
    """The schema of `interlock.yaml`."""
    return {"$schema": _DIALECT, "title": "Interlock project", **PROJECT.schema()}


def plan_schema() -> Schema:
    """The schema of plan files."""
    text = {"type": ["string", "number", "boolean"], "description": "its prompt"}
    defs: dict[str, Any] = {
        "task": {"anyOf": [NAMED_TASK.schema(), text]},
        "listed_task": {"anyOf": [LISTED_TASK.schema(), text]},
    }
    schema = {"$schema": _DIALECT, "title": "Interlock plan", **PLAN.schema()}
    return {**schema, "required": ["tasks"], "$defs": defs}


def write_schemas(folder: Path) -> list[Path]:
    """Write both schemas into a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, schema in ((PROJECT_SCHEMA, project_schema()), (PLAN_SCHEMA, plan_schema())):
        path = folder / name
        path.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(path)
    return written
