"""Signals to a real process: the first one lets finish what runs, the second one does not."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

import interlock
from interlock import Runtime, Task

PROGRAM = """
import asyncio, os, signal, sys, threading
import interlock
from interlock import Kind, Runtime, Task

def say(*words):
    os.write(1, f"{' '.join(map(str, words))}\\n".encode())  # in one piece, whoever else speaks

drained = []

def tell(event):
    if event.kind is Kind.COMMAND and event.fields["command"] == "drain" and not drained:
        drained.append(event)  # leaving the block drains too
        say("draining")

def finishes():
    say("running")
    sys.stdin.readline()
    say("finished")

def never_ends():
    say("running")
    threading.Event().wait()

async def waits():
    say("running")
    await asyncio.Event().wait()

def must_not_start():
    say("started after the signal")
"""

SIGNALS = [signal.SIGTERM, signal.SIGINT]
BY_SIGNAL = {signal.SIGTERM: 128 + signal.SIGTERM, signal.SIGINT: -signal.SIGINT}
"""Exit codes. Python ends itself by the signal when nobody catches a KeyboardInterrupt."""


class Program:
    """A program that was started, and what it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def _said(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def says(self, line: str) -> None:
        assert self._said.readline() == line + "\n"

    def gets(self, number: int) -> None:
        self._process.send_signal(number)

    def may_go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def ends(self) -> tuple[int, str, str]:
        """Its exit code, the rest of what it said, and its complaints."""
        said, complaints = self._process.communicate(timeout=60)
        return self._process.returncode, said, complaints


@contextmanager
def program(code: str) -> Iterator[Program]:
    source = PROGRAM + textwrap.dedent(code)
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Program(process)
        finally:
            process.kill()


def main(agent: str, grace: float) -> str:
    return f"""
    async def main():
        async with Runtime(max_parallel=1, grace={grace}) as rt:
            rt.listen(tell)
            rt.submit({agent})
            rt.submit(must_not_start)
    asyncio.run(main())
    """


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_lets_finish_what_runs_and_starts_nothing(number: int) -> None:
    with program(main("finishes", 60)) as started:
        started.says("running")
        started.gets(number)
        started.says("draining")
        started.may_go_on()
        code, said, _ = started.ends()
    assert said == "finished\n"
    assert code == BY_SIGNAL[signal.Signals(number)]


def signalled(code: str, number: int, signals: int) -> tuple[float, int, str, str]:
    """How long a program took to end after its last signal, its exit code and what it said."""
    with program(code) as started:
        started.says("running")
        started.gets(number)
        last = time.monotonic()
        started.says("draining")
        if signals == 2:
            started.gets(number)
            last = time.monotonic()
        ended = started.ends()
        return time.monotonic() - last, *ended


def within(bound: float, code: str, number: int, signals: int = 1) -> tuple[int, str, str]:
    """The end of a program that took no longer; of three, if this machine is busy otherwise."""
    tries = []
    for _ in range(3):
        took, status, said, complaints = signalled(code, number, signals)
        if took < bound:
            return status, said, complaints
        tries.append(took)
    pytest.fail(f"it took {tries} seconds, and may take {bound}")


@pytest.mark.parametrize("number", SIGNALS)
def test_what_does_not_finish_is_stopped_after_the_grace(number: int) -> None:
    code, said, _ = within(0.3 + 2, main("waits", 0.3), number)
    assert said == ""
    assert code == BY_SIGNAL[signal.Signals(number)]


def test_what_cannot_be_stopped_is_named_within_grace_and_two_seconds() -> None:
    code, said, complaints = within(0.3 + 2, main("never_ends", 0.3), signal.SIGTERM)
    assert said == ""
    assert code != 0
    assert "AttemptsStillAlive" in complaints
    assert "'never_ends'" in complaints


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("agent", ["waits", "never_ends"])
def test_the_second_signal_ends_it_within_a_second(number: int, agent: str) -> None:
    code, said, _ = within(1, main(agent, 300), number, signals=2)
    assert said == ""
    assert code != 0


def test_a_block_that_waits_for_something_else_is_left_too() -> None:
    code = """
    async def main():
        async with Runtime(grace=60) as rt:
            rt.listen(tell)
            rt.submit(finishes)
            try:
                await asyncio.Event().wait()
            finally:
                say("left")
    asyncio.run(main())
    """
    with program(code) as started:
        started.says("running")
        started.gets(signal.SIGTERM)
        started.says("draining")
        started.may_go_on()
        code_, said, _ = started.ends()
    assert said == "finished\nleft\n"
    assert code_ == BY_SIGNAL[signal.SIGTERM]


def test_run_without_async_listens_as_well() -> None:
    with program("interlock.run([Task('a', waits)], grace=0.1)") as started:
        started.says("running")
        started.gets(signal.SIGTERM)
        assert started.ends()[0] == BY_SIGNAL[signal.SIGTERM]


def test_an_interrupt_can_be_caught_like_any_other() -> None:
    code = """
    try:
        interlock.run([Task('a', waits)], grace=0.1)
    except KeyboardInterrupt:
        say("caught")
    """
    with program(code) as started:
        started.says("running")
        started.gets(signal.SIGINT)
        assert started.ends()[:2] == (0, "caught\n")


def test_a_programs_own_handler_is_left_alone() -> None:
    code = """
    def mine(number, frame):
        say("mine")
    signal.signal(signal.SIGTERM, mine)
    signal.signal(signal.SIGINT, mine)
    result = interlock.run([Task("a", finishes), Task("b", lambda: say("next"), after="a")])
    assert result.all_succeeded
    assert signal.getsignal(signal.SIGTERM) is mine
    """
    with program(code) as started:
        started.says("running")
        started.gets(signal.SIGTERM)
        started.says("mine")
        started.gets(signal.SIGINT)
        started.says("mine")
        started.may_go_on()
        assert started.ends()[:2] == (0, "finished\nnext\n")


def test_handlers_are_given_back_when_the_run_is_over() -> None:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    during = []

    async def looks() -> None:
        during.append(signal.getsignal(signal.SIGTERM))

    interlock.run([Task("a", looks)])
    assert during != [before[signal.SIGTERM]]
    assert {number: signal.getsignal(number) for number in SIGNALS} == before


def test_a_run_in_another_thread_leaves_signals_alone() -> None:
    during = []

    def work() -> None:
        async def looks() -> None:
            during.append(signal.getsignal(signal.SIGTERM))

        async def main() -> None:
            async with Runtime() as rt:
                await rt.submit(looks)

        asyncio.run(main())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert during == [signal.getsignal(signal.SIGTERM)]
