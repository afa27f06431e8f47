"""The claim table: which places and meters there are, what is held, what blocks a waiter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interlock.errors import (
    ClaimOutsideWorkspace,
    ImpossibleClaim,
    InvalidOption,
    InvalidPattern,
    ProtectedPath,
    UnknownResource,
)
from interlock.kernel.meters import ALL, Meter
from interlock.kernel.places import File, Folder, Path, PatternPlace, Place, chain, places_conflict
from interlock.kernel.shelves import Point
from interlock.kernel.waiters import Amounts, Grant, Needs, Waiter
from interlock.model.claim import Claim, Mode
from interlock.model.limits import Rate
from interlock.model.patterns.overlap import any_path, overlap
from interlock.model.patterns.pattern import Alternative, Pattern, parse

SLOTS = "slots"

Blocker = tuple[Point, bool, bool]
"""The point to watch, whether as a writer, and whether a due waiter blocks and not its counts."""


class Table:
    """Places and meters by name. `resolve` turns claims into them; `blocker` tests them."""

    def __init__(
        self,
        slots: int,
        capacities: Mapping[str, int],
        rates: Mapping[str, Rate],
        protected: Iterable[str],
        fold_case: bool,
    ) -> None:
        self.fold_case = fold_case
        self.now = 0.0
        self.grants: dict[Grant, None] = {}
        """All that is held, in the order in which it was granted."""
        self.names: dict[str, Place] = {}
        self.root = Folder("", None)
        self.pattern_places: dict[Alternative, PatternPlace] = {}
        self.known_paths: dict[str, Place] = {}
        """Places on paths by the spelling they were first claimed with: spares parsing it again."""
        self.patterns_held = 0
        self.due_count = 0
        """How many waiters are due. While there are none, lines are not looked at."""
        self.slots = Meter(SLOTS, check_capacity(SLOTS, slots, 1))
        self.meters: dict[str, Meter] = {SLOTS: self.slots}
        for name, amount in capacities.items():
            if name == SLOTS:
                raise InvalidOption("slots have no capacity here; set `max_parallel` instead")
            self.meters[name] = Meter(name, check_capacity(name, amount, 0))
        for name, rate in rates.items():
            if not isinstance(rate, Rate):
                raise InvalidOption(f"the rate {name!r} is {rate!r}; write Rate('60/min')")
            for meter in _rate_meters(name, rate):
                if meter.name in self.meters:
                    raise InvalidOption(f"{meter.name!r} has a capacity and a rate; keep one")
                self.meters[meter.name] = meter
        listed = (protected,) if isinstance(protected, str) else protected
        self.protected: list[Pattern] = [parse(text, fold_case=fold_case) for text in listed]

    # -- claims to places and meters ------------------------------------------------------

    def check(self, task_id: str, claims: Iterable[Claim], as_it_is: bool = True) -> None:
        """Raise for a claim that can never be granted, with `as_it_is` at the present capacities.

        It changes nothing.
        """
        totals: dict[str, int] = {}
        for claim in claims:
            if claim.is_path:
                if not self.protected and claim.resource in self.known_paths:
                    continue
                pattern = self.read(task_id, claim)
                if self.protected and claim.mode is Mode.WRITE:
                    self._check_protected(task_id, claim, pattern)
                continue
            meter = self.meters.get(claim.resource)
            if meter is self.slots:
                raise InvalidOption(
                    f"task {task_id!r} claims {claim}; every attempt takes one slot anyway"
                )
            if meter is None:
                if claim.amount != 1:
                    raise UnknownResource(
                        f"task {task_id!r} claims {claim}, but {claim.resource!r} has no capacity; "
                        f"give it one of at least {claim.amount}, or claim it without an amount"
                    )
                continue
            if claim.mode is Mode.EXCLUSIVE and meter.window is not None:
                raise InvalidOption(
                    f"task {task_id!r} claims {claim}, but {claim.resource!r} is a rate; "
                    "a rate is taken in amounts"
                )
            totals[meter.name] = totals.get(meter.name, 0) + claim.amount
            if totals[meter.name] > meter.most and as_it_is:
                what = "capacity" if meter.window is None else "quota"
                raise ImpossibleClaim(
                    f"task {task_id!r} claims {totals[meter.name]} of {meter.name!r}, which has a "
                    f"{what} of {meter.most}: it could never get that much"
                )

    def read(self, task_id: str, claim: Claim) -> Pattern:
        """Parse a claim on paths; raise if no path can match it."""
        try:
            pattern = parse(claim.resource, fold_case=self.fold_case)
            for each in pattern.alternatives:
                if not (each.is_plain or each.is_subtree) and any_path(each.rest) is None:
                    raise InvalidPattern(claim.resource, 0, "no path can match it")
            return pattern
        except InvalidPattern as error:
            raise error.in_task(task_id) from None
        except ClaimOutsideWorkspace as error:
            raise ClaimOutsideWorkspace(f"task {task_id!r}: {error}") from None

    def _check_protected(self, task_id: str, claim: Claim, pattern: Pattern) -> None:
        for protected in self.protected:
            witness = overlap(pattern, protected)
            if witness is not None:
                raise ProtectedPath(
                    f"task {task_id!r} claims {claim.resource!r} for writing, which takes in "
                    f"{witness!r}; {protected.text!r} is protected: claim less, or only read it"
                )

    def resolve(self, claims: tuple[Claim, ...]) -> tuple[Needs, Amounts]:
        """Return the places and amounts of checked claims; create the places that are new."""
        simple = self._resolve_known(claims)
        if simple is not None:
            return simple, ()
        needs: dict[Place, bool] = {}
        amounts: dict[Meter, int] = {}
        for claim in claims:
            if claim.is_path:
                writes = claim.mode is Mode.WRITE
                alternatives = parse(claim.resource, fold_case=self.fold_case).alternatives
                for alternative in alternatives:
                    place = self._place(alternative)
                    needs[place] = needs.get(place, False) or writes
                    if len(alternatives) == 1 and not place.text:
                        place.text = claim.resource
                        self.known_paths[claim.resource] = place
                continue
            meter = self.meters.get(claim.resource)
            if meter is None:
                named = self.names.get(claim.resource)
                if named is None:
                    named = self.names[claim.resource] = Place(claim.resource, Point())
                needs[named] = needs.get(named, False) or claim.mode is Mode.EXCLUSIVE
            elif claim.mode is Mode.EXCLUSIVE:
                amounts[meter] = ALL
            elif amounts.get(meter) != ALL:
                amounts[meter] = amounts.get(meter, 0) + claim.amount
        for place in needs:
            place.refs += 1
        return tuple([place.need(w) for place, w in needs.items()]), tuple(amounts.items())

    def _resolve_known(self, claims: tuple[Claim, ...]) -> Needs | None:
        """Return the places of claims whose spellings are all known; None if one is not.

        Only a shortcut, for the usual case: many tasks with the same few paths.
        """
        known = self.known_paths
        found = []
        for claim in claims:
            place = known.get(claim.resource) if claim.is_path else None
            if place is None:
                return None
            writes = claim.mode is Mode.WRITE
            need = place.as_written if writes else place.as_read
            found.append(need or place.need(writes))
        if len(found) > 1 and len({place for place, _ in found}) < len(found):
            return None
        for place, _ in found:
            place.refs += 1
        return tuple(found)

    def _place(self, alternative: Alternative) -> Place:
        folder = self.root
        for name in alternative.prefix:
            child = folder.children.get(name) if folder.children else None
            folder = child or Folder(name, folder)
        if not folder.claimed:
            folder.claim()
        if alternative.is_subtree:
            return folder
        if alternative.is_plain:
            if folder.file is None:
                folder.file = File(folder, alternative)
                folder.refs += 1
            return folder.file
        pattern = self.pattern_places.get(alternative)
        if pattern is None:
            if not self.pattern_places:
                self._track_all(1)
            pattern = self.pattern_places[alternative] = PatternPlace(alternative, folder)
            folder.refs += 1
        return pattern

    def has_pattern(self, needs: Needs) -> bool:
        """Whether there are patterns among these places."""
        return any(isinstance(place, PatternPlace) for place, _ in needs)

    def forget(self, needs: Needs) -> None:
        """A task that claimed these places is over: drop those that no other task claims."""
        for place, _ in needs:
            place.refs -= 1
            if not place.refs:
                self._drop(place)

    def _drop(self, place: Place) -> None:
        self.known_paths.pop(place.text, None)
        place.text = ""
        if isinstance(place, Folder):
            folder = place
        elif isinstance(place, File):
            folder = place.folder
            folder.file = None
            folder.refs -= 1
            place.unlink()
        elif isinstance(place, PatternPlace):
            folder = place.folder
            assert folder.pattern_places is not None
            del self.pattern_places[place.alternative], folder.pattern_places[place.alternative]
            if not self.pattern_places:
                self._track_all(-1)
            folder.refs -= 1
            place.unlink()
        else:
            del self.names[place.name]
            place.unlink()
            return
        while folder.above and not folder.refs and not folder.children:
            self.known_paths.pop(folder.text, None)
            parent = folder.above[-1]
            assert parent.children is not None
            del parent.children[folder.name]
            folder.unlink()
            folder = parent

    # -- holds --------------------------------------------------------------------------

    def mark(self, needs: Iterable[tuple[Place, bool]], by: int) -> None:
        """Count holds at their points (by = 1), or take them off again (by = -1)."""
        for place, writes in needs:
            if writes:
                for point in place.marks:
                    point.writers += by
            else:
                for point in place.marks:
                    point.readers += by
            if self.pattern_places:
                self._track(place, writes, by)

    def _track(self, place: Place, writes: bool, by: int) -> None:
        """Keep what is held where patterns find it. Done only while there are patterns."""
        if isinstance(place, PatternPlace):
            self._use_pattern(place, by)
        elif isinstance(place, (Folder, File)):
            if place.exact is None:
                place.exact = Point()
            if writes:
                place.exact.writers += by
            else:
                place.exact.readers += by
        else:
            return
        for folder in chain(place):
            if folder.held is None:
                folder.held = {}
            count = folder.held.get(place, 0) + by
            if count:
                folder.held[place] = count
            else:
                del folder.held[place]

    def _use_pattern(self, pattern: PatternPlace, by: int) -> None:
        """Keep held patterns at their prefix, where paths below find them."""
        if pattern.folder.held_patterns is None:
            pattern.folder.held_patterns = {}
        patterns = pattern.folder.held_patterns
        patterns[pattern] = patterns.get(pattern, 0) + by
        if not patterns[pattern]:
            del patterns[pattern]
        self.patterns_held += by

    def _track_all(self, by: int) -> None:
        """Track everything that is held: the first pattern has come, or the last one has gone."""
        for grant in self.grants:
            for place, writes in grant.places:
                self._track(place, writes, by)

    def blocker(self, waiter: Waiter) -> Blocker | None:
        """Return one thing that blocks a waiter; None if nothing does.

        The hot path of the kernel: one call per look at a waiter.
        """
        kin = waiter.profile.kin
        for place, writes in waiter.needs:
            for point in place.looks:
                if (point.writers or (writes and point.readers)) and (
                    not kin or point.excludes(writes, kin)
                ):
                    return point, writes, False
            if self.pattern_places and isinstance(place, (Folder, File, PatternPlace)):
                held = self._pattern_blocker(place, writes, kin)
                if held is not None:
                    return held, writes, False
            if self.due_count:
                for point in place.overtakes_at:
                    if point.due_count and self._would_overtake_due(point, place, writes, waiter):
                        return point.parks_at or point, writes, True
        return None

    def _pattern_blocker(self, place: Path, writes: bool, kin: tuple[Grant, ...]) -> Point | None:
        """Return the point of a held pattern that meets this place, or the other way round."""
        if not isinstance(place, PatternPlace):
            if not self.patterns_held:
                return None
            node = place.folder if isinstance(place, File) else place
            for folder in node.over:
                for pattern in folder.held_patterns or ():
                    if (
                        pattern.suffix_bits & place.suffix_bits
                        and pattern.meets(place)
                        and pattern.own.excludes(writes, kin)
                    ):
                        return pattern.own
        else:
            for other in place.held_nearby():
                exact = other.exact
                if (
                    exact is not None
                    and place.suffix_bits & other.suffix_bits
                    and place.meets(other)
                    and exact.excludes(writes, kin)
                ):
                    return exact
        return None

    def _would_overtake_due(self, point: Point, place: Place, writes: bool, waiter: Waiter) -> bool:
        """Whether a start would overtake a due waiter."""
        if waiter.profile.exempt:
            return False
        return any(
            ahead.turn < waiter.turn
            and not self._ends_in_time(ahead, waiter)
            and conflicts_at(point, ahead, place, writes)
            for ahead in point.due_ahead(writes)
        )

    def _ends_in_time(self, ahead: Waiter, waiter: Waiter) -> bool:
        """Whether estimates say that a waiter will end before `ahead` could start anyway.

        Estimates are guesses, so even then `ahead` is not passed for ever.
        """
        estimate = waiter.estimate
        return (
            estimate is not None
            and ahead.overtaken.times < 4 * self.slots.capacity
            and self.now + estimate <= self.clears_at(ahead)
        )

    def clears_at(self, waiter: Waiter) -> float:
        """Return when all that blocks a waiter is expected to be gone; -inf if that is unknown."""
        latest = float("-inf")
        for grant in self.grants:
            if grant_blocks(grant, waiter):
                if grant.ends_at is None:
                    return float("-inf")
                # A holder that has exceeded its estimate is expected to take as long again.
                overdue = self.now >= grant.ends_at
                latest = max(latest, 2 * self.now - grant.since if overdue else grant.ends_at)
        return latest


def grant_blocks(grant: Grant, waiter: Waiter) -> bool:
    """Whether something that a grant holds conflicts with what a waiter needs."""
    if grant in waiter.profile.kin:
        return False
    return any(
        (held_for_writing or writes) and places_conflict(held, place)
        for held, held_for_writing in grant.places
        for place, writes in waiter.needs
    )


def conflicts_at(point: Point, waiter: Waiter, place: Place, writes: bool) -> bool:
    """Whether a waiter in line at a point conflicts with a claim that passes it.

    Lines are kept by folder; whether patterns really meet is tested only here.
    """
    pattern = isinstance(place, PatternPlace)
    for other, theirs in waiter.needs:
        if (writes or theirs) and point in other.lines_at:
            if (
                pattern or isinstance(other, PatternPlace)
            ) and not place.suffix_bits & other.suffix_bits:
                continue
            if places_conflict(place, other):
                return True
    return False


def check_capacity(name: str, amount: int, least: int) -> int:
    """Return a capacity, or raise if it is not a valid one."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidOption(f"a resource needs a name, not {name!r}")
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < least:
        what = "max_parallel" if name == SLOTS else f"the capacity of {name!r}"
        raise InvalidOption(f"{what} is {amount!r}; it must be a whole number, {least} or more")
    return amount


def _rate_meters(name: str, rate: Rate) -> Iterable[Meter]:
    if rate.requests is not None:
        yield Meter(name, rate.requests.amount, rate.requests.window)
    if rate.tokens is not None:
        yield Meter(f"{name}.tokens", rate.tokens.amount, rate.tokens.window)
