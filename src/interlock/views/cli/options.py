"""Arguments and options that several commands have in common."""

from __future__ import annotations

from typing import Annotated

import typer

TaskId = Annotated[str, typer.Argument(help="The id of a task.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
