"""What comes after what: nobody starts early, and whoever cannot start any more settles at once."""

from __future__ import annotations

import pytest

from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Settle
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.progress import Progress
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, causes, settled, started


def test_a_task_starts_when_all_it_comes_after_have_succeeded() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"), Task("c", after=["a", "b"]))
    assert run.state("c") is State.BLOCKED
    assert started(run.ends("a")) == []
    assert started(run.ends("b")) == ["c"]


def test_a_diamond_runs_both_sides_at_once_and_its_end_once() -> None:
    run = Judged()
    run.submit(
        Task("end", after=["left", "right"]),
        Task("left", after="top"),
        Task("right", after="top"),
        Task("top"),
    )
    assert sorted(started(run.ends("top"))) == ["left", "right"]
    assert started(run.ends("right")) == []
    assert started(run.ends("left")) == ["end"]
    assert settled(run.ends("end")) == {"end": State.SUCCEEDED}


def test_a_dependency_counts_from_its_outcome_and_its_claims_until_it_is_gone() -> None:
    run = Judged()
    run.submit(Task("a", writes="x"), Task("same", writes="x", after="a"), Task("other", after="a"))
    assert started(run.ends("a", gone=False)) == ["other"]
    assert started(run.gone("a")) == ["same"]


@pytest.mark.parametrize(
    "end", [State.FAILED, State.CONFLICTED, State.CANCELLED, State.TIMED_OUT, State.SKIPPED]
)
def test_dependents_of_a_failed_task_never_run(end: State) -> None:  # pitfall 19
    run = Judged()
    run.submit(
        Task("root"),
        Task("first", after="root", timeout=5),
        Task("second", after="first"),
        Task("third", after=["second", "root"]),
    )
    match end:
        case State.SKIPPED:
            told = run.fails("root")
        case State.CANCELLED:
            told = run.handle(s.Cancel("first"))
        case State.TIMED_OUT:
            run.ends("root")
            told = run.until(5)
        case _:
            run.ends("root")
            told = run.ends("first", end)
    assert (
        settled(told).items()
        >= {
            "first": end,
            "second": State.SKIPPED,
            "third": State.SKIPPED,
        }.items()
    )
    assert causes(told)["second"] == "first"
    assert started(told) == []


def test_a_failure_spares_those_that_do_not_depend_on_it() -> None:  # pitfall 16
    run = Judged()
    run.submit(*(Task(f"t{n}") for n in range(27)), Task("after", after=["t3", "t4"]))
    assert settled(run.fails("t3")) == {"t3": State.FAILED, "after": State.SKIPPED}
    for n in range(27):
        if n != 3:
            assert settled(run.ends(f"t{n}")) == {f"t{n}": State.SUCCEEDED}
    assert run.progress() == Progress(succeeded=26, failed=1, skipped=1)


def test_a_chain_of_ten_thousand_is_skipped_in_one_step() -> None:
    run = Judged()
    chain = [Task("t0"), *(Task(f"t{n}", after=f"t{n - 1}") for n in range(1, 10_000))]
    run.submit(*reversed(chain))
    told = run.fails("t0")
    assert [each.task_id for each in told if isinstance(each, Settle)] == [t.id for t in chain]
    assert run.progress() == Progress(failed=1, skipped=9_999)


def test_a_task_submitted_after_its_dependency_succeeded_starts_at_once() -> None:
    run = Judged()
    run.submit(Task("a"))
    run.ends("a")
    assert started(run.submit(Task("b", after="a"))) == ["b"]


def test_a_task_submitted_after_its_dependency_failed_is_skipped_at_once() -> None:
    run = Judged()
    run.submit(Task("a"))
    run.fails("a")
    told = run.submit(Task("b", after="a"), Task("c", after="b"))
    assert settled(told) == {"b": State.SKIPPED, "c": State.SKIPPED}
    assert causes(told) == {"b": "a", "c": "b"}


def test_a_task_submitted_later_waits_for_a_running_or_a_vanishing_dependency() -> None:
    run = Judged()
    run.submit(Task("a"), Task("b"))
    run.submit(Task("after a", after="a"))
    assert started(run.ends("a")) == ["after a"]
    run.ends("b", gone=False)
    # Its outcome is there although something of it is still alive.
    assert started(run.submit(Task("after b", after="b"))) == ["after b"]


def test_a_dependency_that_is_tried_again_is_waited_for() -> None:
    run = Judged()
    run.submit(Task("a", retry=Retry(2, backoff=1)), Task("b", after="a"))
    assert settled(run.fails("a")) == {}
    assert run.state("b") is State.BLOCKED
    assert started(run.until(1)) == ["a"]
    assert started(run.ends("a")) == ["b"]


def test_a_skipped_task_is_in_the_counts_and_has_never_started() -> None:  # pitfall 10
    run = Judged()
    run.submit(Task("a"), Task("b", after="a"))
    told = run.fails("a", at=3.0)
    assert Settle("b", State.SKIPPED, 0, None, 3.0, None, "a") in told
    assert run.progress().ended == run.progress().total == 2
