"""The rates of a run, closed for a while or changed while it goes on."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.errors import InvalidOption, UnknownResource
from interlock.kernel import stimuli as s
from interlock.model.limits import Rate
from interlock.runtime.kernel_driver import KernelDriver
from interlock.runtime.limits.options import quotas


class Rates:
    """Rates by name. To the kernel each is one or two quotas: requests and tokens."""

    def __init__(
        self,
        driver: KernelDriver,
        rates: Mapping[str, Rate],
    ) -> None:
        self._driver = driver
        self._rates = dict(rates)

    def named(self, name: str) -> Rate:
        """The rate of that name."""
        rate = self._rates.get(name)
        if rate is None:
            known = ", ".join(self._rates) or "none"
            raise UnknownResource(f"{name!r} is not a rate of this run; there are: {known}")
        return rate

    def windows(self) -> dict[str, float]:
        """The windows of all quotas in seconds, by the names that the kernel uses."""
        return {
            quota: window
            for name, rate in self._rates.items()
            for quota, (_, window) in quotas(name, rate).items()
        }

    def hold(self, name: str, duration: float) -> None:
        """Close a rate for some time: nothing can be taken from it."""
        for quota in quotas(name, self.named(name)):
            self._driver.take_in(s.HoldRate(quota, self._driver.now() + duration))

    def set(self, name: str, rate: Rate) -> None:
        """Change a rate, or add one."""
        changed = quotas(name, rate)
        before = quotas(name, self._rates[name]) if name in self._rates else ()
        # A quota cannot be taken away: tasks may wait for it, and would wait for ever.
        for quota in before:
            if quota not in changed:
                raise InvalidOption(
                    f"{quota!r} has a quota, which cannot be removed; give it one as well"
                )
        for quota, (amount, window) in changed.items():
            self._driver.take_in(s.SetRate(quota, amount, window))
        self._rates[name] = rate
