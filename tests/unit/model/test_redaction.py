"""Secrets are found in text that comes in pieces, wherever it is cut."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.redaction import Redaction

SECRETS = st.sets(st.text("ab", min_size=4, max_size=8), min_size=1, max_size=3)


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


@given(SECRETS, st.text("abc", max_size=40), st.lists(st.integers(0, 40), max_size=12))
def test_pieces_are_redacted_as_the_whole_is(secrets: set[str], text: str, cuts: list[int]) -> None:
    redaction = Redaction(secrets)
    stream = redaction.stream()
    given_out = "".join(map(stream.take, pieces(text, cuts))) + stream.rest()
    assert given_out == redaction.text(text)


def test_only_what_could_be_the_beginning_of_a_secret_is_kept_back() -> None:
    stream = Redaction(["hunter2222"]).stream()
    assert stream.take("a line\nhunt") == "a line\n"
    assert stream.take("ing\n") == "hunting\n"
    assert stream.take("hunter22") == ""
    assert stream.take("22!") == "***!"


def test_a_secret_is_found_as_json_spells_it() -> None:
    secret = 'line one\nline "two"'
    stream = Redaction([secret]).stream()
    assert stream.take(json.dumps({"key": secret})) == '{"key": "***"}'


def test_a_secret_that_begins_like_a_longer_one_waits_for_the_rest() -> None:
    stream = Redaction(["hunter", "hunter-and-more"]).stream()
    assert stream.take("hunter") == ""
    assert stream.take("-and-more.") == "***."
    assert stream.take("hunter") + stream.take("!") == "***!"


def test_without_secrets_nothing_is_kept_back() -> None:
    stream = Redaction([]).stream()
    assert stream.take("anything") + stream.rest() == "anything"


PEM = (
    "-----BEGIN KEY-----\r\nMIIEvQIBADANBgkqh/kiG9w0\r\n"
    "AAAAB3NzaC1yc2E+xyz/9876\r\n-----END KEY-----\r\n"
)
UMLAUTS = "gehéim-ünï/code"


@pytest.mark.parametrize(
    ("secret", "written"),
    [
        (PEM, PEM),
        (PEM, PEM.replace("\r\n", "\n")),
        (PEM, PEM.strip()),
        (PEM, PEM.replace("\r", "")[:-1]),
        (PEM, json.dumps(PEM)),
        (PEM, json.dumps(PEM).replace("/", "\\/")),
        (PEM, json.dumps(PEM.replace("\r", ""))),
        (PEM, "> AAAAB3NzaC1yc2E+xyz/9876 <"),
        (PEM, "AAAAB3NzaC1yc2E+xyz\\/9876"),
        (UMLAUTS, json.dumps(UMLAUTS)),
        (UMLAUTS, json.dumps(UMLAUTS, ensure_ascii=False)),
        (UMLAUTS, json.dumps(UMLAUTS).replace("/", "\\/")),
        ("pass\x1b[1mword\x01", "password"),
        ("a token\n", "a token"),
    ],
)
def test_a_secret_is_found_however_it_is_spelt(secret: str, written: str) -> None:
    redaction = Redaction([secret])
    left = redaction.text(f"before {written} after")
    stream = redaction.stream()
    assert "".join(map(stream.take, f"before {written} after")) + stream.rest() == left
    assert left.startswith("before ")
    assert left.endswith(" after")
    for hidden in ("MIIE", "NzaC", "9876", "héim", "code", "word", "token"):
        assert hidden not in left
    assert redaction.is_in(written)
    assert redaction.bytes(written.encode()).decode() == redaction.text(written)
    assert redaction.may_be_in(json.dumps({"of": written}, ensure_ascii=False))
    assert "***" in redaction.tree({"of": [written]})["of"][0]


def test_what_every_key_file_begins_with_is_no_secret() -> None:
    assert Redaction([PEM]).text("-----BEGIN KEY-----") == "-----BEGIN KEY-----"


def test_short_lines_of_a_secret_are_no_secrets() -> None:
    assert Redaction(["first line\nsecond line"]).text("second line") == "second line"
