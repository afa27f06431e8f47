"""The process of one function agent, from its first line: one half supervises, one runs it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from dataclasses import replace
from inspect import iscoroutine
from typing import Any, NoReturn

from interlock.errors import NotAnAgent
from interlock.execution.ending import Ending, raised, returned
from interlock.execution.processes import main_script
from interlock.execution.processes.supervisor import Supervisor
from interlock.execution.processes.wire import (
    HEAD,
    FunctionCall,
    frame,
    length,
    pack_ending,
    unpack_call,
)

_TOLD = "the agent was told to stop"


def main(control: int, work: int, lock: int | None, name: str) -> None:
    """Run in a fresh interpreter. `control` leads to the supervisor, `work` to the agent.

    `lock` is held by being open: the supervisor's half keeps it until the agent is gone.
    """
    Supervisor(control).split(work)
    os.close(control)
    if lock is not None:
        os.close(lock)
    os.set_inheritable(work, False)
    threading.current_thread().name = name
    _serve(work)


def _serve(work: int) -> None:
    """Send our pid, take one call, answer with its ending."""
    us = os.getpid()
    _send(work, str(us).encode())
    ending: Ending
    try:
        try:
            signal.signal(signal.SIGTERM, _stop)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            ending = _perform(_receive(work), work)
        except BaseException as error:  # whatever an agent raises is its own failure
            if os.getpid() != us:
                raise
            ending = _failure(error)
        signal.signal(signal.SIGTERM, _ignore)  # the answer must not be torn
    except asyncio.CancelledError as told:  # the signal came between two of these lines
        ending = _failure(told)
    if os.getpid() == us:  # a child that the agent forked may come here too, without an answer
        _send(work, pack_ending(ending))


def _stop(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, _ignore)  # cleaning up must not be interrupted again
    raise asyncio.CancelledError(_TOLD)


def _ignore(*_: object) -> None:
    """Ignore a signal. Not SIG_IGN, which the children of this process would inherit."""


def _perform(call: FunctionCall, work: int) -> Ending:
    sys.path[:] = call.path
    sys.argv[:] = call.argv
    if call.script is not None:
        problem = _import_script(call.script, work)
        if problem is not None:
            return problem
    function, args, kwargs = call.unpack()
    value = function(*args, **kwargs)
    if iscoroutine(value):
        value = asyncio.run(_cancellable(value))
    return returned(value)


async def _cancellable(agent: Coroutine[Any, Any, Any]) -> Any:
    """Await the agent; SIGTERM cancels it, as a cancel does in the runtime's own process."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel, _TOLD)
    value = await agent
    return await value if iscoroutine(value) else value


def _import_script(script: main_script.MainScript, work: int) -> Ending | None:
    def refuse(reason: str) -> None:
        _send(work, pack_ending(_failure(NotAnAgent(reason))))
        os._exit(1)

    try:
        main_script.import_again(script, refuse)
    except BaseException as error:  # noqa: BLE001 - the user's script may raise anything
        ending = _failure(error)
        assert ending.error is not None
        text = f"while {script.path} was imported for its agent: {ending.error.message}"
        return ending._replace(error=replace(ending.error, message=text))
    return None


def _failure(error: BaseException) -> Ending:
    ending = raised(error)
    if ending.fatal and ending.error is not None:
        # Out of memory or stack, in a process that ends anyway: another attempt may succeed.
        return ending._replace(fatal=False, error=replace(ending.error, retryable=True))
    return ending


def _send(work: int, body: bytes) -> None:
    for part in (frame(body), body):
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(work, rest) :]


def _receive(work: int) -> FunctionCall:
    return unpack_call(_exactly(work, length(_exactly(work, HEAD))))


def _exactly(work: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(work, min(size, 1 << 20))
        if not part:
            os._exit(1)  # the runtime's process has ended
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
