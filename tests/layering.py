"""Which room may import which: the room table of docs/architecture.md, and the check that it holds.

Every import counts, also those inside functions, under TYPE_CHECKING, relative ones, and modules
named by text (`import_module("interlock.runtime")`). `make layering` prints what is wrong.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = "interlock"
SOURCE = Path(__file__).parents[1] / "src" / ROOT

# In the order of the table: a room may import only rooms above it, and itself.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "version": frozenset(),
    "errors": frozenset(),
    "system": frozenset({"errors"}),
    "model": frozenset({"errors"}),
    "plan": frozenset({"errors", "model"}),
    "kernel": frozenset({"errors", "model"}),
    "execution": frozenset({"errors", "system", "model"}),
    "journal": frozenset({"errors", "system", "model"}),
    "runtime": frozenset({"errors", "system", "model", "plan", "kernel", "execution", "journal"}),
    "patterns": frozenset({"errors", "system", "model", "plan", "runtime"}),
    "service": frozenset({"version", "errors", "system", "model", "plan", "journal", "runtime"}),
    "views": frozenset(
        {
            "version",
            "errors",
            "system",
            "model",
            "plan",
            "journal",
            "runtime",
            "service",
        }
    ),
    "testing": frozenset(
        {
            "errors",
            "system",
            "model",
            "plan",
            "kernel",
            "execution",
            "journal",
            "runtime",
            "patterns",
            "service",
        }
    ),
    "__main__": frozenset({"views"}),
    "__init__": frozenset(
        {
            "version",
            "errors",
            "model",
            "plan",
            "kernel",
            "execution",
            "journal",
            "runtime",
            "patterns",
        }
    ),
}

# Rooms that stand on the standard library alone, and what they may have besides.
THIRD_PARTY: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "system": frozenset(),
    "model": frozenset({"pydantic"}),
    "kernel": frozenset(),
}

# The kernel has no clock, no randomness, no I/O, no threads, no async and no log.
# fmt: off
IMPURE_MODULES = frozenset({
    "_thread", "asyncio", "concurrent", "contextvars", "datetime", "fcntl", "http", "importlib",
    "io", "logging", "mmap", "multiprocessing", "os", "pathlib", "queue", "random", "sched",
    "secrets", "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl",
    "subprocess", "tempfile", "threading", "time", "urllib", "uuid", "warnings",
})
# fmt: on
IMPURE_BUILTINS = frozenset({"__import__", "breakpoint", "eval", "exec", "input", "open", "print"})
ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)

DRAWER = re.compile(r"_*(\w+_)?(utils?|helpers?)_*")
COMPUTED = "?"  # stands for a module of ours whose name the source does not spell out
OUR_MODULE = re.compile(rf"{ROOT}(\.\w+)+")


@dataclass(frozen=True, order=True)
class Violation:
    """One breach of the table, where it stands."""

    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}"


@dataclass(frozen=True)
class Module:
    """A parsed source file; `package` is what its relative imports start from."""

    file: str
    room: str
    package: tuple[str, ...]
    tree: ast.Module

    def violation(self, line: int, problem: str) -> Violation:
        return Violation(self.file, line, problem)


def violations(source: Path = SOURCE) -> list[Violation]:
    """All breaches in the package whose folder is `source`."""
    found: list[Violation] = []
    for path in sorted(source.rglob("*.py*")):
        if path.suffix not in {".py", ".pyi"}:
            continue
        inner = path.relative_to(source).with_suffix("").parts
        file = str(path.relative_to(source.parent))
        found += [
            Violation(
                file, 1, f"{part!r} is a drawer, not a room: move it to the room that uses it"
            )
            for part in inner
            if DRAWER.fullmatch(part)
        ]
        if inner[0] not in MAY_IMPORT:
            found.append(Violation(file, 1, f"{inner[0]!r} is not in the table of rooms"))
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError as error:
            found.append(Violation(file, error.lineno or 1, f"cannot be read: {error.msg}"))
            continue
        module = Module(file, inner[0], (ROOT, *inner[:-1]), tree)
        found += _forbidden_imports(module)
        if module.room == "kernel":
            found += _impure_code(module)
    return sorted(set(found))


def _forbidden_imports(module: Module) -> Iterator[Violation]:
    for line, name in _imports(module):
        problem = _problem(module.room, name)
        if problem:
            yield module.violation(line, problem)


def _problem(room: str, name: str) -> str | None:
    """What is wrong with `room` importing the module `name`, if anything."""
    top, *inner = name.split(".")
    if top == ROOT:
        target = inner[0] if inner else "__init__"
        if target not in MAY_IMPORT:
            return f"imports {name}, which is not in the table of rooms"
        if target != room and target not in MAY_IMPORT[room]:
            what = "the public API" if target == "__init__" else f"the room {target!r}"
            return f"{room!r} may not import {what}"
        return None
    if name == COMPUTED:
        return "an import of Interlock that cannot be checked: write the module's name in full"
    if room in THIRD_PARTY and top not in sys.stdlib_module_names | THIRD_PARTY[room]:
        return f"{room!r} may import only the standard library, not {top!r}"
    if room == "kernel" and top in IMPURE_MODULES:
        return f"the kernel is pure: no {name!r}"
    return None


def _imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and full name of each imported module, or `COMPUTED`."""
    loaders = {"import_module", "__import__", "resolve_name"}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            loaders |= {n.asname for n in node.names if n.asname and n.name in loaders}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module.package, node.level, node.module)
            for alias in node.names:
                # `from interlock import model` names a room, `from interlock import Task` the API.
                room = base == ROOT and alias.name in MAY_IMPORT
                yield node.lineno, f"{base}.{alias.name}" if room else base
        elif isinstance(node, ast.Call) and _called(node) in loaders:
            yield from ((node.lineno, name) for name in _loaded(module, node))


