"""Runs to look at: made by hand, with counts that agree with their tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from typing import Any

from rich.console import Console, RenderableType

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.model.claim import write
from interlock.model.outcome import State
from interlock.model.progress import Progress
from interlock.model.why import Explanation, HeldClaim, NoCapacity

NOW = 1_000.0
HOSTILE = (
    "\x1b]0;owned\x07a\x1b[2Jb\x9b31mc\u202egpj.exe\u2066d\x00\x07\x7f\u200be\tf\r\ng"
    "\ud800\u2028h\x1b]8;;http://x\x1b\\link\x1bPq\x1b\\i\x85\x1b["
)
NAMES = (
    "api",
    "refactor/" + "a-very-long-name-" * 12 + "end",
    "日本語のとても長い名前" * 6,
    "👩\u200d👩\u200d👧\u200d👦 family",
    "e\u0301" * 60,
    "x" * 3_000,
)


def task(task_id: str, state: State = State.WAITING, **facts: Any) -> TaskFacts:
    """A task; what is not said is as it would be."""
    if state in (State.RUNNING, State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.NEEDS_YOU):
        facts = {"attempt": 1, "started_at": NOW - 30, **facts}
    if state.is_end:
        facts = {"ended_at": NOW - 5, "duration": 25.0, **facts}
    return TaskFacts(task_id, state, **{"since": NOW - 20, "agent": "codex", **facts})


def run(*tasks: TaskFacts, **facts: Any) -> RunFacts:
    """A run of these tasks, a minute after its start."""
    counts = Counter(str(each.state) for each in tasks)
    zombies = sum(each.stopping for each in tasks)
    progress = Progress(**counts, zombies=zombies)
    made = RunFacts("7f3a", NOW, NOW - 60, plan="release.yaml", slots=4, tasks=tasks)
    return replace(made, progress=progress, **facts)


def every_state() -> RunFacts:
    """One task in each state, one that is stopping, one with everything."""
    everything = task(
        "everything", State.RUNNING, fraction=0.62, message="writing", tokens=1_300, cost=0.42,
        claims=("writes src/**", "reads docs/", "uses gpu"), attempt=2, attempts=3,
    )  # fmt: skip
    stopping = task("slow", State.CANCELLED, stopping=True)
    return run(*(task(state, state) for state in State), stopping, everything)


def many(count: int, slots: int = 16) -> RunFacts:
    """A run with so many tasks, hard names among them."""
    states = [State.RUNNING] * slots + [*State] * count
    return run(
        *(
            task(f"{NAMES[number % 6]}-{number}", states[number], message=NAMES[number % 5],
                 estimate=50.0, after=("api-0",) if number else (), question="日本語?" * 40)
            for number in range(count)
        ),
        slots=slots,
    )  # fmt: skip


def why(task_id: str) -> Explanation:
    """Somebody holds what it claims, and there is no slot."""
    held = HeldClaim(write("src/a"), "api", write("src/**"), 1, False, "src/a")
    slots = NoCapacity("slots", 1, 0, 4, (("api", 1, 1),))
    return Explanation(task_id, State.WAITING, 1, (held, slots), None, ("wait",), 10)


def hostile(facts: RunFacts) -> RunFacts:
    """The same run, with all that a terminal should not get to see in every text."""

    def poison(record: Any) -> Any:
        found: dict[str, Any] = {}
        for each in fields(record):
            value = getattr(record, each.name)
            if type(value) is str:
                found[each.name] = HOSTILE + value
            elif isinstance(value, tuple) and value and isinstance(value[0], str):
                found[each.name] = tuple(HOSTILE + item for item in value)
        return replace(record, **found)

    made: RunFacts = poison(facts)
    return replace(made, tasks=tuple(poison(each) for each in facts.tasks))


def text_of(renderable: RenderableType, width: int = 100, **options: Any) -> str:
    """What a terminal of this width without colours shows."""
    console = Console(
        width=width, color_system=None, markup=False, emoji=False, highlight=False, **options
    )
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()
