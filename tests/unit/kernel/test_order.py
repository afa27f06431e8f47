"""Who starts first among those who could."""

from __future__ import annotations

from interlock.model.task import Task
from tests.unit.kernel.judged import Judged


def order_of(run: Judged, *tasks: Task) -> list[str]:
    """The order in which they start with one slot, which is taken when they are submitted."""
    run.submit(Task("first"))
    for task in tasks:
        run.submit(task)
    for _ in range(len(tasks) + 1):
        run.ends(run.starts[-1][1])
    return [task_id for _, task_id in run.starts[1:]]


MIXED = (
    Task("short", estimate=1),
    Task("long", estimate=100),
    Task("greedy", writes=["a", "b", "c"]),
    Task("modest", writes="d"),
    Task("urgent", priority=1),
)


def test_the_usual_order_prefers_long_tasks_and_those_that_claim_more() -> None:
    run = Judged(slots=1)
    assert order_of(run, *MIXED[1:]) == ["urgent", "long", "greedy", "modest"]


def test_first_come_knows_priority_and_arrival_and_nothing_else() -> None:
    run = Judged(slots=1, first_come=True)
    assert order_of(run, *MIXED) == ["urgent", "short", "long", "greedy", "modest"]


def test_first_come_does_not_let_wide_claims_go_first() -> None:
    tasks = [Task(f"t{n}", writes=f"f{n}") for n in range(3)] + [Task("wide", writes="**")]
    assert order_of(Judged(slots=1, first_come=True), *tasks) == ["t0", "t1", "t2", "wide"]
    assert order_of(Judged(slots=1), *tasks)[0] == "wide"


def test_first_come_keeps_to_priorities_however_many_are_overtaken() -> None:
    tasks = [Task(f"p{n}", priority=n, writes="f") for n in range(8)]
    expected = [f"p{n}" for n in reversed(range(8))]
    assert order_of(Judged(slots=1, first_come=True), *tasks) == expected
    assert order_of(Judged(slots=1), *tasks) != expected  # or the low ones might starve


def test_first_come_does_not_hold_up_who_could_start() -> None:
    run = Judged(slots=2, first_come=True)
    run.submit(Task("holder", writes="a"))
    run.submit(Task("waits", writes="a"))
    run.submit(Task("unrelated", writes="b"))
    assert [task_id for _, task_id in run.starts] == ["holder", "unrelated"]
