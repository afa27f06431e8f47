from __future__ import annotations

import dataclasses

import pytest

from interlock.errors import InvalidOption
from interlock.model.claim import Claim, Mode, as_claims, read, uses, uses_text, write


def test_reads_and_writes_claim_paths_and_uses_claims_a_name() -> None:
    assert read("a").is_path
    assert write("a").is_path
    assert not uses("a").is_path
    assert not uses("a", exclusive=True).is_path


def test_a_claim_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        write("a").resource = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("gpu", uses("gpu")),
        ("memory_mb=2048", uses("memory_mb", 2048)),
        ("db:staging!", uses("db:staging", exclusive=True)),
        (" gpu = 2 ", uses("gpu", 2)),
    ],
)
def test_uses_is_read_as_plans_write_it(text: str, claim: Claim) -> None:
    assert uses_text(text) == claim


@pytest.mark.parametrize("claim", [uses("gpu"), uses("m", 20), uses("db", exclusive=True)])
def test_a_claim_on_a_name_is_written_as_it_is_read(claim: Claim) -> None:
    assert uses_text(str(claim)) == claim


def test_a_claim_on_a_path_is_written_with_its_mode() -> None:
    assert str(write("src/**")) == "write src/**"
    assert str(read("docs/")) == "read docs/"


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_resource_without_a_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidOption, match="needs a name"):
        uses(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "!", "=2"])
def test_text_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="needs a name"):
        uses_text(text)


@pytest.mark.parametrize("amount", [0, -1, 1.5, True, "2", None])
def test_an_amount_below_one_is_refused(amount: object) -> None:
    with pytest.raises(InvalidOption, match="whole number above 0"):
        uses("gpu", amount)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["gpu=", "gpu=two", "gpu=-1", "gpu=1.5"])
def test_text_with_an_amount_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="write the amount as a whole number"):
        uses_text(text)


def test_an_amount_of_something_wanted_alone_is_refused() -> None:
    with pytest.raises(InvalidOption, match="not both"):
        uses("gpu", 2, exclusive=True)


def test_the_shorthands_take_one_or_many() -> None:
    assert as_claims(reads="docs/", writes=["a", "b"], uses=["gpu"]) == (
        Claim("a", Mode.WRITE),
        Claim("b", Mode.WRITE),
        Claim("docs/", Mode.READ),
        Claim("gpu", Mode.USE),
    )
    assert as_claims(uses="db!") == (uses("db", exclusive=True),)
    assert as_claims() == ()


def test_a_path_claimed_twice_is_claimed_once_and_a_name_counts_twice() -> None:
    assert as_claims(writes=["a", "b", "a"]) == (write("a"), write("b"))
    assert as_claims(uses=["gpu", uses("gpu")]) == (uses("gpu"), uses("gpu"))
