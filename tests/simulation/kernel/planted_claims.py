"""Planted bugs: which claims exclude each other, and how much there is of something."""

from __future__ import annotations

from typing import Any

from interlock.kernel import lending as lending_module
from interlock.kernel.admission import Admission
from interlock.kernel.controls import Controls
from interlock.kernel.external_holds import ExternalHolds
from interlock.kernel.kernel import Kernel
from interlock.kernel.meters import Meter
from interlock.kernel.places import Folder
from interlock.kernel.records import Attempt
from interlock.kernel.run import KernelRun
from interlock.kernel.table import Table
from interlock.kernel.waiters import Profile
from interlock.model.outcome import State
from tests.simulation.planting import Bugs

BUGS = Bugs()

# Claims and what they exclude


@BUGS.plant("claims are released when an attempt ends and not when it is gone", KernelRun, "ended")
def _(original: Any) -> Any:
    return lambda self, report: original(self, report._replace(gone=True))


@BUGS.plant("a zombie loses its claims as soon as it is told to stop", KernelRun, "stop")
def _(original: Any) -> Any:
    def stop(self: Any, entry: Any, end: State, cause: str) -> None:
        original(self, entry, end, cause)
        if entry.attempt is not None:
            self._release(entry.attempt)

    return stop


@BUGS.plant("readers exclude each other", Table, "resolve")
def _(original: Any) -> Any:
    def resolve(self: Any, claims: Any) -> Any:
        needs, amounts = original(self, claims)
        return tuple((place, True) for place, _ in needs), amounts

    return resolve


@BUGS.plant("writers let readers in", Table, "resolve")
def _(original: Any) -> Any:
    def resolve(self: Any, claims: Any) -> Any:
        needs, amounts = original(self, claims)
        return tuple((place, writes and len(needs) < 2) for place, writes in needs), amounts

    return resolve


@BUGS.plant("only the first claim of a task is looked at", Table, "blocker")
def _(original: Any) -> Any:
    def blocker(self: Any, waiter: Any) -> Any:
        needs = waiter.needs
        waiter.needs = needs[:1]
        try:
            return original(self, waiter)
        finally:
            waiter.needs = needs

    return blocker


@BUGS.plant("a child may not touch what its parent holds", Attempt, "ancestry")
def _(original: Any) -> Any:
    return lambda self: ()


@BUGS.plant("siblings may touch the same files at once", Attempt, "ancestry")
def _(original: Any) -> Any:
    def ancestry(self: Any) -> Any:
        children = (self.entry.extras.children or {}).values()
        return (*original(self), *(c.attempt for c in children if c.attempt is not None))

    return ancestry


@BUGS.plant("a folder that is claimed does not know what is held below it", Folder, "_take_over")
def _(original: Any) -> Any:
    return lambda self, folder: None


@BUGS.plant("a folder that is claimed does not know who waits below it", Folder, "_join_lines")
def _(original: Any) -> Any:
    return lambda self: None


# What is held from outside


@BUGS.plant("what is held here already cannot be held from outside", Admission, "occupy")
def _(original: Any) -> Any:
    def occupy(self: Any, grant: Any, needs: Any, amounts: Any) -> None:
        free = tuple(need for need in needs if not any(p.writers for p in need[0].looks))
        original(self, grant, free, amounts)

    return occupy


@BUGS.plant("amounts cannot be held from outside", Admission, "occupy")
def _(original: Any) -> Any:
    return lambda self, grant, needs, amounts: original(self, grant, needs, ())


@BUGS.plant("claims that are vacated wake nobody", ExternalHolds, "vacate")
def _(original: Any) -> Any:
    def vacate(self: Any, stimulus: Any) -> None:
        admission = self._run.admission
        released, admission._released = admission._released, lambda point: None
        original(self, stimulus)
        admission._released = released

    return vacate


@BUGS.plant("one who is blocked from outside holds everybody back", Admission, "_zombie_blocks")
def _(original: Any) -> Any:
    def zombie_blocks(self: Any, waiter: Any) -> bool:
        zombies = self.zombies
        self.zombies = [grant for grant in zombies if isinstance(grant, Attempt)]
        blocks = bool(original(self, waiter))
        self.zombies = zombies
        return blocks

    return zombie_blocks


# Limits


@BUGS.plant("one more than the capacity fits", Meter, "fits")
def _(original: Any) -> Any:
    return lambda self, amount, kin: original(self, amount - 1 if amount > 1 else amount, kin)


@BUGS.plant("there is one slot too many", Kernel, "__init__")
def _(original: Any) -> Any:
    return lambda self, *, slots, **options: original(self, slots=slots + 1, **options)


@BUGS.plant("a capacity can only be raised", Controls, "set_capacity")
def _(original: Any) -> Any:
    def set_capacity(self: Any, stimulus: Any) -> None:
        if stimulus.capacity > self._run.table.meters[stimulus.resource].capacity:
            original(self, stimulus)

    return set_capacity


@BUGS.plant("a raised capacity wakes nobody", Controls, "set_capacity")
def _(original: Any) -> Any:
    def set_capacity(self: Any, stimulus: Any) -> None:
        self._run.table.meters[stimulus.resource].capacity = stimulus.capacity

    return set_capacity


@BUGS.plant("a rate gives back before its window has passed", Meter, "give_back")
def _(original: Any) -> Any:
    return lambda self, now: original(self, now + 0.5 * self.window)


@BUGS.plant("a rate that must be left alone is not", Controls, "hold_rate")
def _(original: Any) -> Any:
    return lambda self, stimulus: None


@BUGS.plant("a hold of a rate sets no timer", Controls, "hold_rate")
def _(original: Any) -> Any:
    def hold_rate(self: Any, stimulus: Any) -> None:
        original(self, stimulus)
        meter = self._run.table.meters[stimulus.resource]
        self._run.timers.drop(self._rate_timers.pop(meter, None))

    return hold_rate


@BUGS.plant("all of nothing is given away", Meter, "fits")
def _(original: Any) -> Any:
    def fits(self: Any, amount: int, lenders: Any) -> bool:
        return bool(original(self, amount, lenders)) or (self.capacity == self.used == amount == 0)

    return fits


# What ancestors lend


@BUGS.plant("an extension may borrow from its own attempt", Profile, "__init__")
def _(original: Any) -> Any:
    def init(self: Any, key: Any) -> None:
        original(self, key)
        self.lenders = self.kin

    return init


@BUGS.plant("a loan is not handed down", lending_module, "_handed_down")
def _(original: Any) -> Any:
    return lambda grant, borrower: borrower.loans
