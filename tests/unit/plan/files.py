"""Files for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from interlock.plan.plan_file import load_plan
from interlock.plan.project_file import load_project
from interlock.plan.records import Plan, Project

PROJECT = """\
agents:
  coder: {command: [my-agent, "{prompt}"], owns: src/}
  idler: {command: [my-idler, "{prompt}"]}
  tests: {command: make test, owns: build/}
  helper: {python: "helpers:help"}
capacity: {gpu: 2}
limits:
  openai: {requests: 60/min}
protected: .github/**
defaults: {agent: coder}
"""


def project(text: str = PROJECT) -> Project:
    """The project of this text, in the current folder."""
    Path("interlock.yaml").write_text(text, encoding="utf-8")
    return load_project(Path("interlock.yaml"))


def plan(text: str, *, only: Iterable[str] = (), **variables: str) -> Plan:
    """The plan of this text, in the current folder, for the project above."""
    Path("plan.yaml").write_text(text, encoding="utf-8")
    return load_plan(Path("plan.yaml"), project(), variables=variables, only=only)
