"""What an executor takes and returns checks itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ValidationError

from interlock import (
    AgentAssignment,
    AgentOutcome,
    ParallelExecutionGroup,
    ParallelExecutionResult,
    ParallelProgress,
)
from tests.unit.patterns.groups import Agent, Job, Report, assign, group

OK = Report("t", "a", total_cost_usd=1.5)


def _outcome(**fields: Any) -> AgentOutcome:
    return AgentOutcome(**{"task_id": "t", "agent_id": "a", **fields})


def _progress(*counts: int) -> ParallelProgress:
    names = ("total", "completed", "in_progress", "succeeded", "failed")
    return ParallelProgress(group_id="g", **dict(zip(names, counts, strict=True)))


def test_an_assignment_has_the_defaults_people_know() -> None:
    made = AgentAssignment(identity=Agent("a"), task=Job("t"))
    assert (made.agent_id, made.task_id) == ("a", "t")
    assert (made.max_turns, made.timeout_seconds, made.resource_claims) == (20, None, ())
    assert (made.completion_config, made.memory_messages) == (None, ())
    plain = ParallelExecutionGroup(group_id="g", assignments=(made,))
    assert (plain.max_concurrency, plain.fail_fast) == (None, False)


def test_ids_are_text_whatever_they_were() -> None:
    number = UUID(int=7)
    made = AgentAssignment(identity=SimpleNamespace(id=number), task=SimpleNamespace(id=7))
    assert (made.agent_id, made.task_id) == (str(number), "7")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: AgentAssignment(identity=Agent(" "), task=Job("t")), "identity needs an id"),
        (lambda: AgentAssignment(identity=Agent("a"), task=Job("")), "task needs an id"),
        (lambda: AgentAssignment(identity=Agent("a"), task="t"), "task needs an id"),
        (lambda: assign("t", None, "a.py", " "), "must not be blank"),
        pytest.param(
            lambda: assign("t", None, "a.py", "a.py"),
            "contains duplicates: a.py",
            id="<lambda>-these twice: a.py",
        ),
        (lambda: assign("t", max_turns=0), "max_turns"),
        (lambda: assign("t", timeout_seconds=0), "timeout_seconds"),
        (lambda: assign("t", timeout_seconds=float("nan")), "timeout_seconds"),
        (lambda: assign("t", timout_seconds=3), "timout_seconds"),
        (group, "assignments"),
        (lambda: group(assign("t"), id=" "), "group_id"),
        (lambda: group(assign("t"), max_concurrency=0), "max_concurrency"),
        (lambda: group(assign("t"), assign("t")), "same task_id: t"),
        (
            lambda: group(
                AgentAssignment(identity=Agent("a"), task=Job("1")),
                AgentAssignment(identity=Agent("a"), task=Job("2")),
            ),
            "same agent_id: a",
        ),
        (_outcome, "a result or an error"),
        (lambda: _outcome(result=OK, error="x"), "not both"),
        (lambda: _outcome(error=" "), "must not be blank"),
        (lambda: _outcome(result=replace(OK, task_id="u")), "task 'u', but 't'"),
        (lambda: _outcome(result=replace(OK, agent_id="b")), "agent 'b', but 'a'"),
        pytest.param(
            lambda: _outcome(result="done"),
            "a str is not a result: it has no is_success, agent_id",
            id="<lambda>-a str is no result: it has no is_success, agent_id",
        ),
        pytest.param(
            lambda: _progress(3, 2, 2, 1, 1),
            "more than the total of 3",
            id="<lambda>-more than there are",
        ),
        pytest.param(
            lambda: _progress(3, 2, 0, 1, 0),
            "does not add up to 2 completed",
            id="<lambda>-not the number completed",
        ),
        (lambda: _progress(3, -1, 0, -1, 0), "completed"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        make()


@pytest.mark.parametrize(
    "made",
    [
        assign("t"),
        group(assign("t")),
        _outcome(error="x"),
        ParallelExecutionResult(group_id="g", outcomes=(), total_duration_seconds=0),
        _progress(0, 0, 0, 0, 0),
    ],
    ids=lambda made: type(made).__name__,
)
def test_all_of_them_are_frozen(made: BaseModel) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(made, next(iter(type(made).model_fields)), "other")


def test_what_was_dumped_can_be_read_again_with_all_that_is_computed() -> None:
    progress = _progress(7, 3, 2, 1, 2)
    assert ParallelProgress.model_validate(progress.model_dump()) == progress
    assert ParallelProgress.model_validate_json(progress.model_dump_json()) == progress
    result = ParallelExecutionResult(
        group_id="g", outcomes=(_outcome(error="x"),), total_duration_seconds=1
    )
    assert ParallelExecutionResult.model_validate(result.model_dump()) == result


class Why(Enum):
    MAX_TURNS = "max_turns"


@pytest.mark.parametrize(
    ("outcome", "success", "reason"),
    [
        (_outcome(result=OK), True, "succeeded"),
        (_outcome(result=replace(OK, is_success=False)), False, "failed"),
        (_outcome(error="OSError: x"), False, "failed"),
        (_outcome(error="Cancelled"), False, "cancelled"),
        (_outcome(error="Timed out after 5 s"), False, "timed_out"),
        (_outcome(error="Refused: shutting down"), False, "refused"),
    ],
)
def test_an_outcome_says_how_it_ended(outcome: AgentOutcome, success: bool, reason: str) -> None:
    assert (outcome.is_success, outcome.termination_reason) == (success, reason)


@pytest.mark.parametrize("reason", [Why.MAX_TURNS, "max_turns"])
def test_what_a_result_says_about_its_end_comes_first(reason: Any) -> None:
    result = SimpleNamespace(**vars(OK), termination_reason=reason)
    assert _outcome(result=result).termination_reason == "max_turns"


def test_a_result_counts_and_sums_up() -> None:
    outcomes = (
        _outcome(result=OK),
        _outcome(result=replace(OK, is_success=False)),
        _outcome(error="Cancelled"),
    )
    result = ParallelExecutionResult(group_id="g", outcomes=outcomes, total_duration_seconds=2)
    assert (result.agents_succeeded, result.agents_failed, result.all_succeeded) == (1, 2, False)
    assert result.total_cost_usd == 3.0
    best = ParallelExecutionResult(group_id="g", outcomes=outcomes[:1], total_duration_seconds=2)
    assert best.all_succeeded


def test_progress_knows_what_is_pending() -> None:
    assert _progress(7, 3, 2, 1, 2).pending == 2
