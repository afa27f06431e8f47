"""What the agents of the demo do: a library that converts units, with its tests and its pages.

The files and the programs are real. An agent that would ask a model pauses instead (`ctx.sleep`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from interlock import AgentFailed, TaskContext

SLIP = "x * 9 / 5 + 23"
"""The formula for Fahrenheit with a slip of the pen, which `check` finds."""
RIGHT = "x * 9 / 5 + 32"

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


async def write_schema(ctx: TaskContext, fahrenheit: str, seconds: float) -> str:
    ctx.report(0, "writes schema.json")
    await ctx.sleep(seconds)
    schema = {
        "length": {"foot": "x / 0.3048", "mile": "x / 1609.344"},
        "mass": {"pound": "x / 0.45359237"},
        "heat": {"kelvin": "x + 273.15", "fahrenheit": fahrenheit},
    }
    _write(ctx.workspace / "schema.json", json.dumps(schema, indent=2))
    return f"{len(schema)} quantities"


async def write_code(ctx: TaskContext, seconds: float) -> str:
    schema = _schema(ctx)
    _write(ctx.workspace / "src" / "units" / "__init__.py", "")
    for done, (quantity, units) in enumerate(schema.items()):
        file = f"src/units/{quantity}.py"
        ctx.report(done / len(schema), f"writes {file}")
        await ctx.sleep(seconds / len(schema))
        functions = [f"def {name}(x):\n    return {formula}\n" for name, formula in units.items()]
        _write(ctx.workspace / file, "\n\n".join(functions))
    return f"{len(schema)} modules"


async def write_tests(ctx: TaskContext, seconds: float) -> str:
    ctx.report(0, "writes tests/test_units.py")
    await ctx.sleep(seconds)
    _write(ctx.workspace / "tests" / "test_units.py", TESTS)
    return f"{TESTS.count('def test')} tests"


async def write_page(ctx: TaskContext, quantity: str, seconds: float) -> str:
    ctx.report(0, f"writes docs/{quantity}.md from schema.json")
    await ctx.sleep(seconds)
    units = _schema(ctx)[quantity]
    rows = [f"- {name} is {formula}" for name, formula in units.items()]
    _write(ctx.workspace / "docs" / f"{quantity}.md", "\n".join([f"# {quantity}", *rows, ""]))
    return f"docs/{quantity}.md"


async def translate(ctx: TaskContext, seconds: float) -> str:
    ctx.report(0, "translates docs/length.md")
    await ctx.sleep(seconds)
    if ctx.attempt == 1:  # as a service that is asked too much would answer
        raise AgentFailed("the translator is busy")
    page = _read(ctx.workspace / "docs" / "length.md")
    _write(
        ctx.workspace / "docs" / "de" / "length.md",
        "\n".join(
            " ".join(GERMAN.get(word, word) for word in line.split(" "))
            for line in page.splitlines()
        ),
    )
    return "docs/de/length.md"


async def write_index(ctx: TaskContext, seconds: float) -> str:
    docs = ctx.workspace / "docs"
    ctx.report(0, "writes docs/index.md from all pages")
    await ctx.sleep(seconds)
    pages = sorted(docs.rglob("*.md"))
    links = [f"- [{_read(page).split()[1]}]({page.relative_to(docs)})" for page in pages]
    _write(docs / "index.md", "\n".join(["# Units", *links, ""]))
    return f"{len(pages)} pages"


async def write_docstrings(ctx: TaskContext, seconds: float) -> str:
    modules = sorted((ctx.workspace / "src").rglob("*.py"))
    for done, module in enumerate(modules):
        ctx.report(done / len(modules), f"rewrites {module.relative_to(ctx.workspace)}")
        await ctx.sleep(seconds / len(modules))
        _write(module, f'"""Converts units of {module.stem}."""\n\n{_read(module)}')
    return f"{len(modules)} modules"


def compile_code(ctx: TaskContext, seconds: float) -> str:
    ctx.report(0, "python -m compileall src")
    ctx.sleep(seconds).wait()
    # -B: or Python would put what it compiles for itself there as well.
    _python(ctx, "-B", "-m", "compileall", "-q", "src", PYTHONPYCACHEPREFIX="build")
    return f"{len(list((ctx.workspace / 'build').rglob('*.pyc')))} files"


def run_tests(ctx: TaskContext, seconds: float) -> str:
    ctx.report(0, "python -m unittest discover tests")
    ctx.sleep(seconds).wait()
    done = _python(ctx, "-B", "-m", "unittest", "discover", "tests", PYTHONPATH="src")
    return done.stderr.strip().splitlines()[-1]


async def pack(ctx: TaskContext, seconds: float) -> str:
    ctx.report(0, "packs src/ into dist/units.zip")
    await ctx.sleep(seconds)
    (ctx.workspace / "dist").mkdir()
    with zipfile.ZipFile(ctx.workspace / "dist" / "units.zip", "w") as archive:
        for module in sorted((ctx.workspace / "src").rglob("*.py")):
            archive.write(module, module.relative_to(ctx.workspace / "src"))
    return "dist/units.zip"


async def announce(ctx: TaskContext, seconds: float) -> str:
    ctx.report(0, "writes docs/news.md")
    await ctx.sleep(seconds)
    package = ctx.workspace / str(ctx.results["package"].result)
    news = f"# News\n\n{package.name} is out: {package.stat().st_size} bytes.\n"
    _write(ctx.workspace / "docs" / "news.md", news)
    return "docs/news.md"


def _schema(ctx: TaskContext) -> dict[str, dict[str, str]]:
    """For each quantity its units, and the formula for each."""
    schema: dict[str, dict[str, str]] = json.loads(_read(ctx.workspace / "schema.json"))
    return schema


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _python(
    ctx: TaskContext, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in the workspace; its failure is the failure of the attempt."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ctx.workspace,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "Error" in line]
        raise AgentFailed((said or ["it failed"])[-1], retryable=False)
    return done
