"""Bounded overtaking: younger ones may go past, but only so often (statement 19)."""

from __future__ import annotations

import heapq

from interlock.kernel import stimuli as s
from interlock.model.claim import uses, write
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, started


def readers_past_a_writer(run: Judged, most: int = 50) -> int:
    """Let readers of `doc` follow each other while a writer waits; how many get past it."""
    run.submit(Task("r0", reads="doc"))
    run.submit(Task("writer", writes="doc"))
    for number in range(1, most):
        if not started(run.submit(Task(f"r{number}", reads="doc"))):
            return number - 1
        run.ends(f"r{number - 1}")
    raise AssertionError("the writer starves")


def test_a_task_is_overtaken_exactly_twice_as_often_as_there_are_slots() -> None:
    for slots in (2, 3, 5):
        run = Judged(slots=slots)
        assert readers_past_a_writer(run) == 2 * slots
        assert started(run.ends(f"r{2 * slots}")) == ["writer"]
        assert started(run.ends("writer")) == [f"r{2 * slots + 1}"]


def test_who_became_ready_in_the_same_step_is_not_older() -> None:
    run = Judged(slots=1)
    readers = [Task(f"r{n}", reads="doc", priority=1) for n in range(9)]
    run.submit(Task("writer", writes="doc"), *readers)
    for number in range(8):
        assert started(run.ends(f"r{number}")) == [f"r{number + 1}"]
        assert list(run.kernel.reservations()) == []
    assert started(run.ends("r8")) == ["writer"]


def test_nobody_younger_passes_a_due_task_but_others_do() -> None:
    run = Judged(slots=2)
    readers_past_a_writer(run)
    assert run.state("r5") is State.WAITING
    assert started(run.submit(Task("reader", reads="doc", priority=9))) == []
    assert started(run.submit(Task("elsewhere", writes="other"))) == ["elsewhere"]


def test_a_due_task_goes_first_when_it_can_start() -> None:
    run = Judged(slots=2)
    readers_past_a_writer(run)
    run.submit(Task("busy", writes="b"))
    run.submit(Task("urgent", writes="u", priority=100))
    assert started(run.ends("r4")) == ["writer"]
    assert started(run.ends("busy")) == ["urgent"]


def test_a_reservation_is_listed_with_its_claims_while_it_lasts() -> None:
    run = Judged(slots=2)
    readers_past_a_writer(run)
    [reservation] = run.kernel.reservations()
    assert (reservation.task_id, reservation.claims) == ("writer", (write("doc"),))
    run.ends("r4")
    assert list(run.kernel.reservations()) == []


def test_a_cancelled_due_task_lets_those_behind_it_go() -> None:
    run = Judged(slots=2)
    readers_past_a_writer(run)
    assert started(run.handle(s.Cancel("writer"))) == ["r5"]
    assert list(run.kernel.reservations()) == []


def test_a_due_task_that_a_zombie_blocks_holds_nobody_back() -> None:
    run = Judged(slots=2)
    run.submit(Task("stays", reads="doc/a", priority=9))
    run.submit(Task("writer", writes="doc/"))
    for number in range(4):
        run.submit(Task(f"r{number}", reads="doc/b"))
        run.ends(f"r{number}")
    assert started(run.submit(Task("behind", reads="doc/b"))) == []
    assert started(run.handle(s.Cancel("stays"))) == ["behind"]
    # Passing it now does not count, and once the zombie is gone it is first again.
    run.submit(Task("last", reads="doc/b"))
    assert started(run.gone("stays")) == []
    assert started(run.ends("behind")) == ["writer"]
    assert started(run.ends("writer")) == ["last"]


def test_a_child_of_what_a_due_task_waits_for_may_pass_it() -> None:
    run = Judged(slots=2)
    run.submit(Task("parent", reads="doc"))
    run.submit(Task("writer", writes="doc"))
    for number in range(4):
        run.submit(Task(f"r{number}", reads="doc"))
        run.ends(f"r{number}")
    assert [each.task_id for each in run.kernel.reservations()] == ["writer"]
    assert started(run.child("parent", Task("child", reads="doc"))) == ["child"]


def test_a_slot_counts_only_when_a_slot_is_all_the_oldest_lacks() -> None:
    run = Judged(slots=1)
    run.submit(Task("first", writes="x"))
    run.submit(Task("old"))
    for number in range(6):
        run.submit(Task(f"p{number}", priority=5))
    order = started(run.ends("first"))
    while "old" not in order:
        order += started(run.ends(order[-1]))
    # Two went past for a slot; then it was first, whatever the priority of the others.
    assert order == ["p0", "p1", "old"]


