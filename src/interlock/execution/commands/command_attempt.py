"""One attempt of a command: the program, and the check that follows it."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import IO

from interlock.execution.backend import Job, Launched
from interlock.execution.commands.attempt_folder import Folder
from interlock.execution.commands.environment import (
    argument,
    as_bytes,
    filled,
    variables,
)
from interlock.execution.commands.launch import Call, containment, launch
from interlock.execution.commands.output import Found, Stream
from interlock.execution.commands.verdict import (
    CANNOT_START,
    Ran,
    failed,
    verdict,
    verdict_of_check,
)
from interlock.execution.ending import Ending
from interlock.execution.processes.shortage import raise_limit_of_files
from interlock.execution.processes.supervised_attempt import (
    Guarded,
    LastWords,
    Reports,
    SupervisedAttempt,
    lent,
    receive,
)
from interlock.execution.processes.sweep import sweep
from interlock.model.outcome import State

_CHUNK = 1 << 16
_LAST_CHUNKS = 32
"""So much is read of what is left in a pipe: who got away may go on writing into it."""


class CommandAttempt(SupervisedAttempt):
    """Runs a program under supervision, and takes in what it prints."""

    def __init__(self, job: Job, reports: Reports, wanted: str | None) -> None:
        super().__init__(job, reports)
        assert job.errand is not None
        self._errand = job.errand
        self._wanted = wanted

    def live(self) -> Ending | None:
        folder = self.patiently(partial(Folder, self._errand, self.job.token))
        try:
            ending = self._perform(folder)
        finally:
            folder.close()
        if ending.error is not None:
            said = self._errand.redaction.text(ending.error.message)
            if self.was_told:
                said += " (after it was told to stop)"
            ending = ending._replace(error=replace(ending.error, message=said))
        return ending

    def _perform(self, folder: Folder) -> Ending:
        command, prompt = self._errand.command, self._errand.prompt
        file = folder.places.prompt_file
        argv = [filled(each, prompt, file) for each in command.argv]
        try:
            stdin = filled(command.stdin, prompt, file)
            ran = self._run_program(folder, argv, stdin, Found(command.errors))
        except ValueError as error:  # text that the system cannot take
            return failed(CANNOT_START, f"{command.name} cannot be started: {error}")
        ending = verdict(command.name, ran)
        if ending.status is State.SUCCEEDED and command.check is not None:
            check = self._run_program(folder, ["/bin/sh", "-c", command.check], "", Found({}))
            return verdict_of_check(command.check, check) or ending
        return ending

    def _run_program(self, folder: Folder, argv: list[str], stdin: str, found: Found) -> Ran:
        """Run a program until nothing of it is left."""
        call = Call(
            self._wanted or self.patiently(containment),
            os.fsencode(self._errand.workspace),
            [argument(each) for each in argv],
            as_bytes(variables(self._errand, folder.places, os.environ)),
            raise_limit_of_files(),
        )
        words = LastWords()
        with self.guarded(partial(self._start, call, folder, stdin)) as guarded:
            streams = [Stream(self._errand.redaction, folder.log, found) for _ in range(2)]
            self._follow(guarded, streams, words, partial(self._tell, call, folder, words))
            clean = guarded.supervisor.wait() == 0
        if not clean:
            # Somebody has killed the supervisor: what it watched is known by its variables.
            lost = Launched(words.pid, words.started, call.containment, words.cgroup)
            sweep([lost], [self.job.marks], just_lost=True)
        for each in streams:
            each.finish()
        return Ran(argv, words, streams[0], streams[1], found)

    def _start(
        self, call: Call, folder: Folder, text: str, control: socket.socket
    ) -> subprocess.Popen[bytes]:
        with folder.start(text) as stdin, lent(self.job.lock) as lock, ExitStack() as ours:
            # Not left to Popen: where it gets only one of two pipes, it leaves that open (3.11).
            with ExitStack() as theirs:
                (out, out_end), (err, err_end) = (_pipe(ours, theirs) for _ in range(2))
                supervisor = launch(call, control, stdin, out_end, err_end, self.job.marks, lock)
            supervisor.stdout, supervisor.stderr = out, err
            ours.pop_all()
            return supervisor

    def _follow(
        self, guarded: Guarded, streams: list[Stream], words: LastWords, tell: Callable[[], None]
    ) -> None:
        """Take in what is printed and said, until the supervisor is done."""
        supervisor, control = guarded
        assert supervisor.stdout is not None
        assert supervisor.stderr is not None
        with supervisor.stdout, supervisor.stderr:
            pipes = {supervisor.stdout.fileno(): streams[0], supervisor.stderr.fileno(): streams[1]}
            poll = select.poll()
            for fd in (*pipes, control.fileno()):
                os.set_blocking(fd, False)
                poll.register(fd, select.POLLIN)
            watched = True
            while watched:
                for fd, _ in poll.poll():
                    if fd in pipes:
                        if _pass_on(fd, pipes[fd]) == 0:
                            poll.unregister(fd)
                        continue
                    said = receive(control)
                    if said and words.take(said):
                        tell()
                    watched = said != b""
            for fd, stream in pipes.items():
                for _ in range(_LAST_CHUNKS):
                    if not _pass_on(fd, stream):
                        break

    def _tell(self, call: Call, folder: Folder, words: LastWords) -> None:
        found = words.pid, words.started, call.containment, words.cgroup
        self.reports.launched(self.job, Launched(*found, log=folder.log_name))


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    ours.enter_context(kept := os.fdopen(reader, "rb", buffering=0))
    theirs.enter_context(given := os.fdopen(writer, "wb", buffering=0))
    return kept, given


def _pass_on(pipe: int, stream: Stream) -> int | None:
    """Take in what is in a pipe: so many bytes, none if it is closed, None if it is empty."""
    try:
        data = os.read(pipe, _CHUNK)
    except BlockingIOError:
        return None
    stream.take(data)
    return len(data)
