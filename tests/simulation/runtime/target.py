"""The Runtime as a target of the simulation: its stories are runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.simulation.runtime import narration
from tests.simulation.runtime.judge import violations
from tests.simulation.runtime.play import Play
from tests.simulation.runtime.story import RunStory
from tests.simulation.runtime.storyteller import make_story
from tests.simulation.target import Target

EXPECTED = (
    "settled succeeded", "settled failed", "settled timed_out", "settled cancelled",
    "settled skipped", "attempt in a thread", "attempt in a process", "attempt on the loop",
    "second attempt", "third attempt", "zombie", "killed", "cancellation swallowed",
    "left by AttemptsStillAlive", "left by Boom", "left by CancelledError", "left normally",
    "user cancelled twice", "second run", "caller lost patience", "caller got TaskFailed",
    "caller got FatalError", "results delivered", "ask: granted", "ask: lost patience",
    "extend: granted", "extend: denied", "extend: lost patience", "join: granted",
    "join: denied", "take: granted", "take: settled", "children: granted",
    "children: lost patience", "children: the attempt was over", "orphans: granted",
    "several waits at once", "slow journal", "bad listener", "passed while it waited",
    "act: map", "act: run", "act: same key", "act: pause", "act: shutdown", "act: set capacity",
    "submit: ShuttingDown", "bad input: UnknownDependency",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run that has been played, and the rules that were broken in it."""

    play: Play
    violations: list[str]

    @property
    def story(self) -> RunStory:
        return self.play.story

    @property
    def steps(self) -> int:
        return self.play.result.steps if self.play.result is not None else 0

    @property
    def length(self) -> int:
        return len(self.play.record.events)

    @property
    def seen(self) -> Counter[str]:
        return self.play.record.seen

    def heading(self) -> list[str]:
        return list(narration.heading(self.story))

    def lines(self) -> list[str]:
        return list(narration.lines(self.play))


def play(story: RunStory) -> JudgedRun:
    """Play a story with the real Runtime, then judge what was done."""
    played = Play(story).run()
    return JudgedRun(played, violations(played))


RUNTIME = Target(
    name="runtime",
    stories="runs",
    steps="steps of the real runtime",
    make_story=make_story,
    play=play,
    expected=EXPECTED,
    max_shrinks=400,
)