def test_a_big_claim_on_memory_does_not_starve_among_small_ones() -> None:
    run = Judged(slots=4, capacities={"memory": 8})
    for number in range(4):
        run.submit(Task(f"s{number}", uses=uses("memory", 2)))
    run.submit(Task("big", uses=uses("memory", 8)))
    passed = 0
    for number in range(4, 60):
        run.submit(Task(f"s{number}", uses=uses("memory", 2)))
        oldest = next(name for name in run.running() if name != "big")
        begun = started(run.ends(oldest))
        if "big" in begun:
            break
        passed += len(begun)
    assert run.state("big") is State.RUNNING
    assert passed <= 2 * 4


def test_a_new_priority_does_not_take_the_turn_of_a_due_task() -> None:
    run = Judged(slots=1)
    run.submit(Task("first"))
    run.submit(Task("old"))
    for n in range(8):
        run.submit(Task(f"p{n}", priority=5))
    order = started(run.ends("first"))
    order += started(run.ends(order[-1]))
    run.handle(s.Prioritize("old", 1))  # two went past it: it is due
    assert started(run.ends(order[-1])) == ["old"]


def test_a_due_writer_goes_first_after_it_got_a_higher_priority() -> None:
    run = Judged(slots=2)
    run.submit(Task("r0", reads="doc"))
    run.submit(Task("w", writes="doc"))
    for n in range(1, 5):
        run.submit(Task(f"r{n}", reads="doc"))
        run.ends(f"r{n - 1}")
    run.handle(s.Prioritize("w", 1))
    run.submit(Task("other"))
    run.submit(Task("hi", priority=5))
    assert started(run.ends("r4")) == ["w"]


def test_a_start_near_a_pattern_that_does_not_meet_it_is_no_overtaking() -> None:
    run = Judged(slots=2)
    run.submit(Task("holder", writes="src/a.py"))
    run.submit(Task("old", writes="src/*.py"))
    for n in range(8):
        run.submit(Task(f"md{n}", writes="src/notes.md"))
        run.ends(f"md{n}")
    assert list(run.kernel.reservations()) == []


def test_priority_decides_among_those_that_could_start() -> None:
    run = Judged(slots=1)
    run.submit(Task("now"))
    run.submit(Task("low"), Task("high", priority=2), Task("middle", priority=1))
    order = [started(run.ends(name))[0] for name in ("now", "high", "middle")]
    assert order == ["high", "middle", "low"]


def test_whoever_has_the_longer_chain_behind_it_goes_first() -> None:
    run = Judged(slots=1)
    run.submit(Task("now"))
    run.submit(
        Task("alone", estimate=3),
        Task("head", estimate=1),
        Task("tail", estimate=9, after="head"),
    )
    assert started(run.ends("now")) == ["head"]


def worst_wait_of_wide_claims(tasks: int) -> float:
    """In a steady stream at three quarters of what the slots could do, 3 % claim everything."""
    run = Judged(slots=4)
    agenda = [(number * 0.47, 1, f"t{number}") for number in range(tasks)]
    came: dict[str, float] = {}
    worst = 0.0
    while agenda:
        now, arrives, name = heapq.heappop(agenda)
        number = int(name[1:])
        wide = number % 33 == 17
        if arrives:
            came[name] = now
            task = Task(name, writes="**") if wide else Task(name, reads=f"src/m{number % 23}/")
            told = run.submit(task, at=now)
        else:
            told = run.ends(name, at=now)
        for begun in started(told):
            number = int(begun[1:])
            heapq.heappush(agenda, (now + 1.0 + number * 7 % 5 / 5, 0, begun))
            if number % 33 == 17:
                worst = max(worst, now - came[begun])
    assert run.progress().succeeded == tasks
    return worst


def test_the_worst_wait_of_a_wide_claim_does_not_grow_with_the_queue() -> None:
    assert worst_wait_of_wide_claims(600) <= 1.2 * worst_wait_of_wide_claims(150)


def test_one_who_lacks_an_amount_does_not_keep_others_from_being_counted() -> None:
    run = Judged(slots=2, capacities={"gpu": 1})
    run.submit(Task("holder", uses="gpu"), Task("y0"))
    run.submit(Task("x", uses="gpu"))
    run.submit(Task("old", priority=-1))
    for n in range(20):
        run.submit(Task(f"y{n + 1}", priority=1))
        if started(run.ends(f"y{n}")) == ["old"]:
            break
    assert "old" in run.running()


