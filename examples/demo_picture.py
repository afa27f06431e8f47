"""The picture of a run: one lane for each task, over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from demo_history import History, Lane
from interlock import Claim, State

COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
MARKS = {
    "runs": ("█", "#", "cyan"),
    "waits": ("·", ".", "yellow"),
    "backoff": ("~", "~", "yellow"),
    State.SUCCEEDED: ("✓", "+", "green"),
    State.SKIPPED: ("-", "-", "dim"),
}
"""For each phase its mark, the same in ASCII, and its colour."""
FAILURE = ("✗", "x", "red")
LEGEND = {"runs": "runs", "waits": "waits", "backoff": "between attempts"}


@dataclass(frozen=True)
class Style:
    """What the terminal can show."""

    width: int
    height: int
    colour: bool
    unicode: bool

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.colour and text.strip() else text

    def mark(self, phase: str, count: int = 1) -> str:
        fancy, plain, colour = MARKS.get(phase, FAILURE)
        return self.paint((fancy if self.unicode else plain) * count, colour)

    def legend(self) -> str:
        return "  ".join(f"{self.mark(phase)} {words}" for phase, words in LEGEND.items())

    def cut(self, text: str, width: int = 0) -> str:
        """As much of an unpainted text as fits into the width, by default a whole line."""
        width = width or self.width
        dots = "…" if self.unicode else "..."
        return text if len(text) <= width else text[: max(0, width - len(dots))] + dots


def lanes(history: History, style: Style, until: float, *, ended: bool = False) -> list[str]:
    """The timeline up to a time: what each task claims, or how it ended, and what it did when."""
    names = max(len(task_id) for task_id in history.lanes) + 2
    beside = {
        task_id: _ending(lane) if ended else ", ".join(map(_short, lane.task.claims))
        for task_id, lane in history.lanes.items()
    }
    widest = min(style.width // 3 - 4, max(map(len, beside.values())))
    margin = widest + 2 if style.width >= 70 else 0
    room = max(5, style.width - names - margin - 1)  # the end is marked in a cell of its own
    cell = until / room
    told = style.cut("outcome" if ended else "claims", margin - 2) if margin else ""
    head = f"{'task':<{names}}{told:<{margin}}"
    drawn = [style.paint(head + _axis(until, cell, room), "dim")]
    for task_id, lane in history.lanes.items():
        about = f"{style.cut(beside[task_id], margin - 2):<{margin}}" if margin else ""
        colour = MARKS.get(lane.end or "", FAILURE)[2] if ended else "dim"
        bar = "".join(_bar(lane, style, cell, min(history.now(), until)))
        drawn.append(f"{task_id:<{names}}{style.paint(about, colour)}{bar}")
    return drawn


def _bar(lane: Lane, style: Style, cell: float, until: float) -> Iterator[str]:
    """A cell shows the phase in its middle, so two lanes are comparable cell by cell."""
    count = 0
    while (count + 0.5) * cell <= until:
        phase = lane.at((count + 0.5) * cell)
        if lane.end is not None and phase == lane.end:
            break
        yield style.mark(phase) if phase in MARKS else " "
        count += 1
    if lane.end is not None:
        yield style.mark(lane.end)


def _axis(until: float, cell: float, room: int) -> str:
    step = next(each for each in (0.1, 0.5, 1, 2, 5, 10, 30, 60) if each / cell >= 6 or each == 60)
    axis = ""
    for number in range(int(until / step) + 1):
        label = f"{number * step:g} s"
        place = round(number * step / cell)
        if place + len(label) <= room:
            axis = f"{axis:<{place}}{label}"
    return axis


def _short(claim: Claim) -> str:
    """A claim with r for reading and w for writing."""
    return f"{claim.mode[0]} {claim.resource}"


def _ending(lane: Lane) -> str:
    again = f", attempt {lane.attempts}" if lane.attempts > 1 else ""
    return f"{lane.end}{again}"
