"""Settings that every test shares."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A judgement must depend on the commit alone: examples are the same in every run, and nothing
# fails for having been slow. HYPOTHESIS_PROFILE=explore looks for new examples instead.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore",
    settings.get_profile("fixed"),
    derandomize=False,
    max_examples=2_000,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
