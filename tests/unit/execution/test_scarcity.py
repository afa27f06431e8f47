"""What the system is short of for a while is waited for."""

from __future__ import annotations

import errno
import os

import pytest

from interlock.execution.processes.shortage import PAUSES, retry_while_short
from tests.ordinary import ordinarily


class Short:
    """Of something, so many times."""

    def __init__(self, number: int, times: int) -> None:
        self.number = number
        self.times = times
        self.waited: list[float] = []

    def make(self) -> str:
        self.times -= 1
        if self.times >= 0:
            raise OSError(self.number, os.strerror(self.number))
        return "made"

    def wait(self, pause: float) -> bool:
        self.waited.append(pause)
        return False


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM])
def test_a_shortage_is_waited_for(number: int) -> None:
    short = Short(number, 4)
    assert retry_while_short(short.make, short.wait) == "made"
    assert tuple(short.waited) == PAUSES[:3]


def test_not_for_ever() -> None:
    short = Short(errno.EMFILE, 1000)
    with pytest.raises(OSError, match="Too many open files"):
        retry_while_short(short.make, short.wait)
    assert tuple(short.waited) == PAUSES


def test_not_by_an_attempt_that_is_to_stop() -> None:
    short = Short(errno.EMFILE, 2)
    with pytest.raises(OSError, match="Too many open files"):
        retry_while_short(short.make, lambda _: True)


def test_any_other_error_is_one_at_once() -> None:
    short = Short(errno.ENOENT, 1)
    with pytest.raises(FileNotFoundError):
        retry_while_short(short.make, short.wait)
    assert not short.waited


SCRIPT = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from interlock import Task, command, run
agents = [command(["sh", "-c", "sleep 0.5; ulimit -Sn"], check="true")] * 24
done = run([Task(str(n), each) for n, each in enumerate(agents)], max_parallel=24)
print({{each.result or each.reason for each in done}})
"""


@pytest.mark.parametrize("hard", [4096, 60], ids=["may-be-raised", "may-not-be-raised"])
def test_more_agents_than_descriptors_end_well_and_get_the_usual_limit(hard: int) -> None:
    assert ordinarily(SCRIPT.format(soft=60, hard=hard)) == "{'60'}\n"
