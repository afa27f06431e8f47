"""Writes docs/commands.md from the program: `python -m tools.commands_reference`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from interlock.views.cli.app import COMMANDS, HELP
from tools.reference_facts import facts
from tools.reference_json import names_in_json

FILE = Path("docs/commands.md")
RENEW = "python -m tools.commands_reference"

_HEAD = f"""\
# The command line: reference

Generated from the program by `{RENEW}`, run at the root of the repository. The
[tutorial](tutorial.md) shows most commands in use, [plan.md](plan.md) explains the files, and
[troubleshooting.md](troubleshooting.md) says what to do when something goes wrong.

{{purpose}}

Every command has `--help`. It works in the project of the current folder: the nearest folder above
with an `interlock.yaml` or a journal. Commands that only read work during a run and after it;
commands that control a run need one that is in progress.
"""


class Parameter:
    """An argument or an option of a command."""

    def __init__(self, name: str, hint: Any, default: Any) -> None:
        self.kind, info = _split_annotation(hint)
        self.name = name
        self.default = default
        self.help: str = info.help or ""
        self.is_option = isinstance(info, OptionInfo)
        self.is_list = get_origin(self.kind) is list
        # In an annotation, Typer keeps the first name in the place of the default.
        named = (info.default, *(info.param_decls or ()))
        self._declared = [each for each in named if isinstance(each, str)]

    @property
    def usage(self) -> str:
        """An argument as it stands in the usage line."""
        name = self.name.upper() + ("..." if self.is_list else "")
        return name if self.default is inspect.Parameter.empty else f"[{name}]"

    @property
    def row(self) -> str:
        """Its row in the table of the command."""
        spelled = ", ".join(f"`{each}`" for each in self._spelled())
        return f"| {spelled} | {self.help}{self._default()} |"

    def _spelled(self) -> list[str]:
        if not self.is_option:
            return [self._choices() or self.usage.strip("[]")]
        names = sorted(self._declared, key=len) or [f"--{self.name.replace('_', '-')}"]
        return [*names[:-1], f"{names[-1]} {self._value()}".rstrip()]

    def _value(self) -> str:
        kind = get_args(self.kind)[0] if self.is_list else self.kind
        return self._choices() or {bool: "", int: "N"}.get(kind, "TEXT")

    def _choices(self) -> str:
        is_one_of = isinstance(self.kind, type) and issubclass(self.kind, StrEnum)
        return "/".join(self.kind) if is_one_of else ""

    def _default(self) -> str:
        plain = self.default in (None, False, inspect.Parameter.empty)
        return "" if plain else f" Default: `{self.default}`."


def _split_annotation(hint: Any) -> tuple[Any, OptionInfo | ArgumentInfo]:
    kind, *notes = get_args(hint)
    if isinstance(kind, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    return kind, next(each for each in notes if isinstance(each, OptionInfo | ArgumentInfo))


def parameters(function: Callable[..., Any]) -> list[Parameter]:
    """The arguments and options of a command."""
    hints = get_type_hints(function, include_extras=True)
    return [
        Parameter(name, hints[name], parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if hints[name] is not typer.Context
    ]


def commands() -> Iterator[tuple[str, dict[str, Callable[..., Any]]]]:
    """For each file of commands: what they are for, and the commands by name."""
    for file, names in COMMANDS.items():
        app = typer.Typer()
        module = import_module(file)
        module.add_to(app)
        found = [each.callback for each in app.registered_commands if each.callback is not None]
        purpose = (module.__doc__ or "").partition("\n")[0].partition(": ")[2]
        yield purpose[0].upper() + purpose[1:].rstrip("."), dict(zip(names, found, strict=True))


def page() -> str:
    """The whole page."""
    purpose = HELP.partition("\n\n")[0]
    parts = [_HEAD.format(purpose=purpose)]
    for title, found in commands():
        parts.append(f"## {title}\n")
        parts += [_command(name, function) for name, function in found.items()]
    return "\n".join([*parts, *facts(), *names_in_json()])


def _command(name: str, function: Callable[..., Any]) -> str:
    taken = parameters(function)
    usage = [each.usage for each in taken if not each.is_option]
    if any(each.is_option for each in taken):
        usage.insert(0, "[OPTIONS]")
    says = " ".join(inspect.cleandoc(function.__doc__ or "").split())
    lines = [f"### {name}", "", f"`{' '.join(['interlock', name, *usage])}`", "", says, ""]
    if taken:
        lines += ["| | |", "|---|---|", *(each.row for each in taken), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    if not FILE.parent.is_dir():
        sys.exit(f"there is no folder {FILE.parent}/ here; run this at the root of the repository")
    FILE.write_text(page(), encoding="utf-8")
    print(f"Wrote {FILE}.")
