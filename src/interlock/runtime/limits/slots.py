"""How many slots there are now: `max_parallel`, reduced by the load of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from interlock.kernel import stimuli as s
from interlock.kernel.kernel import Alive, Kernel
from interlock.model.load import Auto, Gate, Load
from interlock.model.throttled import ClosedGate, LoadedMachine
from interlock.model.why import Explanation
from interlock.runtime.kernel_driver import KernelDriver
from interlock.runtime.machine import LoadMeter

_EVERY = 0.25
"""Seconds between two measurements of the load. This is polling: no system reports its load."""

Throttled = ClosedGate | LoadedMachine


class SlotControl:
    """Measures the load before a task may start, and while tasks wait for the load to fall.

    While the load reduces nothing, or no task waits, nothing is measured.
    """

    def __init__(
        self,
        driver: KernelDriver,
        kernel: Kernel,
        meter: Callable[[], LoadMeter],
        auto: Auto | None,
        gate: Gate | None,
    ) -> None:
        self._driver = driver
        self._kernel = kernel
        self._make_meter = meter
        self._meter: LoadMeter | None = None
        """Made at once if it is needed: CPU use is measured from then on."""
        self._auto = auto
        self._gate = gate
        self._level = auto.least if auto is not None else 0
        self._load = Load(None, 0.0)
        self._told: tuple[int, Throttled] | None = None
        """The number of slots that the kernel was told, and why."""
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.is_watching = auto is not None or gate is not None
        if self.is_watching:
            self._meter = meter()

    def look(self) -> None:
        """Measure, at most every quarter of a second, and tell the kernel the number of slots."""
        now = self._driver.now()
        # Every stimulus asks for this. Measuring each time would cost more than deciding.
        if now < self._due:
            return
        self._due = now + _EVERY
        if self._meter is None:
            self._meter = self._make_meter()
        self._load = load = self._meter.read()
        if self._auto is not None:
            self._level = self._auto.slots(self._level, len(self._alive()), load)
        self._tell(now)

    def _tell(self, now: float) -> None:
        told, self._told = self._told, self._found(now)
        if self._told is None:
            if told is not None:
                self._driver.take_in(s.Throttle("slots"))
            return
        level, because = self._told
        if told is not None and told[0] == level and type(told[1]) is type(because):
            self._told = told  # only the figures have changed, which is not worth an event
        else:
            self._driver.take_in(s.Throttle("slots", level, because=because))

    def _found(self, now: float) -> tuple[int, Throttled] | None:
        """How many slots the load allows, and why; None if it does not reduce them."""
        found: tuple[int, Throttled] | None = None
        auto, gate, load, level = self._auto, self._gate, self._load, self._level
        if auto is not None and level < auto.most:
            bounds = auto.least, auto.most
            found = level, LoadedMachine(level, *bounds, load, auto.cpu, auto.memory, now)
        if gate is not None and not gate.lets_through(load):
            # One may always run, or the load might never fall. Attempts that will not stop are not
            # counted: they would keep this one out for ever.
            one = 1 + sum(each.zombie for each in self._alive())
            # The stricter one explains the wait.
            if found is None or one <= level:
                told = self._told[1] if self._told is not None else None
                since = told.since if isinstance(told, ClosedGate) else now
                found = one, ClosedGate(load, gate.cpu, gate.memory, since)
        return found

    def _alive(self) -> list[Alive]:
        return [each for each in self._kernel.alive() if each.holds_slot]

    # -- while tasks wait -------------------------------------------------------------------

    def keep_looking(self) -> None:
        """Measure again soon, if a task waits because of the load."""
        # If nothing waits, the next submission looks anyway: no timer keeps an idle process awake.
        if self._told is not None and self._timer is None and self._kernel.anyone_waits():
            wait = max(0.0, self._due - self._driver.now())
            self._timer = self._driver.later(wait, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self.look()
        self.keep_looking()

    def close(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()

    # -- changing and explaining ------------------------------------------------------------

    def resize(self, slots: int | Auto) -> None:
        """Change how many slots there can be."""
        if isinstance(slots, Auto):
            self._auto, self._level = slots, max(slots.least, min(len(self._alive()), slots.most))
            self._again()  # first, so that no more tasks start than the load allows
            self._driver.take_in(s.SetCapacity("slots", slots.most))
        else:
            self._driver.take_in(s.SetCapacity("slots", slots))
            self._auto = None
            self._again()

    def set_gate(self, gate: Gate | None) -> None:
        """Change what the gate lets through."""
        self._gate = gate
        self._again()

    def _again(self) -> None:
        self.is_watching = self._auto is not None or self._gate is not None
        if self.is_watching:
            self.look()
        self._tell(self._driver.now())

    def refreshed(self, found: Explanation) -> Explanation:
        """The same explanation with the figures of the last measurement."""
        if self._told is None:
            return found
        reasons = tuple(
            replace(each, load=self._load) if isinstance(each, Throttled) else each
            for each in found.reasons
        )
        return replace(found, reasons=reasons)
