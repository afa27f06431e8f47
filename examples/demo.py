"""Thirteen agents build a library, its tests and its pages in one folder: `make demo`.

The job is real, in a folder that is gone afterwards: files are written, read and checked. Some
tasks claim what others claim, one needs a second attempt, one fails and two are skipped for it.
In a terminal the run is drawn as it goes on; elsewhere, and with NO_COLOR, it is told in lines.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from demo_history import History
from demo_job import Witness, conflicting, overlaps, tasks
from demo_live import draw, screen, teller
from demo_picture import Style, lanes
from interlock import AttemptsStillAlive, RunResult, Runtime, State

SLOTS = 4
EXPECTED = 6.5
"""Seconds that the run is thought to take at a pace of 1."""


class Demo:
    """One run of the job, and what is told of it."""

    def __init__(self, pace: float, *, fix: bool) -> None:
        self._pace = pace
        self._tasks = tasks(pace, fix=fix)
        self._witness = Witness()
        self._live = _is_terminal()
        self._history = History(self._tasks)

    async def run(self, folder: Path) -> RunResult:
        watched = [self._witness.watch(task) for task in self._tasks]
        async with Runtime(max_parallel=SLOTS, workspace=folder, grace=5) as rt:
            rt.listen(self._history.hear)
            if not self._live:
                rt.listen(teller(rt, self._history))
                return await rt.run(watched)
            drawing = asyncio.create_task(
                draw(rt, self._history, self.style, EXPECTED * self._pace)
            )
            try:
                return await rt.run(watched)
            finally:
                drawing.cancel()

    def show(self) -> bool:
        """Run it, and show it; whether nothing conflicting overlapped."""
        with tempfile.TemporaryDirectory(
            prefix="interlock-demo-", ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            with screen() if self._live else nullcontext():
                result = asyncio.run(self.run(folder))
            files = sum(each.is_file() for each in folder.rglob("*"))
        style = self.style()
        if not self._live:
            print()
        print("\n".join(lanes(self._history, style, result.duration, ended=True)))
        print(f"\n{style.legend()}\n")
        for sentence in self._summary(result, files):
            print(textwrap.fill(sentence, style.width))
        return not self._overlaps()

    def _summary(self, result: RunResult, files: int) -> Iterator[str]:
        work = sum(span.ended - span.began for span in self._witness.spans)
        took = result.duration
        yield (
            f"{files} files by {len(result)} agents in {took:.1f} s; "
            f"one after another {work:.1f} s, {work / took:.1f} times as long."
        )
        for outcome in result.failures:
            if outcome.status is not State.SKIPPED:
                yield f"{outcome.task_id} {outcome.status}: {outcome.reason}"
        skipped = [each.task_id for each in result if each.status is State.SKIPPED]
        if skipped:
            yield f"So {' and '.join(skipped)} were skipped; everybody else went on."
        pairs, found = conflicting(self._tasks), self._overlaps()
        for one, other in found:
            yield f"OVERLAP: {one} and {other}"
        if not found:
            yield (
                f"By the agents' own clocks no two that conflict ({len(pairs)} pairs) "
                "were at work at once."
            )

    def _overlaps(self) -> list[tuple[object, object]]:
        return [*overlaps(conflicting(self._tasks), self._witness.spans)]

    def style(self) -> Style:
        """What can be shown; looked at for each frame, because windows change their size."""
        size = shutil.get_terminal_size()
        return Style(size.columns, size.lines, self._live, _is_unicode())


def _is_terminal() -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return sys.stdout.isatty() and not plain


def _is_unicode() -> bool:
    try:
        "█·✓✗".encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pace", type=float, default=1.0, help="0.1: ten times as fast")
    parser.add_argument("--fix", action="store_true", help="without the mistake that check finds")
    chosen = parser.parse_args()
    try:
        return 0 if Demo(chosen.pace, fix=chosen.fix).show() else 1
    except KeyboardInterrupt:
        print("Interrupted: every agent has stopped, and the folder is gone.")
    except AttemptsStillAlive as error:
        print(f"Interrupted: {error}")
    return 130


if __name__ == "__main__":
    sys.exit(main())