def _loaded(module: Module, call: ast.Call) -> Iterator[str]:
    """The modules that a call such as `import_module(name, package)` may import."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    argument = call.args[0] if call.args else named.get("name")
    if argument is None:
        return
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        dotted = argument.value.partition(":")[0]
        inner = dotted.lstrip(".")
        package = module.package
        if inner != dotted:
            base = call.args[1] if len(call.args) > 1 else named.get("package")
            if isinstance(base, ast.Constant) and isinstance(base.value, str):
                package = tuple(base.value.split("."))
            elif not (isinstance(base, ast.Name) and base.id == "__package__"):
                package = ()
        yield _absolute(package, len(dotted) - len(inner), inner)
        return
    if any(t.startswith((ROOT, ".")) and not OUR_MODULE.fullmatch(t) for t in _texts(argument)):
        yield COMPUTED
    # A name from elsewhere. It may be a user's module, which is no business of the table; or it
    # comes from a list of ours in the same file, so whatever looks like our module counts.
    yield from (text for text in _texts(module.tree) if OUR_MODULE.fullmatch(text))


def _absolute(package: tuple[str, ...], level: int, name: str | None) -> str:
    """The full name of a module that is written with `level` dots in `package`."""
    if level == 0:
        return name or COMPUTED
    if level > len(package):
        return COMPUTED
    return ".".join([*package[: len(package) - level + 1], *([name] if name else [])])


def _called(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _impure_code(module: Module) -> Iterator[Violation]:
    for node in ast.walk(module.tree):
        if isinstance(node, ASYNC):
            yield module.violation(node.lineno, "the kernel is pure: no async")
        elif isinstance(node, ast.Name) and node.id in IMPURE_BUILTINS:
            yield module.violation(node.lineno, f"the kernel is pure: no {node.id}()")


def main() -> int:
    found = violations()
    for violation in found:
        print(violation)
    if not found:
        print("layering: every import is allowed by the table of rooms")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
