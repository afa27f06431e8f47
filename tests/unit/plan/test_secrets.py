"""Secrets: by name from the environment or `.env`, and never in our files."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import PlanError
from interlock.plan.env_file import read_env_file, secret_values
from interlock.plan.literal_secrets import hidden, names_a_secret, secret_in
from tests.unit.plan import files


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdefghijklmnop1234",
        "sk-ant-api03-abcdefghijklmnop",
        "key=sk-proj-abcdefghijklmnop",
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1" * 18,
        "glpat-abcdefghij0123456789",
        "AKIAABCDEFGHIJKLMNOP",
        "AIza" + "b" * 35,
        "xoxb-1234567890-abc",
        "hf_" + "a" * 30,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
        "postgres://me:hunter2@localhost/db",
    ],
)
def test_known_secrets_are_seen_and_hidden(text: str) -> None:
    said = f"before {text}"
    assert secret_in(said)
    assert text.splitlines()[-1] not in hidden(said)
    assert hidden(said).startswith("before ")


@pytest.mark.parametrize(
    "text",
    [
        "task-abcdefghijklmnopqrstuvwxyz",
        "ask-me-anything-about-the-code-base",
        "https://example.org:8080/path@2",
        "https://user:$PASSWORD@example.org",
        "-----BEGIN CERTIFICATE-----",
        "shf_" + "a" * 30,
        "use the sk-... key",
    ],
)
def test_what_only_looks_like_one_is_let_be(text: str) -> None:
    assert secret_in(text) is None
    assert hidden(text) == text


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "token", "DB-PASSWORD", "APIKEY", "MY_SECRET"])
def test_a_name_may_say_that_it_is_a_secret(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize("name", ["MAX_TOKENS", "KEYBOARD", "MONKEY", "SECRETARY", "KEY_FILE"])
def test_or_not(name: str) -> None:
    assert not names_a_secret(name)


def test_an_env_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(
        "# a comment\n"
        "\n"
        "A=plain # and a comment\n"
        "export B = 'as # it \\n is'\n"
        'C="two\\nlines \\"q\\" $HOME" # so\n'
        "D=\n"
        "E=a=b#c\n"
    )
    assert read_env_file(path) == {
        "A": "plain",
        "B": "as # it \\n is",
        "C": 'two\nlines "q" $HOME',
        "D": "",
        "E": "a=b#c",
    }


def test_an_env_file_that_cannot_be_read_is_named_by_its_lines(workspace: Path) -> None:
    Path(".env").write_text("A=b\nnonsense hunter2\nC='hunter2\n")
    with pytest.raises(PlanError) as caught:
        read_env_file(Path(".env"))
    assert str(caught.value).splitlines() == [
        ".env:2:1: this is not a variable; write NAME=value",
        ".env:3:1: C: the quote that begins here is not closed in this line",
    ]


def test_the_environment_goes_before_the_file(workspace: Path) -> None:
    Path(".env").write_text("A=file\nB=file\nD=file\n")
    project = files.project("secrets: [A, B, C]\n")
    assert secret_values(project, {"A": "environment", "B": "", "D": "x"}) == {
        "A": "environment",
        "B": "file",
    }


TOKEN = "ghp_" + "A1b2C3d4E5" * 3


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    "text",
    [
        f"tasks: {{{TOKEN}: {{prompt: x}}}}",
        f"tasks: {{a: {{prompt: x, labels: {{{TOKEN}: x}}}}}}",
        f"variables: {{{TOKEN}: x}}\ntasks: {{a: {{prompt: x}}}}",
        f"variables: {{x: {TOKEN[:12]}, y: {TOKEN[12:]}}}\n"
        "tasks: {a: {prompt: 'a {{x}}{{y}}'}}",
        f"variables: {{x: {TOKEN[:12]}}}\ntasks: {{'{{{{x}}}}{TOKEN[12:]}': {{prompt: a}}}}",
        f'tasks: {{a: {{prompt: "{TOKEN[:10]}\\\n  {TOKEN[10:]}"}}}}',
    ],
)
def test_a_secret_is_seen_in_a_name_and_where_it_is_put_together(text: str) -> None:
    with pytest.raises(PlanError, match="it contains a GitHub token") as caught:
        files.plan(text)
    assert TOKEN not in str(caught.value)


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("key", ["capacity", "priorities"])
def test_a_secret_is_seen_in_a_name_of_the_project(key: str) -> None:
    with pytest.raises(PlanError, match="it contains a GitHub token"):
        files.project(f"{key}: {{{TOKEN}: 1}}\n")
