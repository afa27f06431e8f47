"""The command line: which commands there are, and how their errors are reported."""

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

Exit codes: 0 every task succeeded, 1 some task did not succeed, 2 usage or plan error,
3 deadline passed, 4 merge conflicts are left, 130 interrupted.

Ctrl-C: let running tasks finish (up to 30 s), then stop. Press it again to stop at once.
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
"""The module in which each command is."""
COMPLETION_VARIABLE = "_INTERLOCK_COMPLETE"
"""Set by a shell that asks how a command line could continue."""


def make_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The program. For a known command only its own module is imported: `status` starts faster."""
    app = typer.Typer(
        name="interlock",
        help=HELP,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(program_options)
    named = {file for file, names in COMMANDS.items() if arguments and arguments[0] in names}
    for file in named or COMMANDS:
        import_module(file).add_to(app)
    return app


def program_options(
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    """Options of the program itself."""


def run_app(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    if COMPLETION_VARIABLE in os.environ:
        import_module("typer.completion").completion_init()  # registers the shells
    replace_unencodable()
    try:
        command = typer.main.get_command(make_app(arguments))
        given = list(arguments) or ["--help"]
        code = command.main(given, prog_name="interlock", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except (typer.Abort, KeyboardInterrupt):
        discard_output()  # a reader that is stuck must not delay the exit
        return ExitCode.INTERRUPTED
    except typer.TyperException as error:
        message = error.format_message()
        stop = "" if message.endswith((".", "?", "!")) else "."
        complain(f"{message}{stop} See `interlock --help`.")
        return ExitCode.USAGE
    except BrokenPipeError:
        discard_output()
        return ExitCode.SUCCEEDED
    except InterlockError as error:
        if "--debug" in arguments:
            traceback.print_exc()
        complain(str(error))
        return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.FAILED
