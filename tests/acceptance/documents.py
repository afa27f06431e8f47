"""The code of a document, run as its readers would run it: as a script, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_EXAMPLE = re.compile(
    r"^```python\n(.*?)^```$(?:\s+^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
_BETWEEN = "<<< next block >>>"
_TIMES = (
    re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{8}\b"),
    re.compile(r"\b\d\d:\d\d:\d\d\b"),
    re.compile(r"\b\d+(\.\d+)?(?= s\b)"),
    re.compile(r"(?<=duration=)[\d.e-]+"),
)


class Example(NamedTuple):
    """Code, and what the document says it prints; None where it says nothing."""

    code: str
    printed: str | None


def read(name: str) -> str:
    """The text of a document."""
    return (ROOT / name).read_text(encoding="utf-8")


def examples(text: str) -> list[Example]:
    """The blocks of Python in a document; a block of text right after one is what it prints."""
    return [Example(*found.groups()) for found in _EXAMPLE.finditer(text)]


def printed_by(shown: list[Example], folder: Path) -> list[str]:
    """What the examples print when they are run one after another in one script."""
    script = folder / "document.py"
    parts = [each.code for each in shown]
    script.write_text(f"\nprint({_BETWEEN!r})\n".join(parts), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "utf8", script.name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(f"{_BETWEEN}\n")


def timeless(text: str) -> str:
    """Without times, lengths of time and names of runs, which are different every time."""
    for pattern in _TIMES:
        text = pattern.sub("0", text)
    return text


def check(name: str, folder: Path) -> int:
    """Run all examples of a document and compare what they print; how many there are."""
    shown = examples(read(name))
    for example, printed in zip(shown, printed_by(shown, folder), strict=True):
        assert timeless(printed) == timeless(example.printed or ""), example.code
    return len(shown)


def missing_links(name: str) -> list[str]:
    """What a document links to and is not there."""
    folder = (ROOT / name).parent
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(name))
    return [target for target in targets if not (folder / target).is_file()]


def missing_headings(name: str) -> list[str]:
    """Links of a document to headings, here or in other documents, that are not there."""
    found = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", read(name))
    folder = (ROOT / name).parent
    return [
        f"{file}#{heading}"
        for file, heading in found
        if heading not in _headings(folder / file if file else ROOT / name)
    ]


def _headings(path: Path) -> set[str]:
    """The headings of a document, spelled as links to them are."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.M)
    }
