"""The environment of a program: a few of our variables, those it is given, and its prompt."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from interlock.execution.backend import CommandJob, marks
from interlock.model.redaction import Redaction

_PLACE = re.compile(r"\{prompt(_file)?\}")

_ALLOWED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL"),
        *("LANG", "LANGUAGE", "TZ"),
        *("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
        *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"),
        "XDG_RUNTIME_DIR",
    }
)
"""Where programs and the user's settings are, the language, the terminal, and the network."""


class AttemptPaths(NamedTuple):
    """The temporary folders and files of one attempt."""

    tmp: Path
    prompt_file: Path
    home: Path | None


def fill_prompt(text: str, prompt: str, prompt_file: Path) -> str:
    """Fill the prompt into a text of the command. Placeholders in the prompt itself stay."""
    return _PLACE.sub(lambda found: str(prompt_file) if found[1] else prompt, text)


def make_environment(
    command_job: CommandJob, paths: AttemptPaths, ours: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a program, made of `ours` and what it is given."""
    command = command_job.command
    env = {name: value for name, value in ours.items() if _is_allowed(name)}
    env = _without_secrets(env, command_job.redaction)
    known = {**command_job.secrets, **ours}
    env |= {name: known[name] for name in command.pass_env if name in known}
    if paths.home is not None:
        env["HOME"] = str(paths.home)
    env["TMPDIR"] = str(paths.tmp)
    env |= command_job.workspace.environment
    for name, value in command.env.items():
        env[name] = fill_prompt(value, command_job.prompt, paths.prompt_file)
    env["INTERLOCK_ATTEMPT"] = str(command_job.attempt)
    env["INTERLOCK_WORKSPACE"] = str(command_job.workspace.folder)
    return env | marks(command_job.run_id, command_job.task_id)


def _is_allowed(name: str) -> bool:
    return name in _ALLOWED or name.startswith("LC_")


def _without_secrets(env: dict[str, str], redaction: Redaction) -> dict[str, str]:
    """Remove variables that contain a declared secret, as a proxy with a password does.

    A program gets a secret only if its command names the variable.
    """
    return {name: value for name, value in env.items() if not redaction.is_in(value)}


def encode_environment(env: Mapping[str, str]) -> dict[bytes, bytes]:
    """Encode an environment for the system; ValueError for text that it does not accept."""
    return {_checked(name): _checked(value) for name, value in env.items()}


def encode_argument(text: str) -> bytes:
    """Encode an argument for the system; ValueError for text that it does not accept."""
    return _checked(text)


def _checked(text: str) -> bytes:
    if "\0" in text:
        raise ValueError("it has a NUL character, which no argument or variable can have")
    return os.fsencode(text)
