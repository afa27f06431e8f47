"""Real programs as agents: what they get, what they give, and what becomes of them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import (
    Command,
    InvalidOption,
    NotAnAgent,
    Outcome,
    Retry,
    Runtime,
    State,
    Task,
    command,
)
from interlock.journal.reader import Reader
from tests.integration.command_world import Pipes, launches, pipes

__all__ = ["pipes"]


def sh(script: str, **options: Any) -> Command:
    return command(["sh", "-c", script], **options)


async def outcome_of(agent: Command, prompt: str | None = None, **options: Any) -> Outcome[Any]:
    secrets = options.pop("secrets", ())
    async with Runtime(secrets=secrets) as rt:
        return await rt.submit(agent, prompt=prompt, **options)


@pytest.mark.parametrize(
    "agent",
    [
        command(["echo", "{prompt}"]),
        command(["cat", "{prompt_file}"]),
        command(["cat"], stdin="{prompt}"),
        sh('echo "$P"', env={"P": "{prompt}"}),
    ],
    ids=["argument", "file", "stdin", "variable"],
)
async def test_a_program_gets_its_prompt_in_four_ways(agent: Command) -> None:
    prompt = 'say "hä" $HOME; `id`\nand {prompt_file}'
    assert (await outcome_of(agent, prompt)).result == prompt


async def test_it_runs_in_the_workspace_with_nothing_to_read(workspace: Path) -> None:
    outcome = await outcome_of(sh("pwd; wc -c; ls -d $TMPDIR; echo $INTERLOCK_TASK"), id="where")
    folder, read, tmp, task = str(outcome.result).split("\n")
    assert (folder, read.strip(), task) == (str(workspace), "0", "where")
    assert tmp.startswith(f"{workspace}/.interlock/tmp/")
    assert not Path(tmp).exists()


@pytest.mark.parametrize(
    ("agent", "kind", "retryable", "said"),
    [
        (sh("echo oops >&2; exit 3"), "crashed", True, "sh ended with exit code 3: oops"),
        (sh("kill -9 $$"), "crashed", True, "sh was killed by SIGKILL"),
        (command(["no-such-agent"]), "cannot_start", False, "no program 'no-such-agent' in PATH"),
        (command(["/"]), "cannot_start", False, "'/' cannot be run: Permission denied"),
        pytest.param(
            sh("echo Error: 401", errors={"auth_error": ["401"]}),
            "auth_error",
            False,
            "sh ended with exit code 0 and printed: Error: 401",
            id="agent4-auth_error-False-sh ended with exit code 0, and said: Error: 401",
        ),
        (
            sh("echo 429 >&2; exit 1", errors={"rate_limited": ["429"]}),
            "rate_limited",
            True,
            "429",
        ),
        (
            sh("echo '500 from the model'", errors={"model_error": ["^500 "]}),
            "model_error",
            True,
            "500 from the model",
        ),
        pytest.param(
            sh("true", check="echo 2 failed; false"),
            "check_failed",
            True,
            "exit code 1: 2 failed",
            id="agent7-no_effect-True-exit code 1: 2 failed",
        ),
        pytest.param(
            sh("true", check="kill -9 $$"),
            "check_failed",
            True,
            "was killed by SIGKILL",
            id="agent8-no_effect-True-was killed by SIGKILL",
        ),
    ],
)
async def test_what_is_wrong_is_said_by_kind(
    agent: Command, kind: str, retryable: bool, said: str
) -> None:
    outcome = await outcome_of(agent)
    assert outcome.status is State.FAILED
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == (kind, retryable)
    assert said in outcome.error.message


async def test_a_prompt_that_is_too_long_for_an_argument_is_an_error_that_helps() -> None:
    outcome = await outcome_of(command(["echo", "{prompt}"]), "x" * 1_000_000)
    assert "{prompt_file}" in outcome.reason
    assert not (outcome.error and outcome.error.retryable)
    assert (await outcome_of(sh("wc -c <{prompt_file}"), "x" * 1_000_000)).result == "1000000"


async def test_a_prompt_with_a_nul_cannot_be_an_argument() -> None:
    outcome = await outcome_of(command(["echo", "{prompt}"]), "a\0b")
    assert "NUL" in outcome.reason


async def test_the_check_runs_in_the_same_place_after_the_program(workspace: Path) -> None:
    agent = sh("echo done >result; echo $TMPDIR", check="grep -q done result && test -d $TMPDIR")
    outcome = await outcome_of(agent)
    assert outcome.succeeded, outcome
    assert str(outcome.result).startswith(str(workspace))


async def test_attempts_are_made_until_the_check_succeeds() -> None:
    agent = sh('echo "$INTERLOCK_ATTEMPT" >try', check='test "$(cat try)" = 2')
    outcome = await outcome_of(agent, retry=Retry(attempts=3, backoff=0))
    assert outcome.succeeded
    assert outcome.attempts == 2


async def test_a_failure_for_good_is_not_tried_again() -> None:
    agent = sh("echo x >>tries; echo 401", errors={"auth_error": ["401"]})
    outcome = await outcome_of(agent, retry=Retry(attempts=3, backoff=0))
    assert outcome.attempts == 1
    assert Path("tries").read_text() == "x\n"


@pytest.mark.parametrize(
    ("printed", "output", "result"),
    [("[1, 2]", list[int], [1, 2]), ('{"a": 1}', dict[str, int], {"a": 1}), ("[1]", str, "[1]")],
)
async def test_what_it_prints_is_validated(printed: str, output: Any, result: object) -> None:
    outcome = await outcome_of(command(["echo", "{prompt}"]), printed, output=output)
    assert outcome.result == result


@pytest.mark.parametrize("printed", ["[1, null]", "no JSON", ""])
async def test_an_invalid_answer_is_a_failed_attempt_that_says_why(printed: str) -> None:
    outcome = await outcome_of(command(["echo", "{prompt}"]), printed, output=list[int])
    assert outcome.error is not None
    assert outcome.error.type == "InvalidOutput"
    assert outcome.error.retryable
    assert "list[int]" in outcome.error.message


@pytest.mark.parametrize(
    ("task", "error"),
    [
        (Task("a", command(["echo", "{prompt}"])), InvalidOption),
        (Task("a", command(["echo"]), prompt="goes nowhere"), InvalidOption),
        (Task("a", command(["echo"]), args=(1,)), NotAnAgent),
        (Task("a", command(["echo"]), kwargs={"x": 1}), NotAnAgent),
    ],
)
async def test_a_prompt_that_is_missing_or_goes_nowhere_is_refused_at_once(
    task: Task, error: type[Exception]
) -> None:
    async with Runtime() as rt:
        with pytest.raises(error, match="task 'a'"):
            rt.submit(task)


async def test_the_log_has_both_streams_and_is_kept(workspace: Path) -> None:
    async with Runtime() as rt:
        seen = launches(rt)
        outcome = await rt.submit(sh("echo out; echo err >&2", check="echo checked"), id="a/b")
        assert outcome.result == "out"
    assert [each.task_id for each in seen] == ["a/b", "a/b"]
    data = seen[0].data
    log = workspace / data["log"]
    assert sorted(log.read_text().split()) == ["checked", "err", "out"]
    assert log.read_text().endswith("checked\n")
    assert data["log"].startswith(f".interlock/logs/{rt.run_id}/a_b-")
    assert data["pid"] > 0
    assert data["started"] > 0 or sys.platform != "linux"
    assert data["containment"] in ("namespace", "cgroup", "subreaper", "group")


async def test_a_line_can_be_read_while_the_program_runs(pipes: Pipes, workspace: Path) -> None:
    async with Runtime() as rt:
        seen = launches(rt)
        # When the second program is let go on, the first line is read already.
        handle = rt.submit(sh(f"echo first; cat {pipes.announced}; echo last"))
        while not seen or "first" not in (workspace / seen[0].data["log"]).read_text():
            await asyncio.sleep(0.01)
        assert handle.outcome is None
        await asyncio.to_thread(pipes.announced.write_text, "go on\n")
        assert (await handle).result == "first\ngo on\nlast"


async def test_a_command_is_kept_in_a_journal_and_not_run_again(workspace: Path) -> None:
    agent = sh("echo x >>tries; echo done", env={"A": "b"}, errors={"auth_error": ["401"]})
    for _ in range(2):
        async with Runtime(journal="j.db", resume=True) as rt:
            assert (await rt.submit(agent, id="a")).result == "done"
    assert Path("tries").read_text() == "x\n"
    with Reader("j.db") as read:
        run = read.runs()[0]
        (row,) = read.tasks(run)
        assert row.agent == "sh"


async def test_another_command_of_the_same_name_is_another_task() -> None:
    async with Runtime(journal="j.db") as rt:
        assert (await rt.submit(sh("echo one"), id="a")).result == "one"
    async with Runtime(journal="j.db", resume=True) as rt:
        assert (await rt.submit(sh("echo two"), id="a")).result == "two"


async def test_many_run_at_once_and_leave_nothing_open() -> None:
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    async with Runtime(max_parallel=16) as rt:
        result = await rt.run([Task(str(n), sh(f"echo {n}")) for n in range(40)])
        assert [each.result for each in result] == [str(n) for n in range(40)]
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before
    assert list(Path(".interlock/tmp").iterdir()) == []


def test_a_program_has_the_signals_and_descriptors_of_every_program(workspace: Path) -> None:
    script = (
        "import json, os, signal, sys; print(json.dumps({"
        "'ignored': [s for s in range(1, 32) if signal.getsignal(s) is signal.SIG_IGN"
        " and s not in (signal.SIGPIPE, signal.SIGXFSZ)],"
        "'blocked': list(signal.pthread_sigmask(signal.SIG_BLOCK, ())),"
        "'open': [n for n in os.listdir('/proc/self/fd') if int(n) > 3]}))"
    )
    agent = command([sys.executable, "-c", script])
    (outcome,) = interlock.run([Task("a", agent)])
    found = json.loads(str(outcome.result))
    assert found == {"ignored": [], "blocked": [], "open": []}
    (outcome,) = interlock.run([Task("a", sh("yes | head -1; echo ${PIPESTATUS-gone}"))])
    assert outcome.result == "y\ngone"


async def test_without_a_fork_nothing_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    outcome = await outcome_of(sh("true"))
    assert "need Linux or macOS" in outcome.reason
