"""A command is checked when it is made, not when it is run."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.errors import InvalidOption
from interlock.model.command import Command, command


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"argv": "codex exec"}, "a list of strings", id="options0-a list of texts"),
        pytest.param({"argv": []}, "a list of strings", id="options1-a list of texts"),
        pytest.param({"argv": ["a\0b"]}, "a list of strings", id="options2-a list of texts"),
        ({"argv": ["a"], "home": "elsewhere"}, "'user' or 'private'"),
        ({"argv": ["a"], "env": {"A=B": "c"}}, "'A=B'"),
        ({"argv": ["a"], "env": {"A": 1}}, "'A'"),
        ({"argv": ["a"], "pass_env": [""]}, "''"),
        pytest.param(
            {"argv": ["a"], "errors": {"auth_error": ["("]}},
            "for auth_error, is not a valid pattern",
            id="options7-for auth_error, is no pattern",
        ),
    ],
)
def test_what_could_never_run_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOption, match=said.replace("(", r"\(")):
        command(**options)


def test_its_name_is_that_of_the_program() -> None:
    assert command(["/usr/bin/codex", "exec"]).name == "codex"
    assert command(["codex"], name="reviewer", env={"A": "b"}, pass_env="C").name == "reviewer"
    assert command(["codex"], env={"A": "b"}).name == "codex"
    assert command(["/"]).name == "command"


@pytest.mark.parametrize(
    ("made", "takes"),
    [
        (command(["echo", "{prompt}"]), True),
        (command(["echo", "--file={prompt_file}"]), True),
        (command(["cat"], stdin="Do this: {prompt}"), True),
        (command(["sh"], env={"PROMPT": "{prompt}"}), True),
        (command(["make", "{target}"]), False),
    ],
)
def test_it_knows_whether_it_takes_a_prompt(made: Command, takes: bool) -> None:
    assert made.takes_prompt is takes


def test_one_pattern_or_name_may_stand_alone() -> None:
    made = command(["a"], errors={"auth_error": "401"}, pass_env="KEY")
    assert made.errors["auth_error"] == ("401",)
    assert made.pass_env == ("KEY",)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(\w+\s?)+: failed",
        "(a*)*",
        "(a|aa)+b",
        "(?:a?){30}",
        "((x+x)?)*y",
        "x(?=(a+)+b)",
        "(?>(a+)+b)",
        "(a{1,2})*?b",
    ],
)
def test_a_pattern_that_may_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidOption, match="may take for ever"):
        command(["a"], errors={"model_error": pattern})


@pytest.mark.parametrize(
    "pattern",
    [
        "HTTP 4(01|03)",
        r"^\s*error:.*quota.*$",
        r"(\d+\.){3}\d+",
        "(ab)+c",
        "[ab]*c",
        r"(?:\w++\s)+: failed",
        "(?>a|aa)(?:(?>a|aa))+b",
        "(?i:rate limit(ed)?)",
        "(a|b)*c",
    ],
)
def test_usual_patterns_are_allowed(pattern: str) -> None:
    assert command(["a"], errors={"model_error": pattern}).errors["model_error"] == (pattern,)
