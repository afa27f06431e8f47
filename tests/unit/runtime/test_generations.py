"""Ids that can be used again."""

from __future__ import annotations

from interlock import Runtime, Task
from interlock.runtime.submission.generations import Generations
from interlock.testing.simulated_ports import simulated_ports
from tests.unit.execution.worlds import story


def test_every_use_of_a_name_is_the_next_generation() -> None:
    ids = Generations(lambda _: False)
    assert [ids.next("a"), ids.next("a"), ids.next("b"), ids.next("a")] == ["a", "a~2", "b", "a~3"]
    assert [ids.next("a", "#", numbered=True) for _ in range(2)] == ["a#1", "a#2"]


def test_an_id_that_was_given_out_or_submitted_is_passed_over() -> None:
    ids = Generations({"b", "b~2"}.__contains__)
    assert ids.next("a~2") == "a~2"
    assert [ids.next("a"), ids.next("a")] == ["a", "a~3"]
    assert ids.next("b") == "b~3"


def test_a_group_gets_a_generation_in_which_all_its_ids_are_free() -> None:
    ids = Generations(lambda _: False)

    def first(name: str) -> list[str]:
        return [f"{name}/1", f"{name}/2"]

    def second(name: str) -> list[str]:
        return [f"{name}/2", f"{name}/3"]

    assert ids.next("T", ids=first) == "T"
    assert ids.next("T", ids=lambda name: [f"{name}/9"]) == "T"  # none of its ids is taken
    assert ids.next("T", ids=second) == "T~2"
    assert ids.next("T", ids=first) == "T~3"


@story
async def test_a_runtime_gives_out_ids_that_it_has_not_seen() -> None:
    async with Runtime(ports=simulated_ports(), max_outcomes=1) as rt:
        seen = []
        for _ in range(3):
            name = rt.fresh_id("work")
            await rt.submit(Task(name, lambda: None))
            seen.append(name)
        assert seen == ["work", "work~2", "work~3"]
        rt.submit(lambda: None, id="other")
        assert rt.fresh_id("other") == "other~2"
