"""Where the functions of process agents may come from; scripts run as a user would run them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}

RUN = """
import asyncio, sys, tempfile
from dataclasses import dataclass
from pathlib import Path
from interlock.execution.processes.process_agent import process
from tests.unit.execution.worlds import opened

async def run(agent, *args):
    with tempfile.TemporaryDirectory() as folder:
        async with opened("processes", Path(folder)) as world:
            return await world.run(agent, *args)

def show(agent, *args):
    ending = asyncio.run(run(agent, *args))
    print(ending.value if ending.error is None else ending.error.type + ": " + ending.error.message)
"""

AGENT = """
@dataclass
class Point:
    x: int

COUNT = 0

def move(point):
    global COUNT
    COUNT += 1
    return Point(point.x + COUNT)
"""


def python(
    folder: Path, *arguments: str, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_functions_and_classes_of_the_script_itself_work(tmp_path: Path) -> None:
    guard = '\nif __name__ == "__main__":\n    show(move, Point(1))\n'
    (tmp_path / "script.py").write_text(RUN + AGENT + guard)
    done = python(tmp_path, "script.py")
    assert (done.stdout, done.stderr) == ("Point(x=2)\n", "")
    assert not (tmp_path / "__pycache__").exists(), "we write nothing beside the user's files"


def test_a_decorated_function_of_the_script_works(tmp_path: Path) -> None:
    code = "\n@process\ndef triple(x):\n    return 3 * x\n"
    code += 'if __name__ == "__main__":\n    show(triple, 2)\n'
    (tmp_path / "script.py").write_text(RUN + code)
    assert python(tmp_path, "script.py").stdout == "6\n"


@pytest.mark.parametrize("name", ["__main__", "job"])
def test_a_script_inside_a_package_works(name: str, tmp_path: Path) -> None:
    package = tmp_path / "tool"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "near.py").write_text("STEP = 5\n")
    code = "from .near import STEP\ndef step(x):\n    return x + STEP\n"
    code += 'if __name__ == "__main__":\n    show(step, 1)\n'
    (package / f"{name}.py").write_text(RUN + code)
    done = python(tmp_path, "-m", "tool" if name == "__main__" else f"tool.{name}")
    assert (done.stdout, done.stderr) == ("6\n", "")


def test_functions_of_a_module_beside_the_script_work(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def triple(x):\n    return 3 * x\n")
    (tmp_path / "script.py").write_text(RUN + "import beside\nshow(beside.triple, 2)\n")
    done = python(tmp_path, "script.py")
    assert (done.stdout, done.stderr) == ("6\n", ""), "no guard needed: it is not imported again"


def test_a_script_that_would_start_itself_for_ever_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(RUN + AGENT + "show(move, Point(1))\n")
    done = python(tmp_path, "script.py")
    assert done.stdout.startswith("NotAnAgent: the script ")
    assert 'Put that code under `if __name__ == "__main__":`' in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_a_script_that_fails_when_imported_again_says_so(tmp_path: Path) -> None:
    code = '\nif __name__ == "__main__":\n    show(move, Point(1))\nelse:\n    sys.exit("not me")\n'
    (tmp_path / "script.py").write_text(RUN + AGENT + code)
    done = python(tmp_path, "script.py")
    assert (
        "script.py was imported for its agent: the agent called sys.exit('not me')" in done.stdout
    )


@pytest.mark.parametrize("how", ["-c", "stdin"])
def test_a_function_that_was_typed_in_is_refused_at_once(how: str, tmp_path: Path) -> None:
    code = RUN + AGENT + "process(move)\n"
    done = python(tmp_path, "-c", code) if how == "-c" else python(tmp_path, stdin=code)
    assert "NotAnAgent: move was typed in or comes from a notebook" in done.stderr


def test_multiprocessing_is_left_as_the_user_wants_it(tmp_path: Path) -> None:
    code = "import os, multiprocessing\nshow(os.path.basename, 'a/b')\n"
    code += "multiprocessing.set_start_method('spawn')\n"
    (tmp_path / "script.py").write_text(RUN + code)
    done = python(tmp_path, "script.py")
    assert (done.stdout, done.stderr) == ("b\n", "")


HOLD = """
import os, signal
from tests.integration.process_agents import have_children

async def main(fifo, go):
    with tempfile.TemporaryDirectory() as folder:
        async with opened("processes", Path(folder)) as world:
            token = world.submit(have_children, fifo)
            await asyncio.to_thread(Path(go).read_text)
            fork = os.fork()
            if fork == 0:
                signal.pause()
            Path(fifo).write_text(str(fork))
            await world.sink.end_of(token)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for those who are no children")
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_us_when_we_are_killed(sig: int, tmp_path: Path) -> None:
    """Not even when a fork of ours, which lives on, holds the other ends of all pipes."""
    for name in ("fifo", "go"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "script.py").write_text(RUN + HOLD)
    with subprocess.Popen(
        [sys.executable, "script.py", "fifo", "go"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stderr=subprocess.DEVNULL,
    ) as script:
        # The agent was started in the folder of the script, so it finds the pipe as well.
        watched = [os.pidfd_open(int(pid)) for pid in (tmp_path / "fifo").read_text().split()]
        assert len(watched) == 7
        (tmp_path / "go").write_text("fork")
        fork = int((tmp_path / "fifo").read_text())
        script.send_signal(sig)
    try:
        for each in watched:
            assert select.select([each], [], [], 60)[0], "it has not ended"
            os.close(each)
    finally:
        os.kill(fork, signal.SIGKILL)
