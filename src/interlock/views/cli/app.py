"""The command line: which commands there are, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import typer

from interlock.errors import InterlockError, UsageError
from interlock.service.exit_codes import ExitCode
from interlock.views.cli.printing import complain
from interlock.views.terminal.console import discard_output, replace_unencodable

HELP = """Run a team of agents at once; no two of them touch the same thing at the same time.

Exit codes: 0 all succeeded, 1 some task failed, 2 usage or plan error, 3 deadline reached,
4 merges left conflicted, 130 interrupted (first Ctrl-C: what runs may finish; second: at once).
"""

COMMANDS = {
    "interlock.views.cli.commands.run": ("run", "delegate"),
    "interlock.views.cli.commands.multi_run": ("multi-run",),
    "interlock.views.cli.commands.observe": ("status", "why", "logs", "events"),
    "interlock.views.cli.commands.control": (
        "cancel",
        "retry",
        "pause",
        "resume",
        "prioritize",
        "answer",
    ),
    "interlock.views.cli.commands.plan": ("check", "graph"),
    "interlock.views.cli.commands.setup": ("init", "agents", "doctor", "completion", "version"),
}
"""In which file each of them is."""
COMPLETES = "_INTERLOCK_COMPLETE"
"""The variable by which a shell asks what could come next on a line."""


def make_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The program; of a known command only its own file is imported, which halves a look."""
    app = typer.Typer(
        name="interlock",
        help=HELP,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(everything)
    named = {file for file, names in COMMANDS.items() if arguments and arguments[0] in names}
    for file in named or COMMANDS:
        import_module(file).add_to(app)
    return app


def everything(
    version: bool = typer.Option(False, "--version", help="Say which version this is."),
) -> None:
    """Options of the program itself."""


def run_app(arguments: Sequence[str]) -> int:
    """Run a command; the exit code."""
    if COMPLETES in os.environ:
        import_module("typer.completion").completion_init()  # makes its shells known
    replace_unencodable()
    try:
        command = typer.main.get_command(make_app(arguments))
        given = list(arguments) or ["--help"]
        code = command.main(given, prog_name="interlock", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except (typer.Abort, KeyboardInterrupt):
        discard_output()  # or the end would wait for somebody who does not
        return ExitCode.INTERRUPTED
    except typer.TyperException as error:
        complain(f"{error.format_message()} `interlock --help` shows the way.")
        return ExitCode.USAGE
    except BrokenPipeError:
        discard_output()
        return ExitCode.SUCCEEDED
    except InterlockError as error:
        if "--debug" in arguments:
            traceback.print_exc()
        complain(str(error))
        return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.FAILED
