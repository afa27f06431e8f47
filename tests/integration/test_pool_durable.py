"""Pools with real threads, and pools whose sessions are kept in a journal on disk."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from interlock import (
    AgentPool,
    ChatEngine,
    Runtime,
    Session,
    SessionManager,
    TaskContext,
)
from interlock.runtime.session_store import SessionStore

# Each agent notes what it is asked. The first time, the process is killed in the middle of `two`.
SCRIPT = """
import asyncio, os, signal, sys
from pathlib import Path
from interlock import AgentPool

async def agent(ctx):
    with Path("asked.txt").open("a") as asked:
        asked.write(f"{ctx.prompt}({len(ctx.session.messages)}) ")
    if ctx.prompt == "two" and sys.argv[1] == "first":
        os.kill(os.getpid(), signal.SIGKILL)
    return f"re {ctx.prompt}"

async def main():
    resume = sys.argv[1] != "first" or None
    async with AgentPool(agent_factory=lambda entry: agent, journal="j.db", resume=resume) as pool:
        print(await pool.spawn_agents([{"agent_id": "a"}]))
        for prompt in ("one", "two", "three"):
            found = await pool.run_parallel_tasks([{"agent_id": "a", "prompt": prompt}])
            print(found[0]["output"])

asyncio.run(main())
"""


def _run(which: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "script.py", which],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )


def test_after_a_kill_what_was_answered_is_not_asked_again_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    assert _run("first", tmp_path).returncode == -signal.SIGKILL
    again = _run("second", tmp_path)
    expected = ["{'a': 'running'}", "re one", "re two", "re three"]
    assert again.stdout.splitlines() == expected, again.stderr
    asked = (tmp_path / "asked.txt").read_text(encoding="utf-8")
    assert asked == "one(0) two(2) two(2) three(4) "


async def _said(ctx: TaskContext) -> list[str]:
    return [each.content for each in ctx.session.messages]


async def _ask(pool: AgentPool, prompt: str, session_id: str | None = None) -> Any:
    task = {"agent_id": "a", "prompt": prompt, "session_id": session_id}
    (found,) = await pool.run_parallel_tasks([task])
    assert found["status"] == "success", found
    return found["output"]


def _pool(journal: Path, resume: bool | None = None) -> AgentPool:
    return AgentPool(agent_factory=lambda entry: _said, journal=journal, resume=resume)


async def test_a_session_that_has_a_name_is_found_again_by_it(workspace: Path) -> None:
    async with _pool(workspace / "j.db") as pool:
        await pool.spawn_agents([{"agent_id": "a"}])
        assert await _ask(pool, "one", "notes") == []
        assert await _ask(pool, "alone") == []
    async with _pool(workspace / "j.db") as pool:
        await pool.spawn_agents([{"agent_id": "a"}])
        assert await _ask(pool, "two", "notes") == ["one", "[]"]
        assert await _ask(pool, "new") == []  # a new run has new sessions


async def test_an_agent_of_a_resumed_pool_goes_on_in_its_session(workspace: Path) -> None:
    async with _pool(workspace / "j.db") as pool:
        await pool.spawn_agents([{"agent_id": "a"}])
        assert await _ask(pool, "one") == []
    async with _pool(workspace / "j.db", resume=True) as pool:
        assert await pool.spawn_agents([{"agent_id": "a"}]) == {"a": "running"}
        assert await _ask(pool, "one") == []  # it had been answered
        assert await _ask(pool, "two") == ["one", "[]"]


async def test_what_a_task_said_before_it_was_cut_off_is_said_once(workspace: Path) -> None:
    async with Runtime(journal=workspace / "j.db") as rt:
        before, after = SessionStore(), SessionStore()
        session = await before.create(rt, Session("s", agent_id="a"))
        await before.add_exchange(rt, session, "a#1", "one", "1")
        await before.add_exchange(rt, session, "a#2", "two", "2")
        assert [each.content for each in after.enter(rt, "s", "a#3").messages] == [
            *("one", "1", "two", "2"),
        ]
        again = after.enter(rt, "s", "a#2")
        assert [each.content for each in again.messages] == ["one", "1"]
        await after.add_exchange(rt, again, "a#2", "two", "2")
        kept = SessionStore().find(rt, "s")
        assert kept is not None
        assert [each.content for each in kept.messages] == ["one", "1", "two", "2"]
        await after.delete(rt, "s")
        assert SessionStore().find(rt, "s") is None
        assert list(rt.records("session s").items()) == []


async def test_a_chat_goes_on_after_the_program_was_started_again(workspace: Path) -> None:
    for prompt in ("one", "two"):
        sessions = SessionManager(agent_factory=lambda entry: _said, journal=workspace / "j.db")
        async with ChatEngine(sessions=sessions) as chat:
            if prompt == "one":
                await sessions.create_session("a", "chat", "m", "Be kind.", session_id="s")
            answer = await chat.send_message("s", prompt, "a")
            session = await sessions.get_session("s")
            assert (session.model, session.system_prompt) == ("m", "Be kind.")
        assert answer == ([] if prompt == "one" else ["one", "[]"])


async def test_a_chat_makes_its_agent_anew_in_a_run_that_is_resumed(workspace: Path) -> None:
    def blocking_factory(entry: dict[str, Any]) -> Any:
        return _said

    for resume in (None, True):
        sessions = SessionManager(
            agent_factory=blocking_factory, journal=workspace / "j.db", resume=resume
        )
        async with ChatEngine(sessions=sessions) as chat:
            if not resume:
                await sessions.create_session("a", session_id="s")
            assert await chat.send_message("s", "one", "a") == []
            if resume:
                assert await chat.send_message("s", "two", "a") == ["one", "[]"]


async def test_blocking_agents_work_in_threads_of_their_own_and_know_their_session() -> None:
    meet = threading.Barrier(3, timeout=60)

    def agent(ctx: TaskContext, word: str) -> str:
        meet.wait()  # all three at once, or never
        ctx.usage(tokens_in=5)
        return f"{ctx.session.agent_id} {ctx.prompt} {word} {threading.current_thread().name}"

    async with AgentPool(agent_factory=lambda entry: agent, max_concurrent=3) as pool:
        await pool.spawn_agents([{"agent_id": each} for each in "abc"])
        found = await pool.run_parallel_tasks(
            [{"agent_id": each, "prompt": "go", "kwargs": {"word": "on"}} for each in "abc"]
        )
    assert [each["output"].split()[:3] for each in found] == [[each, "go", "on"] for each in "abc"]
    assert [each["tokens"] for each in found] == [5, 5, 5]
    assert len({each["output"].split()[3] for each in found}) == 3
    assert threading.current_thread().name not in {each["output"].split()[3] for each in found}
