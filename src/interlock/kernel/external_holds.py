"""What is held from outside the run: by an attempt of an earlier run that could not be stopped.

It is in the way of every task like a zombie of this run, and takes part in nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import BlankId, DuplicateId, InvalidOption, UnknownTask
from interlock.kernel import stimuli as s
from interlock.kernel.records import ExternalHold
from interlock.model.claim import Claim, Mode

if TYPE_CHECKING:
    from interlock.kernel.run import KernelRun


class ExternalHolds:
    """What came with `Occupy` and has not been released with `Vacate`."""

    def __init__(self, run: KernelRun) -> None:
        self._run = run

    def occupy(self, stimulus: s.Occupy) -> None:
        """Take in that these claims are held, as a fact."""
        run, name = self._run, stimulus.name
        if not isinstance(name, str) or not name.strip():
            raise BlankId(f"an external hold needs a name, not {name!r}")
        if name in run.entries or name in run.ends or name in run.external_holds:
            raise DuplicateId(f"there is already something with the id {name!r}; ids are unique")
        if not isinstance(stimulus.claims, tuple) or not all(
            isinstance(claim, Claim) for claim in stimulus.claims
        ):
            raise InvalidOption(f"claims come as a tuple of claims, not as {stimulus.claims!r}")
        claims = tuple(filter(self._can_be_held, stimulus.claims))
        for claim in claims:
            if claim.is_path:
                run.table.read(name, claim)
        needs, amounts = run.table.resolve(claims)
        run.external_holds[name] = hold = ExternalHold(name, claims, run.now)
        run.admission.occupy(hold, needs, amounts)

    def vacate(self, stimulus: s.Vacate) -> None:
        """Release what was held: its holder has exited."""
        run = self._run
        hold = run.external_holds.pop(stimulus.name, None)
        if hold is None:
            raise UnknownTask(f"nothing outside this run occupies claims as {stimulus.name!r}")
        needs = hold.places
        run.admission.release(hold)
        run.table.forget(needs)

    def _can_be_held(self, claim: Claim) -> bool:
        """Whether a claim means something in this run, whose capacities may differ."""
        meter = None if claim.is_path else self._run.table.meters.get(claim.resource)
        if meter is not None:
            return meter.window is None and meter is not self._run.table.slots
        return claim.is_path or claim.mode is Mode.EXCLUSIVE or claim.amount == 1
