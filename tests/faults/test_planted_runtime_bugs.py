"""The judge of runs is good: it finds every bug that was planted in the runtime, and soon."""

from __future__ import annotations

import pytest

from tests.simulation.planting import first_seed
from tests.simulation.runtime.planted import BUGS
from tests.simulation.runtime.target import RUNTIME

SEEDS = range(500)


@pytest.mark.parametrize("sentence", BUGS)
def test_the_judge_of_runs_notices_that(sentence: str) -> None:
    assert first_seed(RUNTIME, BUGS[sentence], SEEDS) is not None
