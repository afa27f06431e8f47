"""Thirteen tasks on one repository, in simulated time: `make demo`.

The kernel is the real one. What it is told (how long an attempt takes, whether it fails, whether
it stops when asked) comes from the plan below, and its clock is virtual. In a terminal the run is
drawn as it happens; with `--fast`, or without a terminal, it is told in lines and nothing waits.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from dataclasses import dataclass
from heapq import heappop, heappush

from interlock import Claim, Retry, State, Task
from interlock.kernel.instructions import Change, Instruction, SetTimer, Settle, Start, Stop
from interlock.kernel.kernel import Kernel
from interlock.kernel.stimuli import Ended, Gone, Stimulus, Submit, Tick
from interlock.model import why

# -- the plan ---------------------------------------------------------------------------------

SLOTS = 4
NEVER = float("inf")


@dataclass(frozen=True)
class Act:
    """What one attempt will do: how long it works, how that ends, how long it resists a stop."""

    seconds: float
    status: State = State.SUCCEEDED
    resists: float = 0.0


PLAN: list[tuple[Task, list[Act]]] = [
    (Task("schema", writes="db/schema.sql", estimate=2), [Act(2)]),
    (Task("api", writes="src/api/", reads="db/", after=["schema"], estimate=5), [Act(5)]),
    (
        Task("login", writes="src/login.py", estimate=4, retry=Retry(attempts=2, backoff=1)),
        [Act(2, State.FAILED), Act(3)],
    ),
    (Task("rename", writes="src/", estimate=2), [Act(2.5)]),
    (Task("review", reads="src/**", after=["rename"], estimate=3), [Act(3)]),
    (Task("tests", reads="src/", after=["rename"], estimate=4), [Act(4)]),
    (Task("typos", writes="docs/**/*.md", estimate=4), [Act(4)]),
    (Task("guide", writes="docs/guide.md", estimate=3), [Act(3)]),
    (Task("theme", writes="docs/conf.py", estimate=2), [Act(2)]),
    (Task("migrate", uses="db:staging!", timeout=4, estimate=3), [Act(NEVER, resists=4.5)]),
    (Task("seed", uses="db:staging!", estimate=2), [Act(3)]),
    (Task("icons", writes="art/{icons,logo}/", estimate=2), [Act(2.5, State.FAILED)]),
    (Task("publish", after=["icons", "tests"], estimate=1), [Act(1)]),
]

# -- the world --------------------------------------------------------------------------------


class World:
    """Drives the kernel on a virtual clock and keeps what the picture needs."""

    def __init__(self) -> None:
        self.kernel = Kernel(slots=SLOTS)
        self.now = 0.0
        self.log: list[tuple[float, str, str, tuple[str, ...]]] = []
        self.outcomes: dict[str, Settle] = {}
        self.worked = 0.0
        """Seconds that attempts were alive, all added up."""
        self._acts = {task.id: acts for task, acts in PLAN}
        self._started: dict[int, tuple[Act, float]] = {}
        self._agenda: list[tuple[float, int, Stimulus]] = []
        self._serial = 0

    @property
    def is_over(self) -> bool:
        return len(self.outcomes) == len(PLAN) and not any(self.kernel.alive())

    def submit(self) -> None:
        self._send(Submit(tuple(task for task, _ in PLAN)))

    def pass_time(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, stimulus = heappop(self._agenda)
            self._send(stimulus)
        self.now = until

    def _send(self, stimulus: Stimulus) -> None:
        if isinstance(stimulus, (Ended, Gone)):
            _, since = self._started[stimulus.token]
            self.worked += self.now - since
        if isinstance(stimulus, Gone):
            self._note("gone", stimulus.task_id, "nothing of it is left: its claims are free")
        instructions = self.kernel.handle(stimulus, self.now)
        # Why somebody waits is asked when all is done, so it is told after what was done.
        for instruction in sorted(instructions, key=lambda each: isinstance(each, Change)):
            self._perform(instruction)

    def _perform(self, instruction: Instruction) -> None:
        match instruction:
            case Start(task_id, attempt, token):
                act = self._acts[task_id][attempt - 1]
                self._started[token] = act, self.now
                self._note("start", task_id, f"attempt {attempt}" if attempt > 1 else "")
                if act.seconds < NEVER:
                    self._later(act.seconds, Ended(task_id, token, act.status))
            case Stop(task_id, token, reason):
                act, _ = self._started[token]
                self._note("stop", task_id, f"it {reason}, and takes no notice: a zombie")
                self._later(act.resists, Gone(task_id, token))
                for other, _ in PLAN:
                    told = reasons(self.kernel, other.id)
                    if any(text.startswith(f"{task_id} has ") for text in told):
                        self._note(self.kernel.state(other.id), other.id, *told)
            case SetTimer(at) if at is not None:
                self._later(at - self.now, Tick())
            case Settle(task_id, status, cause=cause):
                self.outcomes[task_id] = instruction
                self._note(status, task_id, f"because of {cause}" if cause else "")
            case Change(task_id, State.RETRYING, detail):
                self._note("retrying", task_id, detail, *reasons(self.kernel, task_id))
            case Change(task_id, State.WAITING | State.BLOCKED as state, _):
                # Many start in the very turn in which they become ready: those did not wait.
                if self.kernel.state(task_id) is state:
                    self._note(state, task_id, *reasons(self.kernel, task_id))

    def _later(self, seconds: float, stimulus: Stimulus) -> None:
        self._serial += 1
        heappush(self._agenda, (self.now + seconds, self._serial, stimulus))

    def _note(self, what: str, task_id: str, *texts: str) -> None:
        self.log.append((self.now, what, task_id, texts))


# -- why it waits, in words -------------------------------------------------------------------


def reasons(kernel: Kernel, task_id: str) -> list[str]:
    return [_say(reason) for reason in kernel.why(task_id).reasons]


def _say(reason: why.Reason) -> str:
    match reason:
        case why.UnfinishedDependency(task_id=task_id, state=state):
            return f"comes after {task_id} ({state})"
        case why.HeldClaim(holder=holder, holder_claim=theirs, since=since, stopping=stopping):
            zombie = ", was told to stop, is not gone" if stopping else ""
            return f"{holder} has {theirs.resource} since {since:g} s{zombie}"
        case why.LackingCapacity(resource=resource, free=free):
            return f"{free or 'no'} {resource} free"
        case why.Backoff(until=until):
            return f"next attempt at {until:g} s"
        case _:
            return str(reason)


# -- the picture ------------------------------------------------------------------------------

WIDTH, HEIGHT = 80, 24
CELL = 0.5
"""Seconds of virtual time that one character of a lane stands for."""
FRAME = 0.22
"""Seconds of real time for it."""
NAMES, CLAIMS = 9, 21
COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

# For each kind of cell: in Unicode, in ASCII, its colour, and what the legend calls it.
CELLS = {
    "run": ("█", "#", "cyan", "runs"),
    "wait": ("·", ".", "yellow", "waits"),
    "after": (" ", " ", "dim", ""),
    "backoff": ("~", "~", "yellow", "between attempts"),
    "zombie": ("▒", "%", "red", "zombie"),
    "good": ("✓", "+", "green", ""),
    "bad": ("✗", "x", "red", ""),
    "skip": ("-", "-", "dim", ""),
    "over": (" ", " ", "dim", ""),
}
ENDS = {State.SUCCEEDED: "good", State.SKIPPED: "skip"}
STATES = {State.RUNNING: "run", State.WAITING: "wait", State.RETRYING: "backoff"}


class Picture:
    """Lanes over time. A cell is filled in when its time has passed."""

    def __init__(self, world: World, *, colour: bool, unicode: bool) -> None:
        self._world = world
        self._colour = colour
        self._unicode = unicode
        self._lanes: dict[str, list[str]] = {task.id: [] for task, _ in PLAN}

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self._colour and text.strip() else text

    def add_cell(self) -> None:
        kernel = self._world.kernel
        zombies = {alive.task_id for alive in kernel.alive() if alive.zombie}
        for task_id, lane in self._lanes.items():
            state = kernel.state(task_id)
            if task_id in zombies:
                lane.append("zombie")
            elif not state.is_end:
                lane.append(STATES.get(state, "after"))
            else:
                lane.append("over" if {"good", "bad", "skip"} & set(lane) else _mark(state))

    def frame(self) -> list[str]:
        """The run as it is now, and why each task that waits does so."""
        world = self._world
        count = world.kernel.progress()
        left = f"{count.running} running, {count.waiting} waiting, {count.ended} ended"
        clock = f"{world.now - CELL / 2:5.1f} s, {SLOTS} slots"
        head = self.paint(f"{left:<{WIDTH - len(clock) - 1}}", "bold") + self.paint(clock, "dim")
        told = [task for state in STATES for task in self._in(state) if state is not State.RUNNING]
        told += self._in(State.BLOCKED)
        room = HEIGHT - len(PLAN) - 5
        asked = self.paint(f"{'why is it waiting?':<{NAMES + CLAIMS}}", "bold")
        lines = [head, *self.lanes(), "", asked + self.legend()]
        for task_id in told[:room]:
            text = "; ".join(reasons(world.kernel, task_id))
            if len(text) > WIDTH - NAMES - 1:
                text = text[: WIDTH - NAMES - 4] + "..."
            lines.append(f"{task_id:<{NAMES}}{self.paint(text, 'dim')}")
        return lines

    def _in(self, state: State) -> list[str]:
        kernel = self._world.kernel
        return [task.id for task, _ in PLAN if kernel.state(task.id) is state]

    def lanes(self, *, ended: bool = False) -> list[str]:
        """The timeline: what each task claims, or how it ended, and what it did when."""
        title = "outcome" if ended else "claims"
        axis = "".join(f"{second:<10}" for second in range(0, 25, 5)).rstrip()
        lines = [self.paint(f"{'task':<{NAMES}}{title:<{CLAIMS}}{axis}", "dim")]
        for task, _ in PLAN:
            beside = ", ".join(map(_short, task.claims))
            colour = "dim"
            if ended:
                outcome = self._world.outcomes[task.id]
                colour = CELLS[_mark(outcome.status)][2]
                again = f", attempt {outcome.attempts}" if outcome.attempts > 1 else ""
                beside = f"{outcome.status}{again}"
            lane = [kind for kind in self._lanes[task.id] if kind != "over"]
            drawn = "".join(map(self._cell, lane))
            beside = self.paint(f"{beside[: CLAIMS - 1]:<{CLAIMS}}", colour)
            lines.append(f"{task.id:<{NAMES}}{beside}{drawn}")
        return lines

    def legend(self) -> str:
        named = [(kind, words) for kind, (*_, words) in CELLS.items() if words]
        return "  ".join(f"{self._cell(kind)} {self.paint(words, 'dim')}" for kind, words in named)

    def _cell(self, kind: str) -> str:
        fancy, plain, colour, _ = CELLS[kind]
        return self.paint(fancy if self._unicode else plain, colour)


def _short(claim: Claim) -> str:
    """A claim as the lanes show it: r for reading, w for writing."""
    return f"{claim.mode[0]} {claim.resource}" if claim.is_path else str(claim)


def _mark(end: State) -> str:
    return ENDS.get(end, "bad")


# -- the run ----------------------------------------------------------------------------------


def run(world: World, picture: Picture, *, animate: bool) -> None:
    world.submit()
    cells, told, drawn = 0, 0, 0
    while not world.is_over:
        world.pass_time((cells + 0.5) * CELL)
        picture.add_cell()
        cells += 1
        if animate:
            drawn = _redraw(picture.frame(), drawn)
            time.sleep(FRAME)  # noqa: TID251 - here it is the eye that is waited for
            continue
        for at, what, task_id, texts in world.log[told:]:
            head = f"{at:5.1f}  {what:<10} {task_id:<{NAMES}}"
            print(f"\n{'':<{len(head)}}".join([head + texts[0], *texts[1:]]).rstrip())
        told = len(world.log)
    if animate:
        _redraw([], drawn)
    else:
        print()


def _redraw(lines: list[str], drawn: int) -> int:
    """Draw over the last frame; how many lines there are now."""
    up = f"\x1b[{drawn}A" if drawn else ""
    sys.stdout.write(up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
    sys.stdout.flush()
    return len(lines)


def tell_end(world: World, picture: Picture) -> None:
    took = max(outcome.ended_at for outcome in world.outcomes.values())
    print("\n".join([*picture.lanes(ended=True), "", picture.legend(), ""]))
    print(
        f"{took:g} s side by side; {world.worked:g} s one after another, "
        f"{world.worked / took:.1f} times as long.\n"
        "`seed` waited until nothing was left of the zombie that held its database.\n"
        "Time and agents are simulated; the kernel that decided is the real one."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fast", action="store_true", help="tell it in lines, and do not wait")
    chosen = parser.parse_args()
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    size = shutil.get_terminal_size()
    large = size.columns >= WIDTH and size.lines >= HEIGHT
    try:
        "█·▒✓✗".encode(sys.stdout.encoding)
        unicode = True
    except UnicodeEncodeError:
        unicode = False
    animate = terminal and large and not chosen.fast
    world = World()
    colour = terminal and not os.environ.get("NO_COLOR")
    picture = Picture(world, colour=colour, unicode=unicode)
    try:
        if animate:
            sys.stdout.write("\x1b[?25l")  # hides the cursor
        run(world, picture, animate=animate)
        tell_end(world, picture)
    except KeyboardInterrupt:
        return 130
    finally:
        if animate:
            sys.stdout.write("\x1b[?25h")
    return 0


if __name__ == "__main__":
    sys.exit(main())
