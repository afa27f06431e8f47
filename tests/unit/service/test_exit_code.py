"""The exit code of a run follows from data, not from the words of a message."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Runtime, State, Task
from interlock.journal.state.run_facts import TaskFacts
from interlock.service.coordinator import _exit_code
from interlock.service.exit_codes import ExitCode


def timed_out(**facts: str) -> TaskFacts:
    return TaskFacts("a", State.TIMED_OUT, 0.0, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", ["", "the deadline of its group passed", "zu spät"])
def test_rewording_the_cause_of_a_deadline_changes_no_exit_code(words: str) -> None:
    assert _exit_code([timed_out(cause=words, ended_by="run_deadline")], 1.0) is ExitCode.DEADLINE
    assert _exit_code([timed_out(cause=words, ended_by="task_deadline")], 1.0) is ExitCode.FAILED
    assert _exit_code([timed_out(cause=words)], 1.0) is ExitCode.FAILED
    assert _exit_code([timed_out(cause=words, ended_by="run_deadline")], None) is ExitCode.FAILED


async def test_an_outcome_says_which_deadline_ended_the_task() -> None:
    async def waits() -> None:
        await asyncio.Event().wait()

    async with Runtime() as rt:
        of_run = await rt.run([Task("a", waits)], deadline=0.01)
        of_task = await rt.run([Task("b", waits, deadline=0.01)])
        of_attempt = await rt.run([Task("c", waits, timeout=0.01)])
    assert [each.ended_by for each in of_run] == ["run_deadline"]
    assert [each.ended_by for each in of_task] == ["task_deadline"]
    assert [each.ended_by for each in of_attempt] == [""]
