"""Agents of the project file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from interlock.errors import InvalidOption
from interlock.model.claim import Claim, uses
from interlock.model.command import PROMPT, PROMPT_FILE, Command
from interlock.model.limits import Retry
from interlock.plan.composite_kinds import RecordValues
from interlock.plan.literal_secrets import ELSEWHERE, names_a_secret
from interlock.plan.node import ScalarNode
from interlock.plan.problems import Problems
from interlock.plan.records import AgentSpec, Position

SHELL_PROMPT: Final = "INTERLOCK_PROMPT"
"""The environment variable with the prompt, for command lines that a shell runs."""
SHELL_PROMPT_FILE: Final = "INTERLOCK_PROMPT_FILE"

_FOR_A_SHELL = re.compile(r"[|&;<>()$`\n*?\[\]#~!]|^\s*[A-Za-z_]\w*=")
_OF_A_PROGRAM = ("env", "pass_env", "secrets", "stdin", "home", "errors", "check", "preset")
_REFERS = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")


def agent_of(name: str, found: RecordValues, problems: Problems) -> AgentSpec:
    """Return the agent that was read under a name."""
    _check_kind(found, problems)
    command = _command(name, found, problems) if found.says("command") else None
    instances = found.get("instances")
    at = found.node
    return AgentSpec(
        name,
        command,
        found.get("python"),
        found.get("process", False),
        found.get("owns", ()),
        instances,
        found.get("workspace", "shared"),
        found.get("guard", "none"),
        _uses(name, found, instances),
        found.get("timeout"),
        retry(found.get("attempts"), found.get("backoff")),
        found.get("secrets", ()),
        found.get("description", ""),
        Position(problems.file, at.line, at.column),
    )


def retry(attempts: int | None, backoff: float | None) -> Retry | None:
    """Return the retry policy; None if the file has none."""
    if attempts is None and backoff is None:
        return None
    first = 1.0 if backoff is None else backoff
    return Retry(attempts or 1, first, max(60.0, first))


def _uses(name: str, found: RecordValues, instances: int | None) -> tuple[Claim, ...]:
    limits = tuple(uses(each) for each in found.get("limits", ()))
    one = () if instances is None else (uses(f"agent:{name}"),)
    return (*found.get("uses", ()), *limits, *one)


def _check_kind(found: RecordValues, problems: Problems) -> None:
    has_command, has_python = found.says("command"), found.says("python")
    if has_command and has_python:
        problems.add(
            found.key_at("python"),
            found.path("python"),
            "there is already a `command`; keep one of them",
        )
    elif not has_command and not has_python and found.is_right:
        problems.add(
            found.node,
            found.field,
            "it has neither a command nor a Python function; add `command: [program, '{prompt}']` "
            "or `python: module:function`",
        )
    elif has_python:
        for name in _OF_A_PROGRAM:
            if found.says(name):
                problems.add(
                    found.key_at(name),
                    found.path(name),
                    "this is for programs; a Python agent has the environment of Interlock itself",
                )
    elif found.says("process"):
        problems.add(
            found.key_at("process"),
            found.path("process"),
            "this is for Python agents; a program always has a process of its own",
        )


def _command(name: str, found: RecordValues, problems: Problems) -> Command | None:
    env = _checked_env(found, problems)
    line = found.get("command")
    if line is None:
        return None
    if isinstance(line, str):
        argv, more = _argv(line, found, problems)
        env = {**more, **env}
        if not argv:
            return None
    else:
        argv = list(line)
    errors = found.get("errors")
    try:
        return Command(
            argv,
            name=name,
            stdin=found.get("stdin", ""),
            env=env,
            pass_env=found.get("pass_env", ()),
            errors=errors.values if errors is not None else None,
            check=found.get("check"),
            home=found.get("home", "user"),
        )
    except InvalidOption as error:
        problems.add(found.at("command"), found.path("command"), str(error))
        return None


def _argv(line: str, found: RecordValues, problems: Problems) -> tuple[list[str], dict[str, str]]:
    """Split a command line into arguments. It goes to a shell only if it contains shell syntax."""
    at, field = found.at("command"), found.path("command")
    if _FOR_A_SHELL.search(line) is None:
        try:
            return shlex.split(line), {}
        except ValueError:
            problems.add(at, field, "a quote is not closed in this command line")
            return [], {}
    for written, variable in ((PROMPT, SHELL_PROMPT), (PROMPT_FILE, SHELL_PROMPT_FILE)):
        if written in line:
            problems.add(
                at,
                field,
                f"a shell runs this line and would take {written} for code; "
                f'write "${variable}" instead, or the command as a list',
            )
    env = {}
    if re.search(rf"\$\{{?{SHELL_PROMPT}\b", line):
        env[SHELL_PROMPT] = PROMPT
    if re.search(rf"\$\{{?{SHELL_PROMPT_FILE}\b", line):
        env[SHELL_PROMPT_FILE] = PROMPT_FILE
    return ["sh", "-c", line], env


def _checked_env(found: RecordValues, problems: Problems) -> dict[str, str]:
    env: dict[str, str] = found.get("env", {})
    node = found.at("env")
    entries: Mapping[str, Any] = getattr(node, "entries", {})
    for name, value in env.items():
        at: ScalarNode = entries[name][0]
        field = f"{found.path('env')}.{name}"
        refers = _REFERS.fullmatch(value)
        if refers is not None:
            where = "secrets" if names_a_secret(refers[1]) else "pass_env"
            problems.add(
                at,
                field,
                f"variables are not expanded here; list {refers[1]!r} under `{where}` instead",
            )
        elif names_a_secret(name) and value.strip() and PROMPT not in value:
            problems.add(at, field, f"{name!r} looks like the name of a secret; {ELSEWHERE}")
    return env