# -- the exception for those that will be done in time -----------------------------------------


def passes_of_a_due_writer(
    run: Judged, *, blocker: float | None, reader: float | None, at: float = 0.0
) -> int:
    """One reader stays, a writer waits for it, readers come and go: how many pass the writer."""
    run.submit(Task("stays", reads="doc", estimate=blocker), at=0.0)
    run.submit(Task("writer", writes="doc"))
    for number in range(50):
        if not started(run.submit(Task(f"r{number}", reads="doc", estimate=reader), at=at)):
            return number
        run.ends(f"r{number}")
    raise AssertionError("the writer starves")


def test_a_task_that_will_be_done_in_time_may_pass_a_due_one_until_four_times_the_slots() -> None:
    for slots in (2, 3):
        run = Judged(slots=slots)
        assert passes_of_a_due_writer(run, blocker=100, reader=1) == 4 * slots
        assert started(run.ends("stays")) == ["writer"]


def test_in_time_means_before_the_blocker_is_expected_to_end() -> None:
    for reader, passes in ((100, 8), (101, 4)):
        assert passes_of_a_due_writer(Judged(slots=2), blocker=100, reader=reader) == passes


def test_without_an_estimate_on_either_side_a_due_task_is_not_passed() -> None:
    assert passes_of_a_due_writer(Judged(slots=2), blocker=100, reader=None) == 4
    assert passes_of_a_due_writer(Judged(slots=2), blocker=None, reader=1) == 4


def test_a_blocker_that_has_outrun_its_estimate_is_expected_to_take_as_long_again() -> None:
    """At 30 it has run for 30 and was expected to be done at 10: now it is expected at 60."""
    for reader, passes in ((30, 8), (31, 4)):
        run = Judged(slots=2)
        assert passes_of_a_due_writer(run, blocker=10, reader=reader, at=30.0) == passes
    # It counts as overdue from the very moment at which it should have ended.
    assert passes_of_a_due_writer(Judged(slots=2), blocker=10, reader=10, at=10.0) == 8


def test_small_amounts_pass_a_big_one_exactly_twice_as_often_as_there_are_slots() -> None:
    for slots in (2, 3):
        run = Judged(slots=slots, capacities={"memory": 8})
        run.submit(Task("s0", uses=uses("memory", 2)))
        run.submit(Task("big", uses=uses("memory", 8)))
        passed = 0
        for number in range(1, 50):
            if not started(run.submit(Task(f"s{number}", uses=uses("memory", 2)))):
                break
            passed += 1
            run.ends(f"s{number - 1}")
        assert passed == 2 * slots


def test_a_start_looks_at_three_waiters_to_find_one_that_lacks_only_a_slot() -> None:
    """Nine blocked waiters are older than the one that lacks only a slot."""
    run = Judged(slots=2)
    run.submit(Task("holder", writes="x"), Task("y0"))
    run.submit(*[Task(f"blocked{n}", writes="x") for n in range(9)])
    run.submit(Task("old", priority=-1))
    number = 0
    while "old" not in run.running():
        number += 1
        run.submit(Task(f"y{number}", priority=1))
        run.ends(f"y{number - 1}")
    # Three starts to step over the blocked ones, four that overtake it, and its own turn.
    assert number == 3 + 2 * 2 + 1


def test_of_one_profile_what_has_amounts_reserved_goes_before_what_is_due() -> None:
    """Otherwise the due one would find the amount reserved, and set both of them aside."""
    run = Judged(slots=2, capacities={"gpu": 1})
    run.submit(Task("g0", uses="gpu"), Task("r0", reads="doc"))
    run.submit(Task("due", uses="gpu", writes="doc"))
    for n in range(4):
        run.submit(Task(f"r{n + 1}", reads="doc", priority=5))
        run.ends(f"r{n}")
    run.submit(Task("reserved", uses="gpu"))
    for n in range(4):
        run.submit(Task(f"g{n + 1}", uses="gpu", priority=5))
        run.ends(f"g{n}")
    assert {each.task_id for each in run.kernel.reservations()} == {"due", "reserved"}
    run.ends("r4")
    assert started(run.ends("g4")) == ["reserved"]
    assert started(run.ends("reserved")) == ["due"]
