"""The run as it goes on: drawn again and again in a terminal, told in lines elsewhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from demo_history import History
from demo_picture import Style, lanes
from interlock import Event, Kind, Runtime, State

FRAME = 0.1
"""Seconds between two frames."""
ORDER = (State.WAITING, State.RETRYING, State.RUNNING, State.BLOCKED)
"""What is told first where there is no room for all."""


@contextmanager
def screen() -> Iterator[None]:
    """A screen of our own, without a cursor; whatever happens, the old one comes back."""
    sys.stdout.write("\x1b[?1049h\x1b[?25l")
    try:
        yield
    finally:
        sys.stdout.write("\x1b[?1049l\x1b[?25h")
        sys.stdout.flush()


async def draw(rt: Runtime, history: History, style: Callable[[], Style], expected: float) -> None:
    """Draw the run until somebody cancels this."""
    while True:
        now = history.now()
        while now > expected:
            expected *= 1.25  # it takes longer than it should: look at it from further away
        write(frame(rt, history, style(), expected))
        await asyncio.sleep(FRAME)


def write(lines: list[str]) -> None:
    """Draw over the last frame. All at once, and nothing is wiped first, so nothing flickers."""
    sys.stdout.write("\x1b[H" + "\x1b[K\n".join(lines) + "\x1b[J")
    sys.stdout.flush()


def frame(rt: Runtime, history: History, style: Style, until: float) -> list[str]:
    """The counts, the lanes, and what each task does or waits for now, as far as there is room."""
    title = f"{len(history.lanes)} agents build a library in one folder"
    if history.stopping:
        title = "Stopping: what runs may finish (Ctrl-C again stops it at once)"
    clock = f"{history.now():.1f} s"
    title = style.cut(title, style.width - len(clock) - 1)
    count = rt.progress()
    counts = (
        f"{count.running} running, {count.waiting} waiting, {count.retrying} between attempts, "
        f"{count.blocked} blocked, {count.ended} ended"
    )
    # A low window has no room for lanes: why somebody waits is worth more.
    low = style.height < len(history.lanes) + 8
    lines = [
        style.paint(f"{title:<{style.width - len(clock)}}{clock}", "bold"),
        style.cut(counts),
        "",
        *([] if low else [*lanes(history, style, until), ""]),
    ]
    return [*lines, *_now(rt, history, style)][: style.height]


def _now(rt: Runtime, history: History, style: Style) -> Iterator[str]:
    states = {task_id: rt.handle(task_id).state for task_id in history.lanes}
    names = max(map(len, states)) + 2
    for wanted in ORDER:
        for task_id in (each for each, state in states.items() if state is wanted):
            reasons = _reasons(rt, task_id)
            if wanted is State.RUNNING:
                reasons = [history.lanes[task_id].doing]
            for number, reason in enumerate(reasons):
                name = f"{'' if number else task_id:<{names}}"
                yield name + style.paint(style.cut(reason, style.width - names), "dim")


def _reasons(rt: Runtime, task_id: str) -> list[str]:
    why = rt.why(task_id)
    return [reason.said(why.at) for reason in why.reasons]


def teller(rt: Runtime, history: History) -> Callable[[Event], None]:
    """A listener that tells the story in lines."""

    def tell(event: Event) -> None:
        told = list(_told(rt, event))
        head = f"{event.at - history.began:6.2f} s  {event.task_id:<10}  "
        for number, text in enumerate(told):
            print((" " * len(head) if number else head) + text, flush=True)

    return tell


def _told(rt: Runtime, event: Event) -> Iterator[str]:
    about = event.fields
    if event.kind is Kind.STARTED:
        again = f", attempt {about['attempt']}" if about["attempt"] > 1 else ""
        claims = ", ".join(map(str, rt.handle(event.task_id).task.claims))
        yield f"starts{again} ({claims})"
    elif event.kind is Kind.RETRYING:
        yield f"{about['detail']}; tries again"
    elif event.kind is Kind.WAITING and rt.handle(event.task_id).state is State.WAITING:
        # Most start in the very turn in which they become ready: those did not wait.
        yield "waits:"
        yield from (f"  {reason}" for reason in _reasons(rt, event.task_id))
    elif event.kind is Kind.SETTLED:
        outcome = event.data
        yield f"{outcome.status}: {outcome.result if outcome.succeeded else outcome.reason}"
