"""Secrets: what is not given to a program does not reach it, and what it prints is hidden."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Command, Event, Retry, Runtime, command
from interlock.system.process_table import living
from tests.integration.command_world import HOLDING, Pipes, contained, pipes
from tests.ordinary import ordinarily

__all__ = ["pipes"]

CANARY = "canary-7c1f0a"
SECRET = "hunter2222"


@pytest.fixture(autouse=True)
def _canary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    monkeypatch.setenv("MY_TOKEN", SECRET)


def below(pid: int) -> list[int]:
    """A process's descendants."""
    parents = {child: parent for child, parent, _ in living()}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {pid})


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("containment", [*HOLDING, "group"])
async def test_a_variable_of_ours_is_in_the_environment_of_no_child(
    containment: str, pipes: Pipes
) -> None:
    async with Runtime(ports=contained(containment)) as rt:
        handle = rt.submit(command(["sh", "-c", f"printf ready >{pipes.announced}; sleep 1000"]))
        await pipes.ready()
        family = below(os.getpid())
        assert len(family) >= 2  # the supervisor's too
        for each in family:
            environment = Path(f"/proc/{each}/environ").read_bytes()
            assert CANARY.encode() not in environment
            assert SECRET.encode() not in environment
            assert SECRET.encode() not in Path(f"/proc/{each}/cmdline").read_bytes()
        handle.cancel()


async def everything(agent: Command, workspace: Path, caplog: Any, **options: Any) -> bytes:
    """All that is told or written of a run: events, log, journal, output."""
    told: list[Event] = []
    secrets = options.pop("secrets", [SECRET])
    with caplog.at_level(logging.DEBUG, logger="interlock"):
        async with Runtime(journal="j.db", secrets=secrets) as rt:
            rt.listen(told.append)
            outcome = await rt.submit(agent, id="a", **options)
    logged = [str(getattr(each, "interlock", "")) + each.getMessage() for each in caplog.records]
    said = [repr(each) for each in told if each.kind != "submitted"]
    written = [each.read_bytes() for each in workspace.rglob("*") if each.is_file()]
    assert any(each.endswith(b"SQLite format 3\0", 0, 16) for each in written)
    return "\n".join([*logged, *said, repr(outcome)]).encode() + b"\n".join(written)


async def test_a_canary_is_nowhere(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    everywhere = await everything(command(["env"]), workspace, caplog)
    assert b"INTERLOCK_TASK=a" in everywhere
    assert CANARY.encode() not in everywhere
    assert SECRET.encode() not in everywhere


async def test_a_variable_is_seen_when_it_is_passed_on(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    everywhere = await everything(command(["env"], pass_env=["CANARY"]), workspace, caplog)
    assert f"CANARY={CANARY}".encode() in everywhere


@pytest.mark.parametrize(
    "script",
    [
        'echo "the key is $MY_TOKEN"',
        'echo "the key is $MY_TOKEN" >&2; exit 3',
        'echo "401 for $MY_TOKEN"',
        'printf "{\\"key\\": \\"%s\\"}" "$MY_TOKEN"',
        'printf hunter; printf 2222; printf "\\033[1mhun\\033[0mter22"; echo 22',
        'echo "$MY_TOKEN"; sleep 1000',
    ],
)
async def test_a_declared_secret_that_is_printed_is_hidden_everywhere(
    script: str, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = command(
        ["sh", "-c", script],
        pass_env=["MY_TOKEN"],
        errors={"auth_error": ["401"]},
        check='echo "checked with $MY_TOKEN"; false',
    )
    options = {"timeout": 0.5} if "sleep" in script else {}
    everywhere = await everything(agent, workspace, caplog, **options)
    assert b"***" in everywhere
    assert SECRET.encode() not in everywhere


async def test_a_secret_in_prompt_and_variables_is_not_in_the_journal(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = command(["sh", "-c", "cat {prompt_file}; false"], env={"KEY": SECRET})
    everywhere = await everything(
        agent, workspace, caplog, prompt=f"use {SECRET}", retry=Retry(attempts=2, backoff=0)
    )
    assert SECRET.encode() not in everywhere


KEY = "-----BEGIN\r\nline1-of-the-key\r\nline2-of/the-kéy\r\n-----END"


@pytest.mark.parametrize(
    "script",
    [
        'echo "$KEY"',
        'echo "$KEY" | tr -d "\r" >&2; exit 3',
        'echo "$KEY" | grep line2',
        f"{sys.executable} -c 'import json, os; print(json.dumps(dict(os.environ)))'",
    ],
)
async def test_a_secret_of_several_lines_is_hidden_everywhere(
    script: str,
    workspace: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY", KEY)
    agent = command(["sh", "-c", script], pass_env=["KEY"])
    everywhere = await everything(agent, workspace, caplog, secrets=[KEY])
    assert b"***" in everywhere
    for part in (b"-of-the-key", b"line2-of", b"the-k"):
        assert part not in everywhere


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("containment", ["subreaper", "group"])
def test_a_program_cannot_read_our_variables(containment: str) -> None:
    script = """
import os
from interlock import Task, command, run
agent = command(["sh", "-c", f"cat /proc/{os.getpid()}/environ; cat /proc/self/environ"])
print(*(each.result or each.reason for each in run([Task("a", agent)])))
"""
    said = ordinarily(script, CANARY=CANARY, INTERLOCK_CONTAINMENT=containment)
    assert "INTERLOCK_TASK=a" in said  # it may still look at itself
    assert CANARY not in said
