"""A task without an estimate is thought to take as long as its agent took before."""

from __future__ import annotations

from pathlib import Path

from interlock import Runtime, Task
from interlock.journal.history import Estimate
from interlock.runtime.estimates import Estimates


async def work() -> None:
    return


def _estimates(found: dict[str, Estimate]) -> Estimates:
    return Estimates(lambda agent, label: found.get(label) if agent.endswith(":work") else None)


def test_who_was_never_seen_has_no_estimate() -> None:
    assert _estimates({}).of(Task("a", work)) is None
    assert _estimates({"": Estimate(9, 2.0, 0.1)}).of(Task("a", print)) is None


def test_the_label_whose_tasks_differ_least_says_how_long() -> None:
    found = {
        "": Estimate(100, 5.0, 4.0),
        "kind=test": Estimate(10, 2.0, 0.5),
        "repo=x": Estimate(10, 4.0, 1.0),
    }
    estimates = _estimates(found)
    assert estimates.of(Task("a", work)) == 5.0
    assert estimates.of(Task("a", work, labels={"kind": "test", "repo": "x"})) == 2.0
    assert estimates.of(Task("a", work, labels={"kind": "docs"})) == 5.0


def test_one_success_with_a_label_says_less_than_many_without() -> None:
    found = {"": Estimate(100, 5.0, 4.0), "kind=test": Estimate(1, 60.0, 0.0)}
    assert _estimates(found).of(Task("a", work, labels={"kind": "test"})) == 5.0


def test_history_is_looked_up_once_for_each_label() -> None:
    looked: list[str] = []

    def look(agent: str, label: str) -> None:
        looked.append(label)

    estimates = Estimates(look)
    for _ in range(3):
        estimates.of(Task("a", work, labels={"kind": "test"}))
    assert looked == ["", "kind=test"]


async def test_a_second_run_knows_how_long_the_first_one_took(tmp_path: Path) -> None:
    async with Runtime(journal=tmp_path / "j.db") as rt:
        handle = rt.submit(work)
        assert handle.task.estimate is None
        taken = (await handle).duration
    async with Runtime(journal=tmp_path / "j.db") as rt:
        estimate = rt.submit(work).task.estimate
        assert rt.submit(work, estimate=7).task.estimate == 7
    assert estimate is not None
    assert abs(estimate - taken) < 1e-3


async def test_the_history_of_an_agent_can_be_looked_at(tmp_path: Path) -> None:
    async with Runtime(journal=tmp_path / "j.db") as rt:
        await rt.submit(work, labels={"kind": "docs"})
        await rt.submit(work)
        assert rt.history(work) is None
    async with Runtime(journal=tmp_path / "j.db") as rt:
        everything, docs = rt.history(work), rt.history(work, "kind=docs")
        assert everything is not None
        assert docs is not None
        assert (everything.n, docs.n) == (2, 1)
        assert rt.history(print) is None
    async with Runtime() as rt:
        assert rt.history(work) is None
