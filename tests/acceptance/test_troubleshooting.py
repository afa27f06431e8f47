"""docs/troubleshooting.md quotes the program: each message is made by a text of its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.acceptance import documents

NAME = "docs/troubleshooting.md"
TEXT = documents.read(NAME)
_FRONT = re.compile(
    r"(interlock: )?([\w./]+\.db: |\w+: |(command line|[\w.]+:\d+:\d+): ([\w.\[\]]+: )?)?"
)
"""What stands in front of any message: who speaks, the file, its place there, the kind of error."""
_LITTLE = 10
"""A text with fewer letters of its own would fit nearly every message."""


def _quoted() -> list[str]:
    blocks = re.findall(r"^```text\n(.*?)^```$", TEXT, re.M | re.S)
    rows = re.findall(r"^\| `([^`]+)` \|", TEXT, re.M)
    return [line for block in blocks for line in block.splitlines()] + rows


@cache
def _texts() -> list[re.Pattern[str]]:
    """Every text of the source, as what it can become: its values may be anything."""
    found = {
        shape
        for file in (documents.ROOT / "src" / "interlock").rglob("*.py")
        for shape in _shapes(file)
    }
    return [re.compile(shape) for shape in found]


def _shapes(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = node.values
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = [node]
        else:
            continue
        words = [
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else None
            for part in parts
        ]
        if sum(len(each or "") for each in words) < _LITTLE:
            continue
        shape = "".join("(.*?)" if each is None else re.escape(each) for each in words)
        yield re.sub(r"\(\.\*\?\)$", "(.*)", shape.removeprefix("\\ \\ "))


def _unknown(message: str) -> str:
    """What is left of a message without all that the source can say."""
    message = _FRONT.sub("", message, count=1)
    told = [False] * len(message)
    own = [False] * len(message)
    for text in _texts():
        found = text.search(message)
        if found is None:
            continue
        values = {at for n in range(1, text.groups + 1) for at in range(*found.span(n))}
        for at in range(*found.span()):
            told[at] = True
            own[at] |= at not in values
    if sum(own) < len(message) / 4:
        return message
    left = "".join(letter for letter, known in zip(message, told, strict=True) if not known)
    return left.strip(" :.;")


@pytest.mark.parametrize("message", _quoted())
def test_every_message_is_one_of_the_program(message: str) -> None:
    assert _unknown(message) == ""


@pytest.mark.parametrize(
    "invented",
    [
        "interlock: no run is under way in /home/ada/shop",
        "cannot_start: there is no program 'my-agent' anywhere",
        "the sky is falling since 3 min",
    ],
)
def test_a_message_that_the_program_never_says_would_be_noticed(invented: str) -> None:
    assert _unknown(invented) != ""


def test_there_are_many_of_them() -> None:
    assert len(_quoted()) > 30
