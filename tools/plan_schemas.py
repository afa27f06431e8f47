"""Writes the JSON Schemas that the package ships: `python -m tools.plan_schemas`."""

from __future__ import annotations

from interlock.plan.schema import FOLDER, write_schemas

if __name__ == "__main__":
    for path in write_schemas(FOLDER):
        print(f"Wrote {path}.")
