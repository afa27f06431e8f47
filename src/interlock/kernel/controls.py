"""What people and programs do to a run from outside: cancel, pause, prioritize, change limits."""

from __future__ import annotations

import math
from functools import partial

from interlock.errors import InvalidOption, UnknownResource
from interlock.kernel import stimuli as s
from interlock.kernel.meters import Meter
from interlock.kernel.run import KernelRun
from interlock.kernel.table import check_capacity
from interlock.kernel.timers import Timer
from interlock.model.limits import Quota
from interlock.model.outcome import State


class Controls:
    """The commands to a run."""

    def __init__(self, run: KernelRun) -> None:
        self._run = run
        self.rates = [meter for meter in run.table.meters.values() if meter.window is not None]
        self._rate_timers: dict[Meter, Timer] = {}

    def cancel(self, stimulus: s.Cancel) -> None:
        """End one task. Does nothing if it has ended."""
        if stimulus.task_id not in self._run.ends:
            self._run.stop(self._run.unfinished(stimulus.task_id), State.CANCELLED, stimulus.reason)

    def cancel_group(self, stimulus: s.CancelGroup) -> None:
        """End the unfinished tasks of a group, or all of them."""
        if not isinstance(stimulus.group, str):
            raise InvalidOption(f"the name of a group is text, not {stimulus.group!r}")
        if not stimulus.group:
            members = list(self._run.entries.values())
        else:
            group = self._run.groups.get(stimulus.group)
            members = list(group.members.values()) if group is not None else []
        for entry in members:
            self._run.stop(entry, State.CANCELLED, stimulus.reason)

    def set_capacity(self, stimulus: s.SetCapacity) -> None:
        """Change how much there is of a counted resource."""
        meter = self._run.table.meters.get(stimulus.resource)
        if meter is None or meter.window is not None:
            counted = [name for name, each in self._run.table.meters.items() if not each.window]
            raise UnknownResource(
                f"{stimulus.resource!r} has no capacity to change; these have: {', '.join(counted)}"
            )
        meter.resize(check_capacity(stimulus.resource, stimulus.capacity, 0))
        self._run.admission.reopen(meter)

    def throttle(self, stimulus: s.Throttle) -> None:
        """Give out less of a counted resource, or all of it again."""
        meter = self._run.table.meters.get(stimulus.resource)
        if meter is None or meter.window is not None:
            raise UnknownResource(f"{stimulus.resource!r} has no capacity to throttle")
        for amount in (stimulus.level, stimulus.more):
            if amount is not None:
                check_capacity(stimulus.resource, amount, 0)
        if stimulus.more is not None and meter is self._run.table.slots:
            raise InvalidOption("slots cannot be rationed; throttle them to a level")
        meter.throttle(stimulus.level, stimulus.more, stimulus.because)
        self._run.admission.throttle(meter)

    def define(self, stimulus: s.Define) -> None:
        """Add a counted resource."""
        amount = check_capacity(stimulus.resource, stimulus.capacity, 0)
        self._add(Meter(stimulus.resource, amount))

    def set_rate(self, stimulus: s.SetRate) -> None:
        """Change what a rate gives out, or add the rate. What has left the window stays out."""
        quota = Quota(stimulus.amount, stimulus.window)
        meter = self._run.table.meters.get(stimulus.resource)
        if meter is None:
            meter = Meter(stimulus.resource, quota.amount, quota.window)
            self._add(meter)
            self.rates.append(meter)
            return
        if meter.window is None:
            raise InvalidOption(f"{stimulus.resource!r} has a capacity, so it cannot have a rate")
        meter.window = quota.window
        meter.resize(quota.amount)
        self._rate_over(meter, self._run.now)

    def _add(self, meter: Meter) -> None:
        table = self._run.table
        if meter.name in table.meters:
            raise InvalidOption(f"there is already a limit on {meter.name!r}")
        if meter.name in table.names:
            raise InvalidOption(
                f"{meter.name!r} is in use without a limit; give it one when it is not in use"
            )
        table.meters[meter.name] = meter

    def hold_rate(self, stimulus: s.HoldRate) -> None:
        """Close a rate until a time."""
        meter = self._run.table.meters.get(stimulus.resource)
        if meter is None or meter.window is None:
            raise UnknownResource(f"{stimulus.resource!r} is not a rate of this run")
        if not math.isfinite(stimulus.until):
            raise InvalidOption(f"a rate cannot be held until {stimulus.until!r}")
        if stimulus.until > max(self._run.now, meter.closed_until):
            if not meter.closed_until:
                meter.closed_since = self._run.now
            meter.closed_until = stimulus.until
            self._rate_over(meter, self._run.now)

    def watch_rates(self) -> None:
        """Set timers for when what rates gave out comes back."""
        for meter in self.rates:
            if meter.spent and meter not in self._rate_timers:
                self._rate_over(meter, self._run.now)

    def _rate_over(self, meter: Meter, now: float) -> None:
        """Take back what has left the window, and set a timer for the next time."""
        self._run.timers.drop(self._rate_timers.pop(meter, None))
        again = meter.give_back(now)
        if again is not None:
            self._rate_timers[meter] = self._run.timers.set(again, partial(self._rate_over, meter))
        self._run.admission.reopen(meter)

    def pause(self, stimulus: s.Pause) -> None:
        """Start nothing, or not this task."""
        if stimulus.task_id is None:
            if self._run.paused_since is None:
                self._run.paused_since = self._run.now
            self._run.admission.paused = True
            return
        entry = self._run.unfinished(stimulus.task_id)
        if entry.extras.paused_since is None:
            entry.own.paused_since = self._run.now
        # It leaves the queue, so that it neither is overtaken nor holds anything back.
        if entry.waiter is not None:
            self._run.admission.withdraw(entry.waiter)

    def resume(self, stimulus: s.Unpause) -> None:
        """End a pause, of one task or of everything."""
        if stimulus.task_id is None:
            self._run.paused_since = None
            self._run.admission.resume()
            return
        entry = self._run.unfinished(stimulus.task_id)
        entry.own.paused_since = None
        if entry.state is State.WAITING and entry.waiter is None:
            self._run.enqueue(entry)

    def prioritize(self, stimulus: s.Prioritize) -> None:
        """Give an unfinished task another priority."""
        if isinstance(stimulus.priority, bool) or not isinstance(stimulus.priority, int):
            raise InvalidOption(f"a priority is a whole number, not {stimulus.priority!r}")
        entry = self._run.unfinished(stimulus.task_id)
        entry.own.priority = stimulus.priority
        if entry.waiter is not None:
            self._run.admission.prioritize(entry.waiter, stimulus.priority)

    def drain(self, stimulus: s.Drain) -> None:
        """Start nothing new from now on."""
        if self._run.draining_since is None:
            self._run.draining_since = self._run.now
        self._run.admission.draining = True

    def shutdown(self, stimulus: s.Shutdown) -> None:
        """Cancel every unfinished task."""
        self.drain(s.Drain())
        for entry in list(self._run.entries.values()):
            self._run.stop(entry, State.CANCELLED, "the run was shut down")
