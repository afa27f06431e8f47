"""The prompts of a discussion: the topic, and the turns of earlier rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple


class DiscussionTurn(NamedTuple):
    """What one agent said in one round, or a placeholder."""

    round: int
    agent_id: str
    text: str


_ROUND = attrgetter("round")


def prompt_for(
    number: int, rounds: int, topic: str, said: Sequence[DiscussionTurn], most: int
) -> str:
    """The prompt of a round, with at most `most` characters of earlier turns."""
    return "\n\n".join((f"[Round {number}/{rounds}] Topic: {topic}", *_history(said, most)))


def synthesis_prompt(topic: str, said: Sequence[DiscussionTurn], most: int) -> str:
    """The prompt for the synthesizer."""
    wanted = "Sum up what was said: what is agreed on, what is not, and what follows from it."
    return "\n\n".join((f"[Synthesis] Topic: {topic}", *_history(said, most), wanted))


def fallback(topic: str, why: str, last: Mapping[str, str]) -> str:
    """The text that replaces a synthesis that failed."""
    turns = "\n".join(f"{agent_id}: {text}" for agent_id, text in last.items())
    return f"[No synthesis of {topic!r}: {why}. The last round instead:]\n{turns}"


def _history(said: Sequence[DiscussionTurn], most: int) -> Iterator[str]:
    """Earlier turns as paragraphs. If they are too long, the oldest are left out, and named."""
    left_out, size = 0, sum(len(turn.text) for turn in said)
    while size > most:
        size -= len(said[left_out].text)
        left_out += 1
    if left_out:
        yield f"[Left out, because it is too long: {_named(said, left_out)}]"
    for number, turns in groupby(said[left_out:], _ROUND):
        yield "\n".join((f"Round {number}:", *(f"{turn.agent_id}: {turn.text}" for turn in turns)))


def _named(said: Sequence[DiscussionTurn], count: int) -> str:
    """Name the oldest `count` turns: whole rounds by number, the last one by its agents."""
    last = said[count - 1].round
    part = [turn.agent_id for turn in said[:count] if turn.round == last]
    whole = last if count == len(said) or said[count].round != last else last - 1
    names = ["round 1" if whole == 1 else f"rounds 1 to {whole}"] if whole else []
    if whole < last:
        names.append(f"of round {last} what was said by {', '.join(part)}")
    return " and ".join(names)
