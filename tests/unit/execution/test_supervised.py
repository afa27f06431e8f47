"""What supervisors say is understood however it is cut, and in whatever order it comes."""

from __future__ import annotations

import pytest

from interlock.execution.processes.supervised_attempt import SupervisorMessages


@pytest.mark.parametrize(
    "said",
    [
        [b"launched 5 6 \n0\n"],
        [b"0\nlaunched 5 6 \n"],  # in a namespace two processes speak, and either may be first
        [b"laun", b"ched 5 6", b" \n", b"0", b"\n"],
    ],
)
def test_two_lines_are_two_facts(said: list[bytes]) -> None:
    words = SupervisorMessages()
    assert [words.take(each) for each in said].count(True) == 1
    assert (words.pid, words.started, words.cgroup, words.status) == (5, 6, "", 0)


def test_a_failure_and_a_cgroup_are_heard() -> None:
    words = SupervisorMessages()
    words.take(b"launched 5 6 /sys/fs/cgroup/a b\nfailed 2 run\n32512\n")
    assert words.cgroup == "/sys/fs/cgroup/a b"
    assert words.failure == (2, "run")
    assert words.status == 32512
