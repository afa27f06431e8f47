"""Declared secrets never reach the disk, in whatever they were hidden."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import InvalidOption
from interlock.journal.files import LARGE
from interlock.journal.schema.codec import Codec
from interlock.model.event import Kind
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.task import Task
from tests.unit.journal.story import Story, opened, run

SECRET = 'sk-"quoted"\\and\nüber-long'
PLAIN = "hunter2hunter2"


@dataclass
class Note:
    text: str


@pytest.mark.parametrize(
    "value",
    [
        SECRET,
        f"before {SECRET} after {SECRET}",
        {"a": [SECRET]},
        {SECRET: 1},
        (SECRET,),
        {1: SECRET},
        SECRET.encode(),
        Note(SECRET),
        Outcome("a", State.FAILED, None, ErrorRecord("E", SECRET, f"trace {SECRET}")),
        Outcome("a", State.SUCCEEDED, {"k": SECRET}),
        Path(SECRET),
        ["\ud83d is half of a pair", SECRET],
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_secret_is_replaced_wherever_it_is(value: Any) -> None:
    codec = Codec(redact=[SECRET])
    text = codec.dumps(value)
    codec.loads(text)
    assert "quoted" not in text
    assert base64.b64encode(b"quoted").decode()[:6] not in text


def test_what_is_around_a_secret_stays() -> None:
    codec = Codec(redact=[PLAIN])
    assert codec.loads(codec.dumps({"url": f"https://u:{PLAIN}@h/x"})) == {
        "url": "https://u:***@h/x"
    }


def test_the_longer_of_two_secrets_goes_first() -> None:
    codec = Codec(redact=["abcd", "abcdefgh"])
    assert codec.loads(codec.dumps("abcdefgh abcd")) == "*** ***"


def test_an_escape_is_not_taken_for_a_letter() -> None:
    # In JSON a newline is written with an n: "nope" must not be found in it.
    codec = Codec(redact=["nope"])
    assert codec.loads(codec.dumps("line\nope, nope")) == "line\nope, ***"


@given(st.text(min_size=4), st.text(), st.text())
def test_no_text_comes_through(secret: str, before: str, after: str) -> None:
    codec = Codec(redact=[secret])
    found = codec.loads(codec.dumps({"x": before + secret + after}))["x"]
    assert secret not in found or secret in "***"


def test_a_secret_that_is_too_short_is_refused() -> None:
    with pytest.raises(InvalidOption, match="characters"):
        Codec(redact=["abc"])


def test_an_empty_secret_is_none() -> None:
    assert Codec(redact=[""]).dumps("a") == '"a"'


def test_a_secret_is_in_none_of_the_files(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db", redact=[PLAIN])
        story = Story()
        task = Task(
            f"id-{PLAIN}",
            f"app:{PLAIN}",
            prompt=PLAIN,
            args=(PLAIN,),
            kwargs={"token": PLAIN},
            writes=f"src/{PLAIN}",
            key=f"key-{PLAIN}",
            labels={"l": PLAIN},
        )
        await journal.append(story.life(task, {"small": PLAIN}))
        await journal.append(story.life(Task("b"), PLAIN * LARGE))
        await journal.append([story.tell(Kind.LOGGED, "a", {"line": PLAIN})])
        await journal.records("ns").put("k", [PLAIN])
        everything = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        journal.close()
        everything += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        assert len(everything) > 4
        assert not any(PLAIN.encode() in data for data in everything)

    run(main())
