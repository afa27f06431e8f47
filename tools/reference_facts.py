"""Sections of the reference on what programs rely on: exit codes, variables, files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlock.service.exit_codes import ExitCode

EXITS = {
    ExitCode.SUCCEEDED: "every task succeeded; for other commands: success",
    ExitCode.FAILED: "some task did not succeed; `doctor` found a problem",
    ExitCode.USAGE: "wrong usage, or an error in a project or plan file; nothing was started",
    ExitCode.DEADLINE: "the deadline of the run passed",
    ExitCode.CONFLICTED: "merge conflicts are left (there is no merging yet)",
    ExitCode.INTERRUPTED: "interrupted: after the first Ctrl-C running tasks may finish, after the "
    "second they are stopped; `interlock run --resume` continues",
}

VARIABLES = {
    "NO_COLOR": "if set: no colours; the live view stays, since no information is given by colour "
    "alone",
    "TERM": "`dumb`: no live view, one line per important event",
    "CI": "if set: the same, as with `--headless`",
    "COLUMNS": "the width of the output; by default that of the terminal, or 80",
    "INTERLOCK_CONTAINMENT": "how the processes of a program are contained, so that none is left "
    "running: `namespace`, `cgroup`, `subreaper` or `group`; by default the strongest available "
    "([programs as agents](agents.md#how-it-is-stopped))",
}
"""Variables that the program reads."""

GIVEN = {
    "INTERLOCK_RUN": "the id of the run",
    "INTERLOCK_TASK": "the id of the task",
    "INTERLOCK_ATTEMPT": "the number of the attempt, from 1",
    "INTERLOCK_WORKSPACE": "the folder of the project",
    "INTERLOCK_PROMPT": "the prompt, if the command is run by a shell",
    "INTERLOCK_PROMPT_FILE": "the path of a file with the prompt, likewise",
    "TMPDIR": "a folder of this attempt, removed when it has ended",
}
"""Variables that programs receive."""

FILES = {
    ".gitignore": "keeps the folder out of git",
    "journal.db": "the record of all runs ([durable runs](durable.md)), with its `-wal` and `-shm`",
    "journal.db.lock": "locked while a run is in progress; the file itself means nothing",
    "journal.db.agents.lock": "locked by agents; the next run starts nothing until they exit",
    "control.sock": "the control socket of a run, for its owner only (mode 0600)",
    "interlock.log": "the log of all runs: 5 MB, and two older files (`.1`, `.2`)",
    "logs/RUN/TASK/ATTEMPT.log": "the output of a program",
    "tmp/": "the TMPDIR and the prompts of running attempts",
    "agents/": "names reserved by `AgentRegistry.register` ([queue](systems/queue.md))",
}
"""Everything below `.interlock/`."""


def facts() -> Iterator[str]:
    """The sections, one after another."""
    yield "## Exit codes\n"
    yield table({str(int(code)): EXITS[code] for code in ExitCode}, "| code | |")
    yield "## Variables\n\nThe program reads these:\n"
    yield table(VARIABLES)
    yield "Programs get these, besides [the variables they may see](agents.md#environment):\n"
    yield table(GIVEN)
    yield "## Files\n\nInterlock keeps its own files in `.interlock/`:\n"
    yield table(FILES)


def table(rows: Mapping[str, str], head: str = "| | |") -> str:
    """A table of names (several in one row are separated by commas) and their descriptions."""
    lines = [
        f"| {', '.join(f'`{each}`' for each in key.split(', '))} | {says} |"
        for key, says in rows.items()
    ]
    return "\n".join([head, "|---|---|", *lines, ""])
