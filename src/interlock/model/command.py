"""Any program as an agent: what to run, and what it can see."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from interlock.errors import InvalidOption
from interlock.model.error_pattern import checked_patterns

Home = Literal["user", "private"]

PROMPT = "{prompt}"
"""Stands for the task's prompt, in an argument, a variable or standard input."""
PROMPT_FILE = "{prompt_file}"
"""Stands for the path of a file that holds the prompt."""

_NAME = re.compile(r"[^=\0]+\Z")
_set = object.__setattr__


def command(
    argv: Iterable[str],
    *,
    name: str = "",
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    pass_env: Iterable[str] = (),
    errors: Mapping[str, Iterable[str]] | None = None,
    check: str | None = None,
    home: Home = "user",
) -> Command:
    """Make a program an agent: `command(["codex", "exec", "{prompt}"])`. `Command` has the options.

    Its result is what it prints, parsed as JSON if the task has an `output` type.
    """
    return Command(
        argv,
        name=name,
        stdin=stdin,
        env=env,
        pass_env=pass_env,
        errors=errors,
        check=check,
        home=home,
    )


@dataclass(frozen=True, slots=True, init=False)
class Command:
    """An agent that is a program; made with `interlock.command()`.

    `{prompt}` in an argument, in a value of `env` or in `stdin` stands for the prompt of the task,
    and `{prompt_file}` for a file that contains it. The program sees a few of our environment
    variables (PATH, HOME, locale, terminal, proxy), those that `pass_env` names, and `env`.
    `errors` maps kinds of failures (`auth_error`, `rate_limited`, `model_error`) to patterns: a
    line of output that matches one is a failure, whatever the exit code. `check` is a shell command
    that has to succeed afterwards, in the same folder. `home="private"` gives the program a HOME of
    its own.
    """

    argv: tuple[str, ...]
    name: str
    stdin: str
    env: Mapping[str, str]
    pass_env: tuple[str, ...]
    errors: Mapping[str, tuple[str, ...]]
    check: str | None
    home: Home

    def __init__(
        self,
        argv: Iterable[str],
        *,
        name: str = "",
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        pass_env: Iterable[str] = (),
        errors: Mapping[str, Iterable[str]] | None = None,
        check: str | None = None,
        home: Home = "user",
    ) -> None:
        listed = () if isinstance(argv, str) else tuple(argv)
        if not listed or not all(isinstance(each, str) and "\0" not in each for each in listed):
            raise InvalidOption(
                f"a command is a list of strings, the program first, such as "
                f"['codex', 'exec', '{PROMPT}'], not {argv!r}"
            )
        if home not in ("user", "private"):
            raise InvalidOption(f"home is {home!r}; it can be 'user' or 'private'")
        given = {} if env is None else dict(env)
        for key, value in given.items():
            if not isinstance(key, str) or not isinstance(value, str) or not _NAME.match(key):
                raise InvalidOption(
                    f"env maps names of variables to strings; {key!r} is not such a pair"
                )
        passed = (pass_env,) if isinstance(pass_env, str) else tuple(pass_env)
        for key in passed:
            if not isinstance(key, str) or not _NAME.match(key):
                raise InvalidOption(f"pass_env lists names of variables; {key!r} is not one")
        _set(self, "argv", listed)
        _set(self, "name", name or listed[0].rstrip("/ ").rpartition("/")[2] or "command")
        _set(self, "stdin", stdin)
        _set(self, "env", MappingProxyType(given))
        _set(self, "pass_env", passed)
        patterns = {kind: checked_patterns(kind, each) for kind, each in (errors or {}).items()}
        _set(self, "errors", MappingProxyType(patterns))
        _set(self, "check", check)
        _set(self, "home", home)

    @property
    def takes_prompt(self) -> bool:
        """Whether the program is given the prompt at all."""
        places = (*self.argv, *self.env.values(), self.stdin)
        return any(PROMPT in each or PROMPT_FILE in each for each in places)

    def replace(self, **changes: Any) -> Command:
        """Return a copy with some options changed."""
        kept = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return Command(**(kept | changes))
