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

from interlock.execution.backend import AttemptJob, Launched
from interlock.execution.commands.attempt_folder import AttemptFolder
from interlock.execution.commands.environment import (
    encode_argument,
    encode_environment,
    fill_prompt,
    make_environment,
)
from interlock.execution.commands.launch import ProgramCall, choose_containment, launch
from interlock.execution.commands.output import ErrorFinder, Stream
from interlock.execution.commands.verdict import (
    CANNOT_START,
    FinishedProgram,
    failed,
    verdict,
    verdict_of_check,
)
from interlock.execution.ending import Ending
from interlock.execution.processes.shortage import raise_limit_of_files
from interlock.execution.processes.supervised_attempt import (
    AttemptReports,
    SupervisedAttempt,
    SupervisorLink,
    SupervisorMessages,
    inheritable_lock,
    receive,
)
from interlock.execution.processes.sweep import sweep
from interlock.model.outcome import State

_CHUNK = 1 << 16
_LAST_CHUNKS = 32
"""How many chunks are read of what is left in a pipe: a process that escaped may still write."""


class CommandAttempt(SupervisedAttempt):
    """Runs a program under a supervisor, and takes in what it prints."""

    def __init__(self, job: AttemptJob, reports: AttemptReports, containment: str | None) -> None:
        super().__init__(job, reports)
        assert job.command_job is not None
        self._command_job = job.command_job
        self._containment = containment

    def run_to_end(self) -> Ending | None:
        folder = self.retry_while_short(partial(AttemptFolder, self._command_job, self.job.token))
        try:
            ending = self._perform(folder)
        finally:
            folder.close()
        if ending.error is not None:
            said = self._command_job.redaction.text(ending.error.message)
            if self.was_told:
                said += " (after it was told to stop)"
            ending = ending._replace(error=replace(ending.error, message=said))
        return ending

    def _perform(self, folder: AttemptFolder) -> Ending:
        command, prompt = self._command_job.command, self._command_job.prompt
        file = folder.paths.prompt_file
        argv = [fill_prompt(each, prompt, file) for each in command.argv]
        try:
            stdin = fill_prompt(command.stdin, prompt, file)
            ran = self._run_program(folder, argv, stdin, ErrorFinder(command.errors))
        except ValueError as error:  # text that the system does not accept
            return failed(CANNOT_START, f"{command.name} cannot be started: {error}")
        ending = verdict(command.name, ran)
        if ending.status is State.SUCCEEDED and command.check is not None:
            check = self._run_program(folder, ["/bin/sh", "-c", command.check], "", ErrorFinder({}))
            return verdict_of_check(command.check, check) or ending
        return ending

    def _run_program(
        self, folder: AttemptFolder, argv: list[str], stdin: str, found: ErrorFinder
    ) -> FinishedProgram:
        """Run a program until nothing of it runs any more."""
        call = ProgramCall(
            self._containment or self.retry_while_short(choose_containment),
            os.fsencode(self._command_job.workspace.folder),
            [encode_argument(each) for each in argv],
            encode_environment(make_environment(self._command_job, folder.paths, os.environ)),
            raise_limit_of_files(),
        )
        messages = SupervisorMessages()
        with self.supervised(partial(self._start, call, folder, stdin)) as link:
            streams = [Stream(self._command_job.redaction, folder.log, found) for _ in range(2)]
            self._follow(link, streams, messages, partial(self._tell, call, folder, messages))
            clean = link.supervisor.wait() == 0
        if not clean:
            # The supervisor was killed: the processes that it watched have its variables.
            lost = Launched(messages.pid, messages.started, call.containment, messages.cgroup)
            sweep([lost], [self.job.marks], just_lost=True)
        for each in streams:
            each.finish()
        return FinishedProgram(argv, messages, streams[0], streams[1], found)

    def _start(
        self, call: ProgramCall, folder: AttemptFolder, text: str, control: socket.socket
    ) -> subprocess.Popen[bytes]:
        with (
            folder.start(text) as stdin,
            inheritable_lock(self.job.lock) as lock,
            ExitStack() as ours,
        ):
            # Not by Popen: if it gets only one of two pipes, it leaves that one open (3.11).
            with ExitStack() as theirs:
                (out, out_end), (err, err_end) = (_pipe(ours, theirs) for _ in range(2))
                supervisor = launch(call, control, stdin, out_end, err_end, self.job.marks, lock)
            supervisor.stdout, supervisor.stderr = out, err
            ours.pop_all()
            return supervisor

    def _follow(
        self,
        link: SupervisorLink,
        streams: list[Stream],
        messages: SupervisorMessages,
        tell: Callable[[], None],
    ) -> None:
        """Take in what the program prints and the supervisor reports, until that has ended."""
        supervisor, control = link
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
                    if said and messages.take(said):
                        tell()
                    watched = said != b""
            for fd, stream in pipes.items():
                for _ in range(_LAST_CHUNKS):
                    if not _pass_on(fd, stream):
                        break

    def _tell(self, call: ProgramCall, folder: AttemptFolder, messages: SupervisorMessages) -> None:
        found = messages.pid, messages.started, call.containment, messages.cgroup
        self.reports.launched(self.job, Launched(*found, log=folder.log_name))


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    ours.enter_context(kept := os.fdopen(reader, "rb", buffering=0))
    theirs.enter_context(given := os.fdopen(writer, "wb", buffering=0))
    return kept, given


def _pass_on(pipe: int, stream: Stream) -> int | None:
    """Take in what is in a pipe; return how many bytes, 0 at its end, None if it is empty."""
    try:
        data = os.read(pipe, _CHUNK)
    except BlockingIOError:
        return None
    stream.take(data)
    return len(data)
