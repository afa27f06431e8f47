r"""Secrets by name: from the environment, or from a `.env` file.

    # a comment
    OPENAI_API_KEY=sk-...
    export NAME="several words, with \n for a newline"
    OTHER='as is'

That is the whole format: nothing is expanded, and a value ends with its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.plan.file_text import read_text
from interlock.plan.node import ScalarNode
from interlock.plan.problems import Problems
from interlock.plan.records import Project

_LINE: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_ESCAPED: Final = re.compile(r"\\(.)")
_MEANING: Final = {"n": "\n", "r": "\r", "t": "\t"}


def secret_values(project: Project, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the project's secrets that are set. The environment goes first."""
    found = {name: environ[name] for name in project.secrets if environ.get(name)}
    if project.env_file is not None and len(found) < len(project.secrets):
        kept = read_env_file(project.root / project.env_file)
        found |= {
            name: kept[name] for name in project.secrets if name not in found and kept.get(name)
        }
    return found


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a `.env` file. PlanError names the invalid line, never its value."""
    problems = Problems(str(path))
    found: dict[str, str] = {}
    for number, line in enumerate(read_text(path, problems).splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        at = ScalarNode("", line=number, column=1)
        match = _LINE.fullmatch(line)
        if match is None:
            problems.add(at, "", "this is not a variable; write NAME=value")
            continue
        value = _value(match[2])
        if value is None:
            problems.add(at, match[1], "the quote that begins here is not closed in this line")
        else:
            found[match[1]] = value
    problems.raise_any()
    return found


def _value(text: str) -> str | None:
    quote = text[:1]
    if quote not in ("'", '"'):
        return re.split(r"\s#", text, maxsplit=1)[0].strip()
    closed = re.match(r"'([^']*)'" if quote == "'" else r'"((?:[^"\\]|\\.)*)"', text)
    if closed is None or not re.fullmatch(r"\s*(?:#.*)?", text[closed.end() :]):
        return None
    inside = closed[1]
    if quote == "'":
        return inside
    return _ESCAPED.sub(lambda each: _MEANING.get(each[1], each[1]), inside)
