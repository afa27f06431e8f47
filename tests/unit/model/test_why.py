"""Every reason can be said in a sentence."""

from __future__ import annotations

from typing import get_args

import pytest

from interlock.model import why
from interlock.model.claim import read, write
from interlock.model.outcome import State

SENTENCES: list[tuple[why.Reason, str]] = [
    (why.UnfinishedDependency("a", State.RUNNING, 1), "comes after a, which is running since 1"),
    (
        why.HeldClaim(read("x"), "a", write("x"), 1, True, "x"),
        "a holds write x since 1, was told to stop and is not gone; read x means x too",
    ),
    (
        why.ReservedClaim(read("x"), "a", write("x"), 1, 4),
        "a waits for write x since 1, has been overtaken 4 times and goes first;"
        " read x conflicts with it",
    ),
    (
        why.LackingCapacity("gpu", 2, 1, 3, (("a", 2, 0.5),), "b"),
        "needs 2 gpu; 1 of 3 free, held by a (2), kept for b",
    ),
    (
        why.SpentRate("api", 2, 1, 3, 60, 0, 9.5),
        "needs 2 of the rate api (3 in 60 s); 1 left, enough again at 9.5",
    ),
    (why.Paused(True, 1), "everything is paused since 1"),
    (why.Paused(False, 1), "the task is paused since 1"),
    (why.Draining(1), "the run starts nothing any more since 1"),
    (why.Backoff(2, 1, 3), "attempt 2 came to nothing; the next comes not before 3"),
    (why.StillAlive(7, 1), "its last attempt is over since 1 but not gone"),
    (why.UnansweredQuestion("Really?", 1), "waits for your answer since 1: Really?"),
    (why.UnfinishedTask("a", State.WAITING, 1), "waits for a, which is waiting since 1"),
]


@pytest.mark.parametrize(("reason", "sentence"), SENTENCES)
def test_a_reason_reads_as_a_sentence(reason: why.Reason, sentence: str) -> None:
    assert str(reason) == sentence


def test_every_kind_of_reason_has_a_sentence() -> None:
    assert {type(reason) for reason, _ in SENTENCES} == set(get_args(why.Reason))
