"""Kills a coordinator at random moments, starts it again, and judges it: `make kill-test`.

Each life is a fork of this process, which has everything loaded and nothing open, so that a life
begins within milliseconds; the kill is a real SIGKILL.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.faults.kill_judge import violations
from tests.faults.kill_plants import PLANTS
from tests.faults.kill_program import lines, live

_RUNS = 3
"""The number of runs that share a journal: keys outlive runs, successes are reused."""
_LOOK = 5
"""The journal is judged after so many lives (processes of the coordinator)."""


class Tally:
    """What was done."""

    def __init__(self) -> None:
        self.kills = self.early = self.lives = self.runs = self.worlds = 0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills ({self.early} before the program had begun), {self.lives} lives, "
            f"{self.runs} runs to their end, {self.worlds} journals"
        )


def kill_again_and_again(kills: int, seed: int, most: float | None = None) -> list[str]:
    """Kill so many times, or for `most` seconds; returns the violations with their story."""
    tally, began = Tally(), time.monotonic()
    while tally.kills < kills and (most is None or time.monotonic() - began < most):
        with tempfile.TemporaryDirectory(prefix="interlock-kill-", dir=_in_memory()) as folder:
            world = seed + tally.worlds
            found = _world(Path(folder), world, tally, kills)
            if found:
                return [f"seed {world} (of {seed}), {tally}:", *found, *_story(Path(folder))]
        tally.worlds += 1
    spent = time.monotonic() - began
    print(f"{tally}, {tally.kills / spent:.1f} kills a second; nothing lost, nothing done twice")
    return []


def _world(folder: Path, seed: int, tally: Tally, kills: int) -> list[str]:
    chance = Random(seed)
    for number in range(_RUNS):
        inherit, life = chance.random() < 0.5, 0
        while True:
            tally.lives += 1
            last = tally.kills >= kills
            ended = _life(folder, seed, number * 1000 + life, inherit, None if last else chance)
            if not ended:
                tally.kills += 1
                facts = lines(folder)
                tally.early += not facts or facts[-1].life != number * 1000 + life
            # What is lost stays lost, and what ran twice is in the facts: judging is not urgent.
            if ended or tally.lives % _LOOK == 0:
                found = list(violations(folder, closed=ended))
                if found:
                    return found
            life += 1
            if ended:
                tally.runs += 1
                break
    return []


def _life(folder: Path, seed: int, life: int, inherit: bool, chance: Random | None) -> bool:
    """Run one life; False if it was killed before its end."""
    sys.stdout.flush()
    begun, begins = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            live(folder, seed, life, inherit, lambda: os.write(begins, b"!"))
            status = 0
        finally:
            os._exit(status)
    os.close(begins)
    watch = os.pidfd_open(child)
    try:
        _wait(watch, begun, chance)
    finally:
        os.close(watch)
        os.close(begun)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return not os.WIFSIGNALED(status)


def _wait(watch: int, begun: int, chance: Random | None) -> None:
    """Wait for the moment of the kill: mostly in the middle of the work, often before it."""
    if chance is None:
        select.select([watch], [], [])
    elif chance.random() < 0.25:
        select.select([watch], [], [], chance.uniform(0.0, 0.03))
    else:
        select.select([begun], [], [])
        select.select([watch], [], [], chance.uniform(0.0, 0.06))


def _in_memory() -> str | None:
    """A folder in memory if there is one. A kill loses nothing of a file, wherever it is."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _story(folder: Path) -> list[str]:
    return ["the facts:", *("  " + "  ".join(map(str, line)) for line in lines(folder))]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=1000)
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--most", type=float, default=None, help="seconds")
    options.add_argument("--plant", choices=PLANTS, help="a bug that has to be found")
    chosen = options.parse_args()
    if chosen.plant:
        PLANTS[chosen.plant]()
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    found = kill_again_and_again(chosen.kills, seed, chosen.most)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
