"""Who starts first among those who could."""

from __future__ import annotations

from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, started


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


# -- the numbers of the order: each of these fails when one of them changes -------------------


def first_after(gate: str, run: Judged) -> str:
    """What starts first when the one running task ends."""
    [name] = started(run.ends(gate))
    return name


def test_half_of_the_own_estimate_counts_beside_all_that_comes_behind() -> None:
    """Alone 10 counts 5; 1 with x behind it counts 0.5 + x."""
    for behind, first in ((4.4, "alone"), (4.6, "head")):
        run = Judged(slots=1)
        run.submit(Task("gate"))
        run.submit(
            Task("alone", estimate=10),
            Task("head", estimate=1),
            Task("tail", estimate=behind, after="head"),
        )
        assert first_after("gate", run) == first


def test_a_task_without_an_estimate_counts_as_one_second() -> None:
    run = Judged(slots=1)
    tasks = (Task("less", estimate=0.9), Task("unknown"), Task("more", estimate=1.1))
    assert order_of(run, *tasks) == ["more", "unknown", "less"]


def test_among_equals_a_write_counts_like_two_reads_and_an_amount_like_one() -> None:
    """Two at a time, each way round: with more of them, overtaking would count."""
    less, one = Task("less"), Task("one", reads="a")
    amount, two = Task("amount", uses="gpu"), Task("two", reads=["b", "c"])
    write, three = Task("write", writes="d"), Task("three", reads=["e", "f"], uses="gpu")
    for smaller, larger in ((less, one), (less, amount), (one, two), (amount, write)):
        assert _order_of_two(smaller, larger) == _order_of_two(larger, smaller)
        assert _order_of_two(smaller, larger)[0] == larger.id
    assert _order_of_two(write, three)[0] == "three"
    for same, equal in ((one, amount), (two, write)):
        assert _order_of_two(same, equal)[0] == same.id
        assert _order_of_two(equal, same)[0] == equal.id


def _order_of_two(first: Task, second: Task) -> list[str]:
    return order_of(Judged(slots=1, capacities={"gpu": 9}), first, second)


def test_a_claim_is_wide_when_it_conflicts_with_more_than_half_of_the_unfinished_tasks() -> None:
    """Unfinished are the gate, those in the folder, those outside, and the wide one itself."""
    for inside, outside, first in ((2, 1, "wide"), (2, 2, "long")):
        run = Judged(slots=1)
        run.submit(Task("gate"))
        run.submit(*[Task(f"in{n}", writes=f"src/f{n}") for n in range(inside)])
        run.submit(*[Task(f"out{n}", writes=f"docs/f{n}") for n in range(outside - 1)])
        run.submit(Task("long", writes="long", estimate=100))
        run.submit(Task("wide", writes="src/"))
        assert first_after("gate", run) == first


def test_of_two_tasks_none_is_wide() -> None:
    run = Judged(slots=1)
    run.submit(Task("gate", writes="src/a"))
    run.submit(Task("one", writes="src/a"))
    run.ends("gate")
    # Two are unfinished, and both of them claim src/: that says nothing about either.
    run.submit(Task("short", writes="src/", estimate=0.1))
    run.submit(Task("long", writes="docs/", estimate=100))
    assert first_after("one", run) == "long"


def test_a_chain_that_is_submitted_task_by_task_counts_thirty_two_steps_back() -> None:
    """The head of a long chain counts as 1 + 32 seconds, less half a second of its own."""
    for rival, first in ((64.8, "t0"), (65.2, "rival")):
        run = Judged(slots=1)
        run.submit(Task("gate"))
        run.submit(Task("rival", estimate=rival, after="gate"))
        run.submit(Task("t0", estimate=1, after="gate"))
        for number in range(1, 50):
            run.submit(Task(f"t{number}", estimate=1, after=f"t{number - 1}"))
        assert first_after("gate", run) == first


def test_within_one_submission_a_chain_counts_whole() -> None:
    run = Judged(slots=1)
    run.submit(Task("gate"))
    run.submit(
        Task("rival", estimate=98.8, after="gate"),
        Task("t0", estimate=1, after="gate"),
        *[Task(f"t{n}", estimate=1, after=f"t{n - 1}") for n in range(1, 50)],
    )
    assert first_after("gate", run) == "t0"
