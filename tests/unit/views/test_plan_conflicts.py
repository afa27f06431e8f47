"""Who cannot run beside whom, before anything starts."""

from __future__ import annotations

from interlock import Task
from interlock.model.claim import as_claims
from interlock.plan.records import Plan
from interlock.views.cli.plan_conflicts import PlanConflict, find_conflicts, nodes, plan_json


async def agent() -> None:
    """Never called."""


def task(task_id: str, *after: str, writes: str = "", reads: str = "", uses: str = "") -> Task:
    claims = as_claims(
        reads=[reads] if reads else (),
        writes=[writes] if writes else (),
        uses=[uses] if uses else (),
    )
    return Task(task_id, agent, claims=claims, after=after, labels={"agent": "codex"})


def pairs(found: list[PlanConflict]) -> list[tuple[str, str]]:
    return [(each.one, each.other) for each in found]


def test_two_writers_of_one_path_take_turns_and_two_readers_do_not() -> None:
    tasks = [task("a", writes="src/**"), task("b", reads="src/x.py"), task("c", reads="src/x.py")]
    found = find_conflicts(tasks, {})
    assert pairs(found) == [("a", "b"), ("a", "c")]
    assert found[0].about == "writes src/** and reads src/x.py both match src/x.py"


def test_who_comes_after_another_takes_no_turns_with_it() -> None:
    tasks = [task("c", "b", writes="x"), task("b", "a"), task("a", writes="x")]  # in any order
    assert find_conflicts(tasks, {}) == []


def test_amounts_collide_when_there_is_not_enough_for_two() -> None:
    tasks = [task("a", uses="gpu"), task("b", uses="gpu"), task("c", uses="db!")]
    assert pairs(find_conflicts(tasks, {"gpu": 1})) == [("a", "b")]
    assert find_conflicts(tasks, {"gpu": 2}) == []
    found = find_conflicts([task("a", uses="db!"), task("b", uses="db")], {})
    assert found[0].about == "both use db, and there is not enough of it for both"


def test_a_pair_is_told_once_and_a_hopeless_plan_not_at_length() -> None:
    both = Task("a", agent, claims=as_claims(writes=["x", "y"]))
    assert len(find_conflicts([both, both.replace(id="b")], {})) == 1
    assert len(find_conflicts([task(f"t{n}", writes="**") for n in range(40)], {})) == 200


def test_a_diamond_of_many_layers_is_looked_through_quickly() -> None:
    tasks = [task("a0"), task("b0")]
    for n in range(1, 60):  # 2 ** 60 ways through it
        tasks += [task(f"{x}{n}", f"a{n - 1}", f"b{n - 1}", writes="x") for x in "ab"]
    assert pairs(find_conflicts(tasks, {})) == [(f"a{n}", f"b{n}") for n in range(1, 60)]


def test_the_facts_of_a_plan_have_names_that_stay() -> None:
    tasks = [task("a", writes="x"), task("b", "a", uses="gpu")]
    facts = plan_json(Plan("release", ()), tasks, [PlanConflict("a", "b", "x")])
    assert facts == {
        "plan": "release",
        "tasks": [
            {
                "id": name,
                "agent": "codex",
                "prompt": None,
                "claims": claims,
                "after": after,
                "priority": 0,
                "timeout": None,
                "attempts": 1,
            }
            for name, claims, after in (("a", ["writes x"], []), ("b", ["uses gpu"], ["a"]))
        ],
        "conflicts": [{"one": "a", "other": "b", "about": "x"}],
    }
    assert nodes(tasks)[1] == ("b", ("a",), "codex", ("uses gpu",))


def test_of_very_many_tasks_the_first_are_compared() -> None:
    first = task("t0", writes="a")
    chain = [first.replace(id=f"t{n}", after=(f"t{n - 1}",)) for n in range(1, 2_000)]
    last = [task("x", writes="**"), task("y", writes="**")]
    assert find_conflicts([first, *chain, *last], {}) == []
    assert pairs(find_conflicts([*last, first], {})) == [("x", "y"), ("x", "t0"), ("y", "t0")]
