"""The targets of the simulation, by name: a process that plays seeds looks its target up here."""

from __future__ import annotations

from typing import Any

from tests.simulation.kernel.target import KERNEL
from tests.simulation.runtime.target import RUNTIME
from tests.simulation.target import Target

TARGETS: dict[str, Target[Any]] = {each.name: each for each in (KERNEL, RUNTIME)}
