"""AgentRegistry: how agents are made, and one of a name at a time across processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import interlock
from interlock import (
    AgentAlreadyRunningError,
    AgentError,
    AgentRegistry,
    InvalidOption,
    TaskContext,
    TaskQueue,
    delegate_tasks_parallel,
)

HOLD = """
import sys
from interlock import AgentRegistry
with AgentRegistry.register("architect"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding(workspace: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has registered the architect; it ends when its input does."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD],
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": str(Path(interlock.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_name_is_given_out_once_at_a_time() -> None:
    with AgentRegistry.register("architect"):
        with pytest.raises(AgentAlreadyRunningError):
            AgentRegistry.register("architect")
        with AgentRegistry.register("developer"):
            pass
    with AgentRegistry.register("architect"):
        pass
    assert AgentRegistry.holder("architect") is None


def test_another_process_that_has_it_is_named_with_host_and_time(workspace: Path) -> None:
    with holding(workspace) as other:
        with pytest.raises(AgentAlreadyRunningError) as caught:
            AgentRegistry.register("architect")
        assert caught.value.pid == other.pid
        assert caught.value.host == socket.gethostname()
        assert f"process {other.pid} on {socket.gethostname()}, since 20" in str(caught.value)
        assert caught.value.since in str(caught.value)


def test_a_killed_holder_is_in_nobodys_way(workspace: Path) -> None:
    with holding(workspace) as other:
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet buried
        assert f'"pid": {other.pid}' in _file(workspace).read_text()
        with AgentRegistry.register("architect"):
            assert _read(workspace)["pid"] == os.getpid()


def test_a_holder_that_leaves_gives_it_back(workspace: Path) -> None:
    with holding(workspace) as other:
        other.communicate("")
        with AgentRegistry.register("architect"):
            pass


def test_a_pid_that_is_used_again_is_another_process(workspace: Path) -> None:
    """Here it is our own: alive, but not since then."""
    registration = AgentRegistry.register("architect")
    stale = {**_read(workspace), "process_started": "an earlier boot 12345"}
    _file(workspace).write_text(json.dumps(stale))
    with AgentRegistry.register("architect"):
        registration.release()  # of the lease that is lost: the new one stays
        with pytest.raises(AgentAlreadyRunningError):
            AgentRegistry.register("architect")


def test_a_holder_on_another_machine_counts_as_alive(workspace: Path) -> None:
    AgentRegistry.register("architect")
    _file(workspace).write_text(json.dumps({**_read(workspace), "host": "elsewhere", "pid": 1}))
    with pytest.raises(AgentAlreadyRunningError, match="process 1 on elsewhere"):
        AgentRegistry.register("architect")


def test_a_half_written_file_is_nobodys(workspace: Path) -> None:
    AgentRegistry.register("architect").release()
    _file(workspace).write_text('{"pid": 1')
    with AgentRegistry.register("architect"):
        pass


FORK = """
import os
from interlock import AgentAlreadyRunningError, AgentRegistry
with AgentRegistry.register("architect"):
    if os.fork() == 0:
        raise SystemExit  # leaves the block
    os.wait()
    try:
        AgentRegistry.register("architect")
    except AgentAlreadyRunningError:
        print("held")
"""


def test_a_forked_child_does_not_give_back_what_its_parent_has(workspace: Path) -> None:
    assert _printed_by(FORK, workspace) == ["held"]


def test_workspaces_do_not_share_names(workspace: Path) -> None:
    for name in ("one", "two"):
        (workspace / name).mkdir()
    with (
        AgentRegistry.register("a/b", workspace="one"),
        AgentRegistry.register("a/b", workspace=workspace / "two"),
        pytest.raises(AgentAlreadyRunningError),
    ):
        AgentRegistry.register("a/b", workspace=workspace / "one")


def _file(workspace: Path) -> Path:
    return workspace / ".interlock" / "agents" / "architect.json"


def _read(workspace: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(_file(workspace).read_text())
    return found


@pytest.fixture
def _agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents that say who they are and what they were asked for."""
    monkeypatch.setattr(AgentRegistry, "_factories", {})
    AgentRegistry.configure("architect", lambda: Agent("architect"))
    AgentRegistry.configure("developer", lambda: Agent("developer"))


class Agent:
    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, ctx: TaskContext) -> str:
        return f"{self.name}: {ctx.prompt}"


@pytest.mark.usefixtures("_agents")
def test_get_returns_the_factory_of_a_configured_agent() -> None:
    assert AgentRegistry.get("architect")().name == "architect"
    with pytest.raises(AgentError, match="did you mean 'architect'") as caught:
        AgentRegistry.get("architekt")
    assert caught.value.agent_id == "architekt"
    with pytest.raises(InvalidOption):
        AgentRegistry.configure(" ", int)
    with pytest.raises(InvalidOption):
        AgentRegistry.configure("architect", 42)  # type: ignore[arg-type]


@pytest.mark.usefixtures("_agents")
def test_tasks_are_delegated_to_configured_agents_in_their_order() -> None:
    with TaskQueue() as queue:
        futures = delegate_tasks_parallel(
            [
                {"agent_type": "architect", "description": "write the spec", "files": ["docs/"]},
                {"agent_type": "developer", "description": "implement it", "files": ["src/"]},
                {"agent_type": "developer", "description": "test it", "files": [], "priority": 5},
            ],
            queue=queue,
        )
        assert [each.result() for each in futures] == [
            "architect: write the spec",
            "developer: implement it",
            "developer: test it",
        ]


@pytest.mark.usefixtures("_agents")
@pytest.mark.parametrize(
    ("entry", "error", "why"),
    [
        ({"agent_type": "nobody", "description": "x", "files": []}, AgentError, "nobody"),
        ({"agent_type": "architect", "files": []}, InvalidOption, "task 2 .* no 'description'"),
        ({"agent_type": "", "description": "x"}, InvalidOption, "task 2"),
        ({"agent_type": "architect", "description": "x", "instances": 2}, InvalidOption, "instan"),
        ("architect", InvalidOption, "task 2"),
        (
            {"agent_type": "architect", "description": "x", "files": [], "after": "y"},
            interlock.UnknownDependency,
            "'y'",
        ),
    ],
)
def test_one_bad_entry_is_named_and_nothing_is_delegated(
    entry: object, error: type[Exception], why: str
) -> None:
    good = {"agent_type": "architect", "description": "x", "files": []}
    with TaskQueue() as queue:
        with pytest.raises(error, match=why):
            delegate_tasks_parallel([good, entry], queue=queue)  # type: ignore[list-item]
        assert queue.runtime.progress().total == 0


@pytest.mark.usefixtures("_agents")
def test_an_agent_that_cannot_be_made_is_an_error_at_once() -> None:
    def broken() -> None:
        raise LookupError("no model")

    AgentRegistry.configure("broken", broken)
    entries = [
        {"agent_type": "architect", "description": "x", "files": []},
        {"agent_type": "broken", "description": "x", "files": []},
    ]
    with TaskQueue() as queue:
        with pytest.raises(AgentError, match="no model") as caught:
            delegate_tasks_parallel(entries, queue=queue)
        assert caught.value.agent_id == "broken"
        assert queue.runtime.progress().total == 0


SHARED = """
from interlock import delegate_tasks_parallel
from concurrent.futures import wait
import threading

entered, let_go = threading.Event(), threading.Event()
def hold():
    entered.set()
    let_go.wait(60)

def delegate(agent_type, files, agent):
    entry = {"agent_type": agent_type, "description": "", "files": files, "execute_fn": agent}
    return delegate_tasks_parallel([entry])[0]

first = delegate("a", ["src/"], hold)
entered.wait(60)
second = delegate("b", ["src/x"], lambda: 2)
third = delegate("c", ["docs/"], lambda: 3)
print(third.result(), second.done(), len(second.why().reasons))
let_go.set()
print(second.result())
delegate("d", [], lambda: print("finished with the program"))
"""


def test_callers_without_a_queue_share_one_that_finishes_with_the_program(
    workspace: Path,
) -> None:
    printed = _printed_by(SHARED, workspace)
    assert printed == ["3 False 1", "2", "finished with the program"]


def _printed_by(script: str, workspace: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": str(Path(interlock.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.splitlines()
