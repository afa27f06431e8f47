"""Small runs, each about one thing, into which faults are injected at every step."""

from __future__ import annotations

from typing import Any

from interlock import Claim, Quota, Rate, Retry, Task, write
from tests.simulation.runtime.story import Act, AgentPlace, RunPlan, RunStep, RunStory

WORK, WRITE = RunStep("work", 1.0), RunStep("write", path="a.py")
A = (write("a.py"),)


def plan(
    task_id: str,
    *steps: RunStep,
    claims: tuple[Claim, ...] = A,
    place: AgentPlace = "loop",
    swallows: int = 0,
    given: tuple[str, ...] = (),
    **options: Any,
) -> RunPlan:
    return RunPlan(Task(task_id, claims=claims, **options), (steps,), place, swallows, given)


def story(*acts: Act, slots: int = 2, **options: Any) -> RunStory:
    limits = {"openai": Rate(Quota(1, 2.0), Quota(4, 2.0))}
    return RunStory(7, slots, {}, limits, 2.0, acts, **options)


def submit(*plans: RunPlan, at: float = 0.0) -> Act:
    return Act(at, "submit", plans)


CHILD = plan("t1.1", WORK, WRITE)
GRANDPARENT = plan(
    "t1",
    RunStep("children", plans=(plan("t1.1", RunStep("children", plans=(plan("t1.1.1", WRITE),))),)),
)

SCENARIOS = {
    "two writers of one file": story(submit(plan("t1", WORK, WRITE), plan("t2", WORK, WRITE))),
    "results on their way": story(
        submit(plan("t1", WORK)), submit(plan("t2", WORK, given=("t1",)), plan("t3", after="t2"))
    ),
    "attempts": story(
        submit(plan("t1", WORK, RunStep("raise"), retry=Retry(3, 0.5))), leaves="at once"
    ),
    "a timeout that is swallowed": story(
        submit(plan("t1", RunStep("hang"), timeout=1, swallows=3), plan("t2", WRITE))
    ),
    "a thread that outlives its timeout": story(
        submit(
            plan("t1", RunStep("work", 2.5), WRITE, place="thread", timeout=1), plan("t2", WRITE)
        )
    ),
    "a process that is killed": story(
        submit(
            plan("t1", RunStep("hang"), place="process", timeout=1, swallows=9), plan("t2", WRITE)
        )
    ),
    "children three deep with one slot": story(submit(GRANDPARENT), slots=1),
    "children that nobody waits for": story(
        submit(plan("t1", RunStep("orphans", plans=(CHILD,)), WORK, WRITE), plan("t2", WRITE))
    ),
    "an extension": story(
        submit(
            plan("t1", WORK, RunStep("extend", claims=(write("b.py"),), path="b.py"), WORK),
            plan("t2", WORK, claims=(write("b.py"),)),
        )
    ),
    "a rate and a question": story(
        submit(
            plan("t1", RunStep("take", 0.5, amount=3), RunStep("ask"), WORK, claims=()),
            plan("t2", RunStep("take", amount=3), RunStep("ask", patience=0.25), claims=()),
        )
    ),
    "waiting for another task": story(
        submit(plan("t1", WORK)),
        submit(plan("t2", RunStep("join", tasks=("t1",)), WORK, claims=())),
    ),
    "a group that fails fast": story(
        Act(
            0.0,
            "run",
            (
                plan("t1", WORK, RunStep("give up")),
                plan("t2", WORK),
                plan("t3", claims=(), after="t1"),
            ),
            fail_fast=True,
        )
    ),
    "a caller without patience": story(
        Act(0.0, "map", (plan("t1", WORK),), amount=3, patience=1.5), submit(plan("t2", WRITE))
    ),
    "a shutdown": story(
        submit(plan("t1", RunStep("work", 9.0)), plan("t2", WRITE)), Act(1.0, "shutdown", amount=1)
    ),
    "an exception in the block": story(
        submit(plan("t1", WORK, swallows=1), plan("t2", WRITE)), Act(0.5, "raise")
    ),
    "a slow journal": story(
        submit(plan("t1", WORK, WRITE), plan("t2", WRITE, after="t1")), journal_takes=0.3
    ),
}
