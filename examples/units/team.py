"""A stand-in for a coding agent: `python3 team.py PROMPT` does what its task is called for.

The files and the programs are real. Where an agent would wait for its model, it pauses: PACE=0.1
makes the pauses ten times as short. Every attempt notes in `$WITNESS`, if there is such a variable,
when it was at work, by its own clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

PACE = float(os.environ.get("PACE", "1"))
HERE = Path.cwd()

SCHEMA = {
    "length": {"foot": "x / 0.3048", "mile": "x / 1609.344"},
    "mass": {"pound": "x / 0.45359237"},
    "heat": {"kelvin": "x + 273.15", "fahrenheit": "x * 9 / 5 + 23"},
}
"""The last formula has a slip of the pen, which `check` finds."""

TESTS = """\
import unittest
from units import heat, length

class Conversions(unittest.TestCase):
    def test_a_mile_has_1609_metres(self):
        self.assertEqual(length.mile(1609.344), 1)

    def test_water_boils_at_212_fahrenheit(self):
        self.assertEqual(heat.fahrenheit(100), 212)
"""
GERMAN = {"length": "Länge", "foot": "Fuß", "mile": "Meile", "is": "ist"}


def think(seconds: float, about: str) -> None:
    print(about, file=sys.stderr, flush=True)
    time.sleep(seconds * PACE)  # noqa: TID251 - here an agent would wait for its model


def schema() -> str:
    think(0.8, "writing schema.json")
    write("schema.json", json.dumps(SCHEMA, indent=2))
    return f"{len(SCHEMA)} quantities"


def code() -> str:
    write("src/units/__init__.py", "")
    for quantity, units in read_schema().items():
        think(0.6, f"writing src/units/{quantity}.py")
        functions = [f"def {name}(x):\n    return {formula}\n" for name, formula in units.items()]
        write(f"src/units/{quantity}.py", "\n\n".join(functions))
    return f"{len(SCHEMA)} modules"


def tests() -> str:
    think(1.2, "writing tests/test_units.py")
    write("tests/test_units.py", TESTS)
    return f"{TESTS.count('def test')} tests"


def page(quantity: str) -> str:
    think({"length": 1.0, "mass": 0.6, "heat": 1.4}[quantity], f"writing docs/{quantity}.md")
    rows = [f"- {name} is {formula}" for name, formula in read_schema()[quantity].items()]
    write(f"docs/{quantity}.md", "\n".join([f"# {quantity}", *rows, ""]))
    return f"docs/{quantity}.md"


def german() -> str:
    think(1.2, "translating docs/length.md")
    if os.environ["INTERLOCK_ATTEMPT"] == "1":
        sys.exit("the translator is busy")  # as a service that is asked too much would answer
    lines = read("docs/length.md").splitlines()
    text = [" ".join(GERMAN.get(word, word) for word in line.split(" ")) for line in lines]
    write("docs/de/length.md", "\n".join(text))
    return "docs/de/length.md"


def index() -> str:
    think(1.4, "writing docs/index.md")
    docs = HERE / "docs"
    pages = sorted(docs.rglob("*.md"))
    links = [f"- [{each.read_text().split()[1]}]({each.relative_to(docs)})" for each in pages]
    write("docs/index.md", "\n".join(["# Units", *links, ""]))
    return f"{len(pages)} pages"


def docstrings() -> str:
    modules = sorted((HERE / "src").rglob("*.py"))
    for module in modules:
        think(0.3, f"rewriting {module.relative_to(HERE)}")
        module.write_text(f'"""Converts units of {module.stem}."""\n\n{module.read_text()}')
    return f"{len(modules)} modules"


def compile_() -> str:
    think(1.2, "python -m compileall src")
    # -B: or Python would put what it compiles for itself there as well.
    python("-B", "-m", "compileall", "-q", "src", PYTHONPYCACHEPREFIX="build")
    return f"{len(list((HERE / 'build').rglob('*.pyc')))} files"


def check() -> str:
    think(1.0, "python -m unittest discover tests")
    python("-B", "-m", "unittest", "discover", "tests", PYTHONPATH="src")
    return "all tests pass"


def package() -> str:
    think(0.8, "packing dist/units.zip")
    (HERE / "dist").mkdir()
    with zipfile.ZipFile(HERE / "dist" / "units.zip", "w") as archive:
        for module in sorted((HERE / "src").rglob("*.py")):
            archive.write(module, module.relative_to(HERE / "src"))
    return "dist/units.zip"


def announce() -> str:
    think(0.6, "writing docs/news.md")
    size = (HERE / "dist" / "units.zip").stat().st_size
    write("docs/news.md", f"# News\n\nunits.zip is out: {size} bytes.\n")
    return "docs/news.md"


def read(path: str) -> str:
    return (HERE / path).read_text(encoding="utf-8")


def read_schema() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(read("schema.json"))
    return found


def write(path: str, text: str) -> None:
    (HERE / path).parent.mkdir(parents=True, exist_ok=True)
    (HERE / path).write_text(text, encoding="utf-8")


def python(*arguments: str, **variables: str) -> None:
    """Run Python; its failure is ours."""
    done = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **variables}, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)


ACTS: dict[str, Callable[[], str]] = {
    "schema": schema,
    "code": code,
    "tests": tests,
    "german": german,
    "index": index,
    "docstrings": docstrings,
    "compile": compile_,
    "check": check,
    "package": package,
    "announce": announce,
    **{f"page-{quantity}": partial(page, quantity) for quantity in SCHEMA},
}


def main() -> None:
    began = time.monotonic()
    name = os.environ["INTERLOCK_TASK"].partition("~")[0]
    try:
        print(ACTS[name]())
    finally:
        witness = os.environ.get("WITNESS")
        if witness:
            with open(witness, "a", encoding="utf-8") as file:
                file.write(f"{name} {began} {time.monotonic()}\n")


if __name__ == "__main__":
    main()
