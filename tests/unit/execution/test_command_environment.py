"""What a program sees, and what it has on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from interlock.execution.backend import CommandJob
from interlock.execution.commands.attempt_folder import AttemptFolder, remove_temporary, safe_name
from interlock.execution.commands.environment import (
    AttemptPaths,
    encode_environment,
    fill_prompt,
    make_environment,
)
from interlock.execution.workspaces.port import PreparedWorkspace
from interlock.model.command import command
from interlock.model.redaction import Redaction

OURS = {
    "PATH": "/usr/bin",
    "HOME": "/home/u",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm",
    "https_proxy": "http://u:hunter2222@proxy",
    "CANARY": "sings",
    "TOKEN": "hunter2222",
    "TMPDIR": "/elsewhere",
    "INTERLOCK_TASK": "of a run around ours",
}
PLACES = AttemptPaths(Path("/w/tmp"), Path("/w/prompt.md"), None)


def command_job(workspace: Path = Path("/w"), **options: Any) -> CommandJob:
    made = command(["echo", "{prompt}"], **options)
    return CommandJob(
        made,
        workspace,
        PreparedWorkspace(workspace),
        "run-1",
        "build/api",
        2,
        "do it",
        Redaction(["hunter2222"]),
    )


def test_only_what_is_on_the_list_is_seen() -> None:
    assert make_environment(command_job(), PLACES, OURS) == {
        "PATH": "/usr/bin",
        "HOME": "/home/u",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
        "TMPDIR": "/w/tmp",
        "INTERLOCK_RUN": "run-1",
        "INTERLOCK_TASK": "build/api",
        "INTERLOCK_ATTEMPT": "2",
        "INTERLOCK_WORKSPACE": "/w",
    }


def test_what_is_passed_on_by_name_is_seen_and_a_secret_only_then() -> None:
    env = make_environment(command_job(pass_env=["TOKEN", "https_proxy", "MISSING"]), PLACES, OURS)
    assert env["TOKEN"] == "hunter2222"
    assert env["https_proxy"] == "http://u:hunter2222@proxy"
    assert "MISSING" not in env


def test_its_own_variables_come_last_and_may_have_the_prompt() -> None:
    made = command_job(env={"PATH": "/opt", "P": "<{prompt}>", "F": "{prompt_file}"})
    env = make_environment(made, PLACES, OURS)
    assert (env["PATH"], env["P"], env["F"]) == ("/opt", "<do it>", "/w/prompt.md")


def test_a_prompt_is_not_looked_into() -> None:
    file = Path("/w/prompt.md")
    assert fill_prompt("{prompt} {prompt_file} {other}", "{prompt_file}", file) == (
        "{prompt_file} /w/prompt.md {other}"
    )


def test_text_that_no_program_can_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="NUL"):
        encode_environment({"A": "b\0c"})


@pytest.mark.parametrize(
    ("task_id", "name"),
    [
        ("api", "api"),
        ("Build-1.2_x", "Build-1.2_x"),
        ("a/b", "a_b-c14cddc0"),
        ("a_b", "a_b"),
        ("..", "_-5ec1f7e7"),
        (".hidden", None),
        ("ü" * 300, None),
        ("x" * 300, None),
        ("\ud800", None),
    ],
)
def test_every_id_has_a_name_for_a_folder_and_no_two_have_the_same(
    task_id: str, name: str | None
) -> None:
    made = safe_name(task_id)
    assert name is None or made == name
    assert made.isascii()
    assert "/" not in made
    assert not made.startswith(".")
    assert len(made) < 100


def test_an_id_that_looks_like_the_name_of_another_has_another_name() -> None:
    taken = safe_name("a/b")
    assert safe_name(taken) != taken
    assert safe_name(safe_name(taken)) != safe_name(taken)


def test_an_attempt_has_its_own_folder_which_goes_with_it(tmp_path: Path) -> None:
    folder = AttemptFolder(command_job(tmp_path), token=7)
    assert folder.paths.prompt_file.read_text() == "do it"
    assert list(folder.paths.tmp.iterdir()) == []
    assert folder.paths.tmp.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / ".interlock/.gitignore").read_text() == "*\n"
    locked = folder.paths.tmp / "locked"
    (locked / "deep").mkdir(parents=True)
    locked.chmod(0)
    folder.log.write(b"hello\n")
    folder.close()
    assert list((tmp_path / ".interlock/tmp").iterdir()) == []
    assert (tmp_path / folder.log_name).read_text() == "hello\n"
    assert folder.log_name == f".interlock/logs/run-1/{safe_name('build/api')}/2.log"


def test_the_log_of_an_attempt_that_was_cut_off_is_not_overwritten(tmp_path: Path) -> None:
    first = AttemptFolder(command_job(tmp_path), token=7)
    first.log.write(b"cut off\n")
    second = AttemptFolder(command_job(tmp_path), token=8)
    second.close()
    assert second.log_name.endswith("/2-2.log")
    assert (tmp_path / first.log_name).read_text() == "cut off\n"
    remove_temporary(tmp_path, "run-1")
    assert list((tmp_path / ".interlock/tmp").iterdir()) == []
    first.close()


def test_a_private_home_is_the_same_for_every_attempt(tmp_path: Path) -> None:
    homes = []
    for token in (1, 2):
        folder = AttemptFolder(command_job(tmp_path, home="private"), token)
        home = folder.paths.home
        assert home is not None
        assert make_environment(command_job(tmp_path), folder.paths, OURS)["HOME"] == str(home)
        homes.append(home)
        folder.close()
        assert home.is_dir()
        assert os.path.commonpath([home, folder.paths.tmp]) == str(tmp_path / ".interlock")
    assert homes[0] == homes[1]


def test_standard_input_is_empty_unless_the_command_has_some(tmp_path: Path) -> None:
    folder = AttemptFolder(command_job(tmp_path), token=1)
    with folder.start("") as nothing:
        assert os.read(nothing, 100) == b""
    for _ in range(2):  # it may be tried again
        with folder.start("Hä\n") as some:
            assert os.read(some, 100) == "Hä\n".encode()
    folder.close()


def test_of_a_start_that_failed_nothing_stays(tmp_path: Path) -> None:
    folder = AttemptFolder(command_job(tmp_path), token=1)
    with pytest.raises(BlockingIOError), folder.start("Hä\n"):
        raise BlockingIOError
    assert not list((tmp_path / ".interlock/logs").rglob("*.log"))
    with folder.start("Hä\n"):
        assert folder.log_name.endswith("/2.log")
    folder.close()
    assert (tmp_path / folder.log_name).exists()
