from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import DependencyCycle
from interlock.model.graph import (
    critical_path,
    dependents,
    dependents_of,
    find_cycle,
    tails,
    topological,
)

DIAMOND = {"end": ["left", "right"], "left": ["start"], "right": ["start"], "start": []}
LONG = 100_000


def chain(length: int) -> dict[str, list[str]]:
    """Tasks that each come after the next one."""
    graph = {str(number): [str(number + 1)] for number in range(length - 1)}
    return graph | {str(length - 1): []}


def test_a_graph_without_cycles_has_none() -> None:
    assert find_cycle(DIAMOND) is None
    assert find_cycle({}) is None


def test_a_task_after_itself_is_a_cycle() -> None:
    assert find_cycle({"a": ["b"], "b": ["a"], "c": ["c"]}) == ("c", "c")


def test_a_cycle_is_named_in_the_order_of_waiting() -> None:
    assert find_cycle({"a": ["b"], "b": ["c"], "c": ["a"]}) == ("a", "b", "c", "a")


def test_tasks_that_merely_wait_for_a_cycle_are_not_named() -> None:
    after = {"late": ["a"], "a": ["early", "b"], "b": ["a"], "early": []}
    assert find_cycle(after) == ("a", "b", "a")


def test_the_short_way_round_is_named() -> None:
    after = {"a": ["b", "d"], "b": ["c"], "c": ["a"], "d": ["a"]}
    assert find_cycle(after) == ("a", "d", "a")


def test_a_long_cycle_is_found_without_recursion() -> None:
    after = chain(LONG) | {str(LONG - 1): ["0"]}
    cycle = find_cycle(after)
    assert cycle is not None
    assert len(cycle) == LONG + 1


def test_dependencies_come_first_and_the_rest_keeps_its_order() -> None:
    assert topological(DIAMOND) == ["start", "left", "right", "end"]
    assert topological({"c": [], "a": [], "b": ["a"]}) == ["c", "a", "b"]
    assert topological(chain(LONG))[0] == str(LONG - 1)


def test_an_order_round_a_circle_is_refused_and_names_it() -> None:
    with pytest.raises(DependencyCycle, match="a -> b -> a") as caught:
        topological({"a": ["b"], "b": ["a"]})
    assert caught.value.cycle == ("a", "b", "a")


def test_dependencies_that_are_no_tasks_of_the_graph_are_passed_over() -> None:
    after = {"b": ["a", "gone"], "a": ["gone"]}
    assert topological(after) == ["a", "b"]
    assert find_cycle(after) is None
    assert dependents(after) == {"b": [], "a": ["b"]}
    assert critical_path(after, {"a": 1.0, "b": 1.0}) == ["a", "b"]


def test_a_dependency_named_twice_counts_once() -> None:
    assert topological({"b": ["a", "a"], "a": []}) == ["a", "b"]
    assert dependents({"b": ["a", "a"], "a": []}) == {"b": [], "a": ["b"]}


def test_dependents_are_found_at_any_distance_nearest_first() -> None:
    assert dependents_of(DIAMOND, ["start"]) == ["left", "right", "end"]
    assert dependents_of(DIAMOND, ["left", "right"]) == ["end"]
    assert dependents_of(DIAMOND, ["end"]) == []
    assert dependents_of(DIAMOND, ["unknown"]) == []
    assert len(dependents_of(chain(LONG), [str(LONG - 1)])) == LONG - 1


def test_a_tail_is_the_longest_way_to_the_end_own_weight_included() -> None:
    weight = {"start": 1.0, "left": 5.0, "right": 2.0, "end": 3.0}
    assert tails(DIAMOND, weight) == {"start": 9.0, "left": 8.0, "right": 5.0, "end": 3.0}


def test_the_critical_path_is_the_chain_that_takes_longest() -> None:
    weight = {"start": 1.0, "left": 5.0, "right": 2.0, "end": 3.0}
    assert critical_path(DIAMOND, weight) == ["start", "left", "end"]
    assert critical_path({}, {}) == []
    assert len(critical_path(chain(LONG), {})) == LONG


def test_ties_go_to_the_task_that_was_named_first() -> None:
    assert critical_path({"a": [], "b": []}, {"a": 1.0, "b": 1.0}) == ["a"]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    ids = [str(number) for number in range(draw(st.integers(1, 7)))]
    return {each: draw(st.lists(st.sampled_from(ids), max_size=3)) for each in ids}


@given(graphs())
def test_either_there_is_a_cycle_or_an_order(after: dict[str, list[str]]) -> None:
    cycle = find_cycle(after)
    if cycle is None:
        order = topological(after)
        assert sorted(order) == sorted(after)
        assert all(order.index(b) < order.index(a) for a in after for b in after[a])
    else:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(following in after[task] for task, following in itertools.pairwise(cycle))


@given(graphs(), st.lists(st.integers(1, 9), min_size=7, max_size=7))
def test_the_critical_path_weighs_as_much_as_the_longest_tail(
    after: dict[str, list[str]], weights: list[int]
) -> None:
    weight = {str(number): float(value) for number, value in enumerate(weights)}
    if find_cycle(after) is None:
        path = critical_path(after, weight)
        assert sum(weight[task] for task in path) == max(tails(after, weight).values())
        assert all(before in after[task] for before, task in itertools.pairwise(path))
