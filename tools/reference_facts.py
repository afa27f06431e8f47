"""Sections of the reference on what programs rely on: exit codes, variables, files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlock.service.exit_codes import ExitCode

EXITS = {
    ExitCode.SUCCEEDED: "all succeeded; a command that looks or steers did what it was asked",
    ExitCode.FAILED: "some task did not succeed; `doctor` found something",
    ExitCode.USAGE: "wrong use, or an error in a project or plan file; nothing was started",
    ExitCode.DEADLINE: "the deadline came first",
    ExitCode.CONFLICTED: "merges left conflicted (there is no merging yet)",
    ExitCode.INTERRUPTED: "interrupted: by the first Ctrl-C what runs may finish, by the second "
    "not; `interlock run --resume` goes on",
}

VARIABLES = {
    "NO_COLOR": "set to anything: no colours; the live view stays, since nothing is said by colour "
    "alone",
    "TERM": "`dumb`: no live view, one line for what matters",
    "CI": "set to anything: the same, as if `--headless` were said",
    "COLUMNS": "how wide the output is; otherwise as wide as the terminal, or 80",
    "INTERLOCK_CONTAINMENT": "how programs are kept together, so that nothing of them is left: "
    "`namespace`, `cgroup`, `subreaper` or `group`; otherwise the strongest there is "
    "([programs as agents](agents.md#how-it-is-stopped))",
}
"""Those that the program itself reads."""

GIVEN = {
    "INTERLOCK_RUN": "the run",
    "INTERLOCK_TASK": "the id of the task",
    "INTERLOCK_ATTEMPT": "which attempt this is, from 1",
    "INTERLOCK_WORKSPACE": "the folder of the project",
    "INTERLOCK_PROMPT": "the prompt, for a command line that a shell runs",
    "INTERLOCK_PROMPT_FILE": "the path of a file with the prompt, in the same case",
    "TMPDIR": "a folder for this attempt alone, removed with it",
}
"""Those that a program gets from us."""

FILES = {
    ".gitignore": "keeps the folder out of git",
    "journal.db": "the record of all runs ([durable runs](durable.md)), with its `-wal` and `-shm`",
    "journal.db.lock": "held by who carries out a run; the file itself means nothing",
    "journal.db.agents.lock": "held by agents; the next run begins nothing before they are gone",
    "control.sock": "the way to a run that goes on, for its owner only (mode 0600)",
    "interlock.log": "the log of all runs, 5 MB and two older files (`.1`, `.2`)",
    "logs/RUN/TASK/ATTEMPT.log": "what a program has printed",
    "tmp/": "the TMPDIR and prompts of attempts that run",
    "agents/": "who has a name to itself, by `AgentRegistry.register` ([queue](systems/queue.md))",
}
"""All that is below `.interlock/`."""


def facts() -> Iterator[str]:
    """The sections, one after another."""
    yield "## Exit codes\n"
    yield table({str(int(code)): EXITS[code] for code in ExitCode}, "| code | |")
    yield "## Variables\n\nThe program reads these:\n"
    yield table(VARIABLES)
    yield "Programs get these, besides [the variables they may see](agents.md#environment):\n"
    yield table(GIVEN)
    yield "## Files\n\nAll that Interlock writes for itself is in `.interlock/`:\n"
    yield table(FILES)


def table(rows: Mapping[str, str], head: str = "| | |") -> str:
    """Rows of names, several of them with commas between, and what is said of them."""
    lines = [
        f"| {', '.join(f'`{each}`' for each in key.split(', '))} | {says} |"
        for key, says in rows.items()
    ]
    return "\n".join([head, "|---|---|", *lines, ""])
