"""The command line: which commands there are, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import typer

from interlock.errors import InterlockError, UsageError
from interlock.views.commands import look, plans, run, setup, steer
from interlock.views.coordinator import Exit
from interlock.views.printing import complain

HELP = """Run a team of agents at once; no two of them touch the same thing at the same time.

Exit codes: 0 all succeeded, 1 some task failed, 2 usage or plan error, 3 deadline reached,
4 merges left conflicted, 130 interrupted (first Ctrl-C: what runs may finish; second: at once).
"""

app = typer.Typer(
    name="interlock",
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for room in (run, look, steer, plans, setup):
    room.add_to(app)


@app.callback()
def _all(
    version: bool = typer.Option(False, "--version", help="Say which version this is."),
) -> None:
    """Options of every command."""


def run_app(arguments: Sequence[str]) -> int:
    """Run a command; the exit code."""
    debug = "--debug" in arguments
    command = typer.main.get_command(app)
    try:
        code = command.main(list(arguments), prog_name="interlock", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except typer.Abort:
        return Exit.INTERRUPTED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except typer.TyperException as error:
        complain(error.format_message())
        return Exit.USAGE
    except BrokenPipeError:
        # Whoever read our output has left; Python would complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.SUCCEEDED
    except InterlockError as error:
        if debug:
            traceback.print_exc()
        complain(str(error))
        return Exit.USAGE if isinstance(error, UsageError) else Exit.FAILED
