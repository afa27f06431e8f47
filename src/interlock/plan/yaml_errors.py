"""What to do about invalid YAML, in words."""

from __future__ import annotations

from typing import Any

import yaml


def explained(error: yaml.YAMLError, text: str) -> tuple[int, int, str]:
    """Return line and column (from 1) of a YAML error, and what to do about it."""
    mark: Any = getattr(error, "problem_mark", None)
    began: Any = getattr(error, "context_mark", None) or mark
    if mark is None:
        return _character(error, text)
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    said = f"{getattr(error, 'context', '')} {getattr(error, 'problem', '')}"
    if "end of stream" in said:
        return began.line + 1, began.column + 1, "the quote that begins here is not closed"
    if "flow" in said and not line.strip():
        return began.line + 1, began.column + 1, "the bracket that opens here is not closed"
    return mark.line + 1, mark.column + 1, _advice(said, line, mark.column)


def _character(error: yaml.YAMLError, text: str) -> tuple[int, int, str]:
    """Find a character that YAML does not allow: libyaml says only which it is."""
    for number, line in enumerate(text.split("\n"), start=1):
        for column, each in enumerate(line, start=1):
            if not (each.isprintable() or each in "\t\r\x85\xa0\ufeff") and ord(each) < 0xA0:
                what = f"the control character U+{ord(each):04X} is not allowed here"
                return number, column, what
    return 0, 0, f"this is not valid YAML: {getattr(error, 'reason', None) or error}"


def _advice(said: str, line: str, column: int) -> str:
    rest = line[column:].lstrip()
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent or rest.startswith("\t") or line[column : column + 1] == "\t":
        return "the line begins with a tab; indent YAML with spaces"
    if ": {{" in line or line.lstrip().startswith(("- {{", "{{")):
        return 'text that begins with {{ must be quoted: "{{...}}"'
    if "alias" in said or rest.startswith("*") or (": *" in line or "- *" in line):
        return 'text that begins with * must be quoted: "*.py"'
    if rest[:1] in ("@", "`", "%"):
        return f"text that begins with {rest[0]} must be quoted"
    if "mapping values are not allowed" in said:
        return (
            "there is a second `: ` in this line, or the line above it is incomplete; quote text "
            "that contains a colon, or indent the line like its neighbours"
        )
    if "',' or ']'" in said or "',' or '}'" in said:
        return (
            "a list in [ ] or a mapping in { } is incomplete here; inside brackets, text with "
            "brackets, braces or commas must be quoted"
        )
    if "escape" in said:
        return "in \"double quotes\" a backslash must be doubled; or use 'single quotes'"
    if "block" in said or "expected ':'" in said:
        return (
            "this line does not fit those above it: check its indentation, and whether a `:` or a "
            "quote is missing"
        )
    return f"this is not valid YAML: {said.strip()}"
