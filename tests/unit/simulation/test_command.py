"""`python -m tests.simulation`: one command for both targets."""

from __future__ import annotations

import pytest

from tests.simulation.__main__ import main
from tests.simulation.kernel.planted import BUGS
from tests.simulation.kernel.target import KERNEL
from tests.simulation.planting import first_seed

BUG = "readers exclude each other"


@pytest.mark.parametrize(("target", "stories"), [("kernel", "worlds"), ("runtime", "runs")])
def test_the_last_line_says_that_no_rule_was_broken(
    target: str, stories: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([target, "--seeds", "3", "--start", "5", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"no rule was broken in 3 {stories}"


@pytest.mark.parametrize(("target", "word"), [("kernel", "seed 4:"), ("runtime", "run 4:")])
def test_one_seed_is_replayed_as_a_story(
    target: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([target, "--seed", "4"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(word)
    assert out.endswith("no rule was broken\n")


def test_a_violation_prints_its_seed_and_a_short_story(capsys: pytest.CaptureFixture[str]) -> None:
    seed = first_seed(KERNEL, BUGS[BUG], range(500))
    assert seed is not None
    with BUGS[BUG]():
        assert main(["kernel", "--seeds", "1", "--start", str(seed), "--jobs", "1"]) == 1
        found = capsys.readouterr().out
        assert main(["kernel", "--seed", str(seed)]) == 1
        replayed = capsys.readouterr().out
    assert found.splitlines()[-1].endswith(f"replay this one: --seed {seed}")
    assert replayed in found
