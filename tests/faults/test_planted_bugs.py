"""The judge is good: it finds every bug that was planted in the kernel, and soon."""

from __future__ import annotations

import pytest

from tests.simulation.kernel.planted import BUGS
from tests.simulation.kernel.target import KERNEL
from tests.simulation.planting import first_seed

SEEDS = range(500)


def test_at_least_twenty_bugs_are_planted() -> None:
    assert len(BUGS) >= 20


@pytest.mark.parametrize("sentence", BUGS)
def test_the_judge_notices_that(sentence: str) -> None:
    assert first_seed(KERNEL, BUGS[sentence], SEEDS) is not None
