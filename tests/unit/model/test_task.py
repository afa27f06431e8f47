from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from interlock.errors import BlankId, InvalidOption
from interlock.model.claim import read, uses, write
from interlock.model.limits import Retry
from interlock.model.outcome import State
from interlock.model.task import ONCE, Task


@pytest.mark.parametrize("blank", ["", "   ", "\n", None, 7])
def test_a_blank_id_is_refused(blank: object) -> None:
    with pytest.raises(BlankId):
        Task(blank)  # type: ignore[arg-type]


def test_the_shorthands_end_up_in_the_claims() -> None:
    task = Task("t", writes="src/**", reads=["docs/"], uses="gpu", claims=[write("a")])
    assert task.claims == (write("a"), write("src/**"), read("docs/"), uses("gpu"))


def test_a_path_written_twice_is_one_claim_and_a_name_used_twice_is_two() -> None:
    assert Task("t", writes=["a", "a"]).claims == (write("a"),)
    assert Task("t", uses=["gpu", "gpu"]).claims == (uses("gpu"), uses("gpu"))


def test_one_dependency_may_be_written_as_plain_text() -> None:
    assert Task("t", after="build").after == ("build",)
    assert Task("t", after=["a", "b", "a"]).after == ("a", "b")


def test_durations_become_seconds() -> None:
    task = Task("t", timeout="10m", deadline=timedelta(hours=1), estimate=90)
    assert (task.timeout, task.deadline, task.estimate) == (600.0, 3600.0, 90.0)


def test_a_task_has_one_attempt_and_no_limits_unless_asked() -> None:
    task = Task("t")
    assert task.retry is ONCE
    assert task.retry.attempts == 1
    assert (task.timeout, task.deadline, task.estimate) == (None, None, None)
    assert (task.claims, task.after, task.priority) == ((), (), 0)


@pytest.mark.parametrize("option", ["timeout", "deadline", "estimate"])
def test_a_negative_duration_is_refused_by_name(option: str) -> None:
    with pytest.raises(InvalidOption, match=f"task 't': {option} is -1"):
        Task("t", **{option: -1})  # type: ignore[arg-type]


@pytest.mark.parametrize("priority", [1.5, "high", None, True])
def test_a_priority_that_is_no_whole_number_is_refused(priority: object) -> None:
    with pytest.raises(InvalidOption, match="task 't': priority"):
        Task("t", priority=priority)  # type: ignore[arg-type]


@pytest.mark.parametrize("claims", [["src/**"], "src/**", [write("a"), "src/**"]])
def test_a_claim_that_is_only_text_is_refused(claims: object) -> None:
    with pytest.raises(InvalidOption, match=r"task 't': 'src/\*\*' in claims is not a claim; make"):
        Task("t", claims=claims)  # type: ignore[arg-type]


@pytest.mark.parametrize("item", [3, None, ["gpu"]])
def test_what_is_neither_text_nor_a_claim_cannot_be_used(item: object) -> None:
    with pytest.raises(InvalidOption, match=r"task 't': uses: .* is not a claim; write") as caught:
        Task("t", uses=["gpu", item])  # type: ignore[list-item]
    assert repr(item) in str(caught.value)


def test_a_claim_that_cannot_be_read_is_refused_with_the_task() -> None:
    with pytest.raises(InvalidOption, match="task 't': 'gpu=two': write the amount"):
        Task("t", uses="gpu=two")


def test_a_task_is_frozen_and_replaced_rather_than_changed() -> None:
    task = Task("t", writes="a", after="b", timeout=5, retry=Retry(attempts=2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.priority = 3  # type: ignore[misc]
    changed = task.replace(priority=3)
    assert changed == Task(
        "t", writes="a", after="b", timeout=5, retry=Retry(attempts=2), priority=3
    )
    assert task.priority == 0
    assert task.replace(claims=[read("x")]).claims == (read("x"),)


def test_a_renamed_task_is_the_same_but_for_its_id() -> None:
    task = Task("a", print, prompt="p", args=[1], writes="x", timeout=3, labels={"k": "v"})
    assert task.renamed("b") == task.replace(id="b")
    assert task.id == "a"


def test_a_replacement_is_checked_like_a_new_task() -> None:
    with pytest.raises(BlankId):
        Task("t").replace(id=" ")


def test_exactly_the_last_six_states_are_ends() -> None:
    assert [state.value for state in State if state.is_end] == [
        "succeeded",
        "failed",
        "timed_out",
        "cancelled",
        "skipped",
        "conflicted",
    ]
