"""Generators of documents and pictures. They are not part of the package; `make docs` runs them.

`commands_reference` writes docs/commands.md from the program (with `reference_facts` and
`reference_json`), `plan_schemas` writes the JSON Schemas that the package ships, and `run_picture`
runs the demo and draws docs/run.svg (with `run_svg`).
"""
