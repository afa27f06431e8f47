"""Circuit breakers: after failures in a row, no more attempts start for a while.

    closed ── `failures` in a row ──▶ open ── `cool_down` ──▶ half-open ── one succeeds ──▶ closed
                                       ▲                          │
                                       └────── it does not ───────┘

A breaker is a counted resource. Closed, it has more than enough; open, it gives out nothing more;
half-open, one more. So the kernel needs no rule for breakers, `why` explains them like any other
resource, and a child may use what its parent holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from interlock.errors import InvalidOption
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.model.claim import Claim
from interlock.model.limits import Breaker
from interlock.model.outcome import Outcome, State
from interlock.model.throttled import OpenBreaker
from interlock.runtime.kernel_driver import KernelDriver
from interlock.runtime.turn import Decision

ENOUGH = 10**9
"""The capacity of a closed breaker."""


class _Breaker:
    """A breaker and its state."""

    def __init__(self, rule: Breaker) -> None:
        self.rule = rule
        self.failures = 0
        self.last = ""
        self.fence = 0
        """Attempts with this token or an older one started before the last change of state.

        How they end says nothing about the resource now.
        """
        self.told: OpenBreaker | None = None
        """None: it is closed."""
        self.counts_reports = False
        """Whether failures are counted only by `report`. An attempt that succeeds closes it."""
        self.timer: asyncio.TimerHandle | None = None


def _is_open(breaker: _Breaker) -> bool:
    return breaker.told is not None and breaker.told.until is not None


class Breakers:
    """All breakers of a run."""

    def __init__(
        self,
        driver: KernelDriver,
        rules: Mapping[str, Breaker],
        claims_of: Callable[[str], tuple[Claim, ...] | None],
    ) -> None:
        self._driver = driver
        self._claims_of = claims_of
        """The claims of a task; None if it has no handle yet."""
        self._all = {name: _Breaker(rule) for name, rule in rules.items()}
        self._through: dict[int, dict[str, int]] = {}
        """By token of an attempt: the breakers it runs through, and since which grant."""
        self._latest = 0

    def __bool__(self) -> bool:
        return bool(self._all)

    def set(self, name: str, rule: Breaker, *, counts_reports: bool = False) -> None:
        """Change a breaker, or add one."""
        known = self._all.get(name)
        if known is None:
            # First the kernel, which raises if the name is in use: then nothing has changed here.
            self._driver.take_in(s.Define(name, ENOUGH))
            self._all[name] = _Breaker(rule)
        else:
            known.rule = rule
        self._all[name].counts_reports = counts_reports

    def report(self, name: str, failure: str | None) -> None:
        """Count a failure, or a success if it is None, of something that does not use it."""
        breaker = self._all.get(name)
        if breaker is None:
            raise InvalidOption(f"there is no breaker {name!r}; add it with set_limit()")
        if not _is_open(breaker):
            self._count_one(name, breaker, failure is None, failure or "")

    # -- endings of attempts ----------------------------------------------------------------

    def reported(self, reports: Iterable[s.Ended | s.Gone]) -> None:
        """Attempts have ended. To be called before the kernel hears it and starts the next ones."""
        for report in reports:
            if isinstance(report, s.Ended):
                error = report.error
                text = "" if error is None else f"{error.type}: {error.message}"
                self._count(report.token, report.status is not State.FAILED, text)

    def decided(self, stimulus: s.Stimulus, decisions: Sequence[Decision]) -> None:
        """The kernel has started attempts, or told some to stop."""
        stopped: dict[str, int] = {}
        for each in decisions:
            if isinstance(each, do.Start):
                self._latest = each.token
                self._enter(each.token, each.token, self._claims(stimulus, each.task_id))
            elif isinstance(each, do.Resume) and each.grant:
                self._latest = each.grant
                self._enter(each.token, each.grant, each.claims)
            elif isinstance(each, do.Stop):
                stopped[each.task_id] = each.token
            elif isinstance(each, (Outcome, do.Change)) and each.task_id in stopped:
                # A cancelled attempt says nothing about the resource. A timed-out one does.
                cancelled = isinstance(each, Outcome) and each.status is not State.TIMED_OUT
                succeeded = None if cancelled else False
                self._count(stopped.pop(each.task_id), succeeded, "it ran out of time")

    def _claims(self, stimulus: s.Stimulus, task_id: str) -> tuple[Claim, ...]:
        claims = self._claims_of(task_id)
        if claims is not None:
            return claims
        # It starts in the turn in which it is submitted, and has no handle yet.
        assert isinstance(stimulus, s.Submit)
        return next(task.claims for task in stimulus.tasks if task.id == task_id)

    def _enter(self, token: int, grant: int, claims: tuple[Claim, ...]) -> None:
        for claim in claims:
            if claim.resource in self._all and not claim.is_path:
                self._through.setdefault(token, {})[claim.resource] = grant

    def _count(self, token: int, succeeded: bool | None, text: str) -> None:
        """An attempt that holds breakers has ended; None: it says nothing about the resource."""
        for name, grant in self._through.pop(token, {}).items():
            breaker = self._all[name]
            # Attempts that started before the last change of state, and those that end while
            # the breaker is open, say nothing new about the resource.
            if grant <= breaker.fence or _is_open(breaker):
                continue
            if breaker.counts_reports and not succeeded:
                # What the failure means is reported. A probe that did not succeed is over.
                self._count_one(name, breaker, None, text)
            else:
                self._count_one(name, breaker, succeeded, text)

    def _count_one(self, name: str, breaker: _Breaker, succeeded: bool | None, text: str) -> None:
        if succeeded:
            breaker.failures = 0
            if breaker.told is not None:
                self._close(name, breaker)
            return
        if succeeded is False:
            breaker.failures += 1
            breaker.last = text
        if breaker.told is not None or breaker.failures >= breaker.rule.failures:
            self._open(name, breaker, self._driver.now() + breaker.rule.cool_down)

    # -- changes of state -------------------------------------------------------------------

    def _open(self, name: str, breaker: _Breaker, until: float) -> None:
        breaker.fence = self._latest
        breaker.timer = self._driver.later(
            until - self._driver.now(), partial(self._half_open, name, breaker)
        )
        self._tell(name, breaker, 0, until)

    def _half_open(self, name: str, breaker: _Breaker) -> None:
        breaker.fence = self._latest
        self._tell(name, breaker, 1, None)

    def _tell(self, name: str, breaker: _Breaker, more: int, until: float | None) -> None:
        now, failures = self._driver.now(), breaker.failures
        breaker.told = told = OpenBreaker(name, failures, breaker.last, now, until)
        self._driver.take_in(s.Throttle(name, more=more, because=told))

    def _close(self, name: str, breaker: _Breaker) -> None:
        breaker.told = None
        self._driver.take_in(s.Throttle(name))

    def take_up(self, name: str, told: OpenBreaker) -> None:
        """The breaker was open when the run was interrupted: open it for the rest of that time."""
        breaker = self._all.get(name)
        if breaker is not None:
            breaker.failures, breaker.last = told.failures, told.last
            self._open(name, breaker, max(told.until or 0.0, self._driver.now()))

    def close(self) -> None:
        """The run is over."""
        for breaker in self._all.values():
            if breaker.timer is not None:
                breaker.timer.cancel()
