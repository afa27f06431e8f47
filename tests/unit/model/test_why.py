"""Every reason can be said in a sentence."""

from __future__ import annotations

from typing import get_args

import pytest

from interlock.model import why
from interlock.model.claim import read, write
from interlock.model.load import Load
from interlock.model.outcome import State
from interlock.model.throttled import ClosedGate, LoadedMachine, OpenBreaker

SENTENCES: list[tuple[why.Reason, str]] = [
    (
        why.UnfinishedDependency("a", State.RUNNING, 1),
        "depends on a, which has been running for 9.0 s",
    ),
    (
        why.HeldClaim(read("x"), "a", write("x"), 1, True, "x"),
        "a has held write x for 9.0 s, was told to stop and has not exited; read x also matches x",
    ),
    (
        why.ReservedClaim(read("x"), "a", write("x"), 1, 4),
        "a has been waiting for write x for 9.0 s, has been overtaken 4 times and goes first;"
        " read x conflicts with it",
    ),
    (
        why.NoCapacity("gpu", 2, 1, 3, (("a", 2, 0.5),), "b"),
        "needs 2 gpu; 1 of 3 free, held by a (2), reserved for b",
    ),
    (
        why.RateLimited("api", 2, 1, 3, 60, 0, 12.5),
        "needs 2 of the rate api (3 in 1 min); 1 left, enough again in 2.5 s",
    ),
    (
        OpenBreaker("breaker:gpt", 3, "OSError: 503", 1, 30),
        "breaker:gpt has been open for 9.0 s: 3 failures in a row, the last one: OSError: 503;"
        " one attempt may try in 20 s",
    ),
    (
        OpenBreaker("breaker:gpt", 3, "OSError: 503", 1, None),
        "breaker:gpt has been half-open for 9.0 s: one attempt has to succeed before others may"
        " start (3 failures in a row, the last one: OSError: 503)",
    ),
    (
        ClosedGate(Load(97.2, 40.0), 90, 80, 1),
        "the gate has been closed for 9.0 s:"
        " CPU at 97 % (at most 90 %), memory at 40 % (at most 80 %)",
    ),
    (
        LoadedMachine(2, 1, 16, Load(None, 40.0), 80, 80, 1),
        "the load has allowed only 2 of 16 slots for 9.0 s:"
        " CPU not measured yet (at most 80 %), memory at 40 % (at most 80 %)",
    ),
    (
        why.StuckJournal("disk is full", 1),
        "the journal has not been writable for 9.0 s: disk is full",
    ),
    (
        why.NoCoordinator("7f3a", 1),
        "run 7f3a was interrupted 9.0 s ago",
    ),
    (why.Paused(True, 1), "the run has been paused for 9.0 s"),
    (why.Paused(False, 1), "the task has been paused for 9.0 s"),
    (why.Draining(1), "the run has been stopping for 9.0 s: it starts nothing more"),
    (why.Backoff(2, 1, 13), "attempt 2 failed; the next one starts in 3.0 s at the earliest"),
    (
        why.PreviousAttemptAlive(7, 1),
        "its previous attempt has been over for 9.0 s but has not exited",
    ),
    (why.UnansweredQuestion("Really?", 1), "has been waiting for your answer for 9.0 s: Really?"),
    (why.UnfinishedTask("a", State.WAITING, 1), "waits for a, which has been waiting for 9.0 s"),
]


@pytest.mark.parametrize(("reason", "sentence"), SENTENCES)
def test_a_reason_reads_as_a_sentence(reason: why.Reason, sentence: str) -> None:
    assert reason.describe(now=10.0) == sentence


def test_every_kind_of_reason_has_a_sentence() -> None:
    assert {type(reason) for reason, _ in SENTENCES} == set(get_args(why.Reason))
