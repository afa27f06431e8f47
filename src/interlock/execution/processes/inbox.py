"""What the process of a function agent has sent so far."""

from __future__ import annotations

from interlock.execution.processes.wire import HEAD, NotAFrame, length


class Inbox:
    """Takes in bytes as they come: the agent's pid, and in the end its answer.

    The bytes cannot be trusted: an agent may write into descriptors that are not its own.
    """

    def __init__(self) -> None:
        self.pid: int | None = None
        self.answer: bytes | None = None
        self.is_spoilt = False
        """Something came that is no message of ours; from then on everything is discarded."""
        self._buffer = bytearray()

    def take(self, data: bytes) -> None:
        self._buffer += data
        while not self.is_spoilt and (body := self._next()) is not None:
            if self.pid is None:
                self.is_spoilt = not body.isdigit()
                self.pid = None if self.is_spoilt else int(body)
            elif self.answer is None:
                self.answer = body
        if self.is_spoilt:
            self._buffer.clear()

    def _next(self) -> bytes | None:
        if len(self._buffer) < HEAD:
            return None
        try:
            end = HEAD + length(bytes(self._buffer[:HEAD]))
        except NotAFrame:
            self.is_spoilt = True
            return None
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            body = bytes(view[HEAD:end])
        del self._buffer[:end]
        return body
