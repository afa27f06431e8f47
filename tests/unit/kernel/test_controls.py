"""Holding work back, and bringing a run to its end: pause, priority, drain, shutdown."""

from __future__ import annotations

from interlock.errors import ShuttingDown
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Stop
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.progress import Progress
from interlock.model.task import Task
from tests.unit.kernel.judged import Judged, resumed, settled, started


def test_shutdown_cancels_everything_and_takes_nothing_new() -> None:
    run = Judged(slots=1)
    run.submit(Task("a"))
    run.submit(Task("b"), Task("c", after="b"))
    told = run.handle(s.Shutdown())
    assert settled(told) == dict.fromkeys("abc", State.CANCELLED)
    assert Stop("a", 1, "the run was shut down") in told
    assert started(run.gone("a")) == []
    run.refuses(s.Submit((Task("d"),)), ShuttingDown, "no new tasks")
    # What was cancelled is counted, and what was refused was never there.
    assert run.progress() == Progress(cancelled=3)


def test_tasks_that_a_drain_leaves_unfinished_are_counted() -> None:  # pitfall 10
    run = Judged(slots=1)
    run.submit(Task("a", retry=Retry(2, backoff=0)), Task("b"))
    run.handle(s.Drain())
    run.refuses(s.Submit((Task("c"),)), ShuttingDown, "drain")
    run.fails("a")
    assert started(run.until(9)) == []
    assert run.progress() == Progress(waiting=2)
    assert started(run.handle(s.Unpause())) == []


def test_what_runs_may_finish_while_draining() -> None:
    run = Judged(slots=1)
    run.submit(Task("p"))
    run.asks("p")
    run.handle(s.Drain())
    assert [type(each).__name__ for each in run.handle(s.Answer("p", 1))] == ["Change", "Resume"]
    assert settled(run.ends("p")) == {"p": State.SUCCEEDED}


def test_children_of_what_runs_start_while_draining_but_not_while_paused() -> None:
    run = Judged()
    run.submit(Task("p"))
    run.handle(s.Drain())
    run.handle(s.Pause())
    assert started(run.child("p", Task("c"))) == []
    assert started(run.handle(s.Unpause())) == ["c"]
    run.awaits("p", "c")
    assert resumed(run.ends("c")) == ["p"]


def test_a_paused_run_starts_nothing_until_it_goes_on() -> None:
    run = Judged()
    run.submit(Task("a"))
    run.handle(s.Pause())
    assert started(run.submit(Task("b"))) == []
    run.ends("a")
    assert started(run.handle(s.Unpause())) == ["b"]


def test_a_paused_task_lets_others_past_and_goes_on_later() -> None:
    run = Judged(slots=1)
    run.submit(Task("now"))
    run.submit(Task("a", priority=5), Task("b"), Task("c", after="b"))
    run.handle(s.Pause("a"))
    run.handle(s.Pause("c"))
    assert started(run.ends("now")) == ["b"]
    assert started(run.ends("b")) == []
    assert run.state("c") is State.WAITING
    assert started(run.handle(s.Unpause("c"))) == ["c"]
    assert started(run.handle(s.Unpause("a"))) == []
    assert started(run.ends("c")) == ["a"]


def test_a_task_that_goes_on_does_not_set_a_paused_run_going() -> None:
    run = Judged(slots=1)
    run.submit(Task("now"))
    run.submit(Task("a"), Task("b"))
    run.handle(s.Pause("a"))
    run.handle(s.Pause())
    run.ends("now")
    assert started(run.handle(s.Unpause("a"))) == []
    assert run.progress().waiting == 2
    assert started(run.handle(s.Unpause())) == ["b"]


def test_priority_boosts_reach_the_queue() -> None:  # pitfall 43
    run = Judged(slots=1)
    run.submit(Task("now"))
    run.submit(Task("a"), Task("b"), Task("c", after="now"))
    for name, priority in (("b", 1), ("c", 2)):
        run.handle(s.Prioritize(name, priority))
    assert started(run.ends("now")) == ["c"]
    assert started(run.ends("c")) == ["b"]


def test_tasks_queued_for_a_slot_do_not_count_as_running() -> None:  # pitfalls 11 and 12
    run = Judged(slots=2)
    run.submit(*(Task(f"t{n}") for n in range(5)), Task("last", after="t0"))
    assert run.progress() == Progress(running=2, waiting=3, blocked=1)
