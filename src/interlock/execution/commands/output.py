"""The output of a program: written to its log, kept as its result, searched for error patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping

from interlock.execution.commands.log_file import LogFile
from interlock.execution.commands.plain_output import Cleaner
from interlock.model.redaction import Redaction

LONGEST_RESULT = 1 << 16
_LONGEST_LINE = 1 << 16
"""A longer line is searched in pieces."""
_OVERLAP = 1 << 12
_AT_ONCE = 2_000
"""How many characters a pattern is tried on at once: its time may grow with their cube."""
_SHOWN = 500


class ErrorFinder:
    """Finds the first line of output that matches an error pattern, and the kind of the error."""

    def __init__(self, errors: Mapping[str, tuple[str, ...]]) -> None:
        self._patterns = [
            (kind, re.compile(pattern, re.MULTILINE))
            for kind, patterns in errors.items()
            for pattern in patterns
        ]
        self.kind = ""
        self.line = ""

    def look(self, lines: str) -> None:
        """Search some lines; a pattern has to match within one of them.

        As many lines as are not too long together are searched at once. A line that is too long by
        itself is searched in pieces that overlap by half.
        """
        if not self._patterns:
            return
        begin = 0
        while begin < len(lines) and not self.kind:
            end = begin + _AT_ONCE
            if end >= len(lines):
                end = following = len(lines)
            elif whole := lines.rfind("\n", begin, end) + 1:
                end = following = whole
            else:
                following = end - _AT_ONCE // 2
            self._look_between(lines, begin, end)
            begin = following

    def _look_between(self, lines: str, begin: int, end: int) -> None:
        best = end
        for kind, pattern in self._patterns:
            for found in pattern.finditer(lines, begin, end):
                first = lines.rfind("\n", 0, found.start()) + 1
                if first >= best:
                    break
                last = lines.find("\n", first)
                last = len(lines) if last < 0 else last
                more = min(last, end + _AT_ONCE // 2)
                if found.end() > last and not pattern.search(lines, max(first, begin), last):
                    continue  # the match reached beyond the end of the line
                if found.end() == end < last and not pattern.match(lines, found.start(), more):
                    continue  # the match took the end of the piece for the end of the line
                best, self.kind, self.line = first, kind, lines[first:last]
                break


class Stream:
    """One stream of a program: bytes come in, whole lines go to the log."""

    def __init__(self, redaction: Redaction, log: LogFile, found: ErrorFinder) -> None:
        self._clean = Cleaner()
        self._redact = redaction.stream()
        self._log = log
        self._found = found
        self._line = ""
        self._seen = 0
        """How much of an unfinished line has been logged."""
        self._tail = bytearray()
        self._left_out = 0
        self.last_line = ""

    def take(self, data: bytes) -> None:
        self._text(self._redact.take(self._clean.take(data)))

    def finish(self) -> None:
        """Take in what is left: the stream has ended."""
        self._text(self._redact.take(self._clean.rest()) + self._redact.rest())
        if self._line:
            self._whole_lines(self._line + "\n")
            self._line = ""
        self._shorten()

    def _text(self, text: str) -> None:
        if not text:
            return
        self._keep(text.encode("utf-8", "replace"))
        lines, newline, rest = text.rpartition("\n")
        if newline:
            self._whole_lines(f"{self._line}{lines}\n")
            self._line = ""
        self._line += rest
        if len(self._line) > _LONGEST_LINE:
            self._found.look(self._line)
            self._log.write(self._line[self._seen :].encode("utf-8", "replace"))
            self._line = self._line[-_OVERLAP:]
            self._seen = len(self._line)

    def _whole_lines(self, lines: str) -> None:
        self._found.look(lines)
        self._log.write(lines[self._seen :].encode("utf-8", "replace"))
        self._seen = 0
        last = lines[-2 * _SHOWN :].rstrip().rpartition("\n")[2]
        if last:
            self.last_line = last[-_SHOWN:]

    def _keep(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > 4 * LONGEST_RESULT:
            self._shorten()

    def _shorten(self) -> None:
        if len(self._tail) > LONGEST_RESULT:
            self._left_out += len(self._tail) - LONGEST_RESULT
            del self._tail[:-LONGEST_RESULT]

    def result(self) -> str:
        """Return the end of what was printed; a first line says how much was left out."""
        text = self._tail.decode("utf-8", "ignore").rstrip("\n")
        return f"[... {self._left_out} bytes left out ...]\n{text}" if self._left_out else text
