"""What a run was asked to do, kept and read again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.service.run_request import RunRequest, from_record

FULL = RunRequest(
    plan="plan.yaml",
    texts=(("codex", "fix it"),),
    variables={"who": "you"},
    only=("a", "b"),
    fail_fast=True,
    deadline=60.0,
    max_parallel=3,
)


@pytest.mark.parametrize("request_", [RunRequest(), FULL])
def test_a_request_comes_back_from_the_journal_as_it_was(request_: RunRequest) -> None:
    assert from_record(json.loads(json.dumps(request_.as_record()))) == request_


@pytest.mark.parametrize("record", [None, "text", 5, []])
def test_what_is_no_request_is_none(record: Any) -> None:
    assert from_record(record) is None


def test_a_request_of_a_newer_version_loses_what_is_not_known_here() -> None:
    assert from_record({"plan": "p.yaml", "budget": 5}) == RunRequest(plan="p.yaml")


def test_only_options_that_somebody_has_given_change_a_request() -> None:
    assert FULL.with_options(fail_fast=False, deadline=None, only=(), max_parallel=None) == FULL
    assert FULL.with_options(max_parallel=5).max_parallel == 5


def test_a_request_is_called_by_its_plan_or_the_number_of_its_texts() -> None:
    assert FULL.title == "plan.yaml"
    assert RunRequest(texts=(("a", "x"),)).title == "1 task"
    assert RunRequest(texts=(("a", "x"), ("a", "y"))).title == "2 tasks"
