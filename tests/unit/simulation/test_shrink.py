"""The shrinker: smaller stories of any shape, as long as the same rule is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from interlock import Task, write
from tests.simulation.shrink import shrink, simpler
from tests.simulation.target import Target


class Scene(NamedTuple):
    kind: str
    plans: tuple[str, ...] = ()
    lag: float = 0.0
    task_id: str = ""


class Tale(NamedTuple):
    seed: int
    scenes: tuple[Scene, ...]
    batched: bool = False


@dataclass
class JudgedTale:
    story: Tale
    violations: list[str]
    steps: int = 1
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def length(self) -> int:
        return len(self.story.scenes)

    def heading(self) -> list[str]:
        return []

    def lines(self) -> list[str]:
        return []


def target(judge: Callable[[Tale], list[str]], max_shrinks: int = 1000) -> Target[Tale]:
    return Target(
        name="tale",
        stories="tales",
        steps="steps",
        make_story=lambda seed: Tale(seed, ()),
        play=lambda tale: JudgedTale(tale, judge(tale)),
        expected=(),
        max_shrinks=max_shrinks,
    )


def crash(tale: Tale) -> list[str]:
    kinds = [scene.kind for scene in tale.scenes]
    return [f"t{len(kinds)} crashed after {len(kinds)} scenes"] if "crash" in kinds else []


LONG = Tale(7, tuple(Scene(kind, ("a", "b"), 2.0, "t1") for kind in ("x", "y", "crash", "z")), True)


def test_what_a_violation_does_not_need_is_dropped() -> None:
    short = shrink(LONG, target(crash)).story
    assert short == Tale(7, (Scene("crash", ("a",), 0.0, "t1"),))


def test_a_story_that_breaks_no_rule_stays_as_it_is() -> None:
    assert shrink(LONG, target(lambda tale: [])).story == LONG


def test_a_story_that_breaks_another_rule_is_no_shorter_story_of_this_one() -> None:
    def judge(tale: Tale) -> list[str]:
        return ["too short a tale"] if len(tale.scenes) < 3 else crash(tale)

    assert len(shrink(LONG, target(judge)).story.scenes) == 3


def test_the_search_ends_after_so_many_plays() -> None:
    played: list[Tale] = []

    def judge(tale: Tale) -> list[str]:
        played.append(tale)
        return crash(tale)

    shrink(LONG, target(judge, max_shrinks=3))
    assert len(played) == 1 + 3


def test_tasks_lose_claims_and_dependencies_and_nothing_else() -> None:
    task = Task("t", claims=(write("a"), write("b")), after=("x",), timeout=3.0)
    found = list(simpler(task))
    assert {len(each.claims) for each in found} == {0, 1, 2}
    assert {each.after for each in found} == {(), ("x",)}
    assert {each.timeout for each in found} == {3.0}
