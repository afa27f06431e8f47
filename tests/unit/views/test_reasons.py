"""Every kind of reason is shown, in few words and in full, and its JSON says the same."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import get_args

import pytest

from interlock.model import why as why_model
from interlock.model.claim import write
from interlock.model.outcome import State
from interlock.model.why import Explanation, HeldClaim, NoCapacity, Reason
from interlock.views.cli.why_json import explanation_json
from interlock.views.terminal.explanation import render_explanation
from interlock.views.terminal.reasons import summarize, summarize_reason
from tests.unit.model.test_why import SENTENCES
from tests.unit.views.runs import text_of, why

REASONS = [reason for reason, _ in SENTENCES]
KINDS = {each: each.kind for each in why_model.REASONS}
NAMES = {
    "unfinished_dependency": "task_id state since",
    "held_claim": "claim holder holder_claim since stopping witness",
    "reserved_claim": "claim older older_claim since overtaken",
    "no_capacity": "resource wanted free capacity holders reserved_for",
    "rate_limited": "resource wanted free quota window since until",
    "open_breaker": "resource failures last since until",
    "closed_gate": "load cpu memory since",
    "loaded_machine": "slots least most load cpu memory since",
    "paused": "everything since",
    "draining": "since",
    "backoff": "attempts since until",
    "previous_attempt_alive": "token since",
    "unanswered_question": "question since",
    "unfinished_task": "task_id state since",
    "stuck_journal": "error since",
    "no_coordinator": "run_id since",
}
"""Whoever reads the JSON relies on these names: they do not change."""


def explanation(*reasons: Reason) -> Explanation:
    return Explanation("b", State.WAITING, 2.0, reasons, 14.0, ("cancel 'a'",), 10.0)


def test_every_kind_of_reason_is_covered() -> None:
    assert set(KINDS) == set(get_args(Reason)) == {type(reason) for reason in REASONS}
    assert sorted(KINDS.values()) == sorted(NAMES)


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_is_shown_in_full(reason: Reason) -> None:
    shown = text_of(render_explanation(explanation(reason)), width=500)
    assert f"  – {reason.describe(10.0)}\n" in shown


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_can_be_said_in_a_few_words(reason: Reason) -> None:
    said = summarize_reason(reason, 10.0)
    assert 0 < len(said) <= 70
    assert "None" not in said


@pytest.mark.parametrize("reason", REASONS)
def test_the_json_of_a_reason_has_the_same_content(reason: Reason) -> None:
    made = json.loads(json.dumps(explanation_json(explanation(reason)), allow_nan=False))
    (found,) = made["reasons"]
    assert list(found) == ["kind", "text", *NAMES[found["kind"]].split()]
    assert found["text"] == reason.describe(10.0)
    for each in fields(reason):
        value = getattr(reason, each.name)
        if isinstance(value, (str, int, float)) or value is None:
            assert found[each.name] == value


def test_claims_and_holders_are_records_in_json() -> None:
    held = HeldClaim(write("x"), "a", write("x/**"), 1, False, "x")
    lacking = NoCapacity("gpu", 2, 1, 3, (("a", 2, 0.5),))
    one, two = explanation_json(explanation(held, lacking))["reasons"]
    assert one["holder_claim"] == (
        {"text": "write x/**", "mode": "write", "resource": "x/**", "amount": 1}
    )
    assert two["holders"] == [{"task_id": "a", "amount": 2, "since": 0.5}]


def test_the_whole_explanation_is_there_for_people_and_as_json() -> None:
    whole = explanation(*REASONS)
    shown = text_of(render_explanation(whole), width=500)
    assert "○ b has been waiting for 8.0 s" in shown
    assert "expected to clear in 4.0 s" in shown
    assert "→ cancel 'a'" in shown
    made = explanation_json(whole)
    assert {key: made[key] for key in made if key != "reasons"} == {
        "task_id": "b",
        "state": "waiting",
        "at": 10.0,
        "since": 2.0,
        "clears_at": 14.0,
        "suggestions": ["cancel 'a'"],
        "error": "",
        "error_type": "",
        "cause": "",
        "log": "",
    }


def test_a_task_that_nothing_keeps_says_so() -> None:
    free = Explanation("b", State.WAITING, 2.0, (), None, (), 10.0)
    ended = Explanation("b", State.SUCCEEDED, 2.0, (), None, (), 10.0)
    assert "nothing is keeping it from starting" in text_of(render_explanation(free))
    assert text_of(render_explanation(ended)) == "✓ b succeeded 8.0 s ago\n"


def test_the_same_reason_is_said_once_in_few_words() -> None:
    twice = explanation(*why("a").reasons, *why("a").reasons)
    assert summarize(twice) == "api holds write src/**; all 4 slots are busy"
    assert summarize(None) == ""
