"""Where claims meet: every name, folder and pattern that is claimed is a place.

A place has *points* at which holds are counted. To hold a place is to mark some points; to ask
for it is to look at some points. Two claims conflict exactly when one looks at a point that the
other marks and one of them writes:

    name      looks at and marks its own point
    folder    (a literal path with all that is below) looks at the own point of itself and of
              every folder above, and at its own *below*; it marks its own point and the *below*
              of every folder above
    file      (a literal path without a slash at its end) is to other literal paths like a folder
              at that path, and differs only towards patterns
    pattern   is kept at its literal prefix. It looks at the own points from there up, and tests
              what is held further down one by one; it marks its own point and every *below* from
              its prefix up. A folder below the prefix tests the patterns held above it.

Of the folders above only those count that have themselves been claimed, or had a pattern hung up
at them: nobody asks the others. So a literal claim costs as much as there are claimed folders above
it, whatever else is held, and patterns cost what is held near them. The tests between a pattern
and another place are exact, and remembered.

Those who wait stand in *lines* at points, so that overtaking can be counted (see `lines`): whoever
waits for a place stands in line where it would mark, and a start goes past those who stand in line
where it looks. Only patterns, which are kept at their prefix, stand and pass where it does.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.kernel.lines import Line
from interlock.kernel.shelves import Point
from interlock.model.patterns.overlap import alternatives_overlap
from interlock.model.patterns.pattern import Alternative
from interlock.model.patterns.segment import DEPTH

_REMEMBERED = 10_000
_ANY_SUFFIX = -1


class Place:
    """Something that can be claimed as a whole: this one by a name, the others as paths."""

    __slots__ = (
        "as_read",
        "as_written",
        "counted_at",
        "exact",
        "lines_at",
        "looks",
        "marks",
        "name",
        "overtakes_at",
        "own",
        "refs",
        "suffix_bits",
        "text",
        "users",
        "writers",
    )

    def __init__(self, name: str, own: Point) -> None:
        self.name = name
        self.own = own
        self.exact: Point | None = None
        """Counts only holds of just this spelling, if there are patterns to be tested for it."""
        points: tuple[Point, ...] = (own,)
        self.marks = self.looks = self.lines_at = self.overtakes_at = points
        self.counted_at: tuple[Place, ...] = (self,)
        """Where the unfinished claims on it are counted, the own count first."""
        self.suffix_bits = _ANY_SUFFIX
        """A bit for each kind of file that it may be, which rules most patterns out at once."""
        self.users = 0
        self.writers = 0
        self.refs = 0
        self.text = ""
        """How it was spelled first."""
        self.as_read: tuple[Place, bool] | None = None
        self.as_written: tuple[Place, bool] | None = None

    def need(self, writes: bool) -> tuple[Place, bool]:
        """As something to write, or to read: made once for all that need it."""
        need = self.as_written if writes else self.as_read
        if need is None:
            need = (self, writes)
            if writes:
                self.as_written = need
            else:
                self.as_read = need
        return need

    def unlink(self) -> None:
        """Nobody claims it: let go of what refers back to it."""
        self.counted_at = ()
        self.as_read = self.as_written = None


class Folder(Place):
    """A literal path with everything below it; also the node at which files and patterns hang."""

    __slots__ = (
        "above",
        "alternative_or_none",
        "below",
        "children",
        "claimed",
        "file",
        "held",
        "held_patterns",
        "over",
        "pattern_places",
    )

    def __init__(self, name: str, parent: Folder | None) -> None:
        super().__init__(name, Point())
        self.above: tuple[Folder, ...] = (*parent.above, parent) if parent else ()
        self.over: tuple[Folder, ...] = ()
        """Those of them that have been claimed: only they count."""
        self.claimed = False
        self.below: Point | None = None
        """Counts what is held below, once this folder is claimed and there is something below."""
        self.children: dict[str, Folder] | None = None
        self.file: File | None = None
        self.pattern_places: dict[Alternative, PatternPlace] | None = None
        """Patterns with this prefix."""
        self.held_patterns: dict[PatternPlace, int] | None = None
        """Those of them that are held now, and how often."""
        self.held: dict[Path, int] | None = None
        """Paths and patterns at or below this folder that are held; kept only for patterns."""
        self.alternative_or_none: Alternative | None = None
        if parent is not None:
            if parent.children is None:
                parent.children = {}
            if parent.claimed:
                parent.branch()
            parent.children[name] = self
            self.over = (*parent.over, parent) if parent.claimed else parent.over
            if self.over:
                self.wire()

    @property
    def path(self) -> tuple[str, ...]:
        """The names on the way to here."""
        return tuple(folder.name for folder in (*self.above[1:], self)) if self.above else ()

    @property
    def alternative(self) -> Alternative:
        """The folder as a pattern."""
        if self.alternative_or_none is None:
            self.alternative_or_none = Alternative(self.path, (DEPTH,))
        return self.alternative_or_none

    def claim(self) -> None:
        """Somebody claims it for the first time: from now on it counts for all that is below.

        That costs as much as there is below, once in the life of a folder.
        """
        self.claimed = True
        if self.children:
            self.branch()
            for folder in self._claimed_below():
                self._take_over(folder)
            self._join_lines()
            self._rewire()

    def branch(self) -> None:
        """There is something below: count it."""
        if self.below is None:
            self.below = Point(parks_at=self.own)
            self.below.branched = self.own.branched = True
            self.wire()

    def wire(self) -> None:
        """Find the points of all places here."""
        marks: tuple[Point, ...] = (self.own, *[each.counts_below() for each in self.over])
        looks: tuple[Point, ...] = (self.own, *[each.own for each in self.over])
        if self.below is not None:
            looks = (*looks, self.below)
        counted_at = (self, *self.over)
        for place in (self, self.file):
            if place is not None:
                place.marks = place.lines_at = marks
                place.looks = place.overtakes_at = looks
                place.counted_at = counted_at
        for pattern in (self.pattern_places or {}).values():
            pattern.wire()

    def counts_below(self) -> Point:
        """The point that counts what is held below; there is one when something is."""
        assert self.below is not None
        return self.below

    def _rewire(self) -> None:
        todo = [self]
        while todo:
            parent = todo.pop()
            over = (*parent.over, parent) if parent.claimed else parent.over
            for folder in (parent.children or {}).values():
                folder.over = over
                folder.wire()
                todo.append(folder)

    def _claimed_below(self) -> Iterator[Folder]:
        """The claimed folders below with no other claimed one in between: they know the rest."""
        todo = list((self.children or {}).values())
        while todo:
            folder = todo.pop()
            if folder.claimed:
                yield folder
            else:
                todo += (folder.children or {}).values()

    def _take_over(self, folder: Folder) -> None:
        """Count what a folder below counts."""
        below = self.counts_below()
        self.users += folder.users
        self.writers += folder.writers
        for point in (folder.own, folder.below):
            if point is not None:
                below.readers += point.readers
                below.writers += point.writers

    def _join_lines(self) -> None:
        """Let all who wait for something below stand in line here too, oldest first."""
        below = self.counts_below()
        for writes in (False, True):
            waiting = [
                waiter
                for folder in self._claimed_below()
                for line in _lines(folder, writes)
                for waiter in line.items
                if waiter.item is not None
            ]
            for waiter in sorted(waiting, key=lambda waiter: waiter.arrival):
                below.line(writes).join(waiter)
                if waiter.overtaken.is_due:
                    below.add_due(waiter, writes)


def _lines(folder: Folder, writes: bool) -> Iterator[Line]:
    for point in (folder.own, folder.below):
        line = None if point is None else point.writing if writes else point.reading
        if line is not None:
            yield line


class File(Place):
    """A literal path that may be a file: only who spells it out goes below it."""

    __slots__ = ("alternative", "folder")

    def __init__(self, folder: Folder, alternative: Alternative) -> None:
        super().__init__(folder.name, folder.own)
        self.folder = folder
        self.alternative = alternative
        self.suffix_bits = _suffix_bits(alternative)
        self.marks = self.lines_at = folder.marks
        self.looks = self.overtakes_at = folder.looks
        self.counted_at = folder.counted_at


class PatternPlace(Place):
    """A path pattern that is not just a subtree, kept at its literal prefix."""

    __slots__ = ("alternative", "folder", "verdicts")

    def __init__(self, alternative: Alternative, folder: Folder) -> None:
        super().__init__(folder.name, Point())
        self.exact = self.own
        self.alternative = alternative
        self.suffix_bits = _suffix_bits(alternative)
        self.folder = folder
        self.verdicts: dict[Path, bool] = {}
        if folder.pattern_places is None:
            folder.pattern_places = {}
        folder.pattern_places[alternative] = self
        folder.branch()
        self.wire()

    def wire(self) -> None:
        """Find its points. It stands in the lines of its prefix folder, and passes those.

        Whom it really conflicts with there is tested one by one.
        """
        folder = self.folder
        chain = (folder, *folder.over)
        self.marks = (self.own, *[each.counts_below() for each in chain])
        self.looks = tuple([each.own for each in chain])
        self.lines_at = folder.lines_at
        self.overtakes_at = folder.overtakes_at
        self.counted_at = folder.counted_at

    def meets(self, other: Path) -> bool:
        """Whether some path belongs to both: exact, and remembered."""
        if not self.suffix_bits & other.suffix_bits:
            return False
        if self.alternative.ends_apart(other.alternative):
            return False
        known = self.verdicts.get(other)
        if known is None:
            if len(self.verdicts) >= _REMEMBERED:
                self.verdicts.clear()
            known = alternatives_overlap(self.alternative, other.alternative) is not None
            self.verdicts[other] = known
        return known

    def held_nearby(self) -> Iterator[Path]:
        """Paths and patterns that are held where this pattern might match."""
        for folder in self.folder.above:
            yield from folder.held_patterns or ()
        # The latest first: whoever is found is watched, and that one is likely to stay longest.
        yield from reversed(self.folder.held or {})


def _suffix_bits(alternative: Alternative) -> int:
    """A bit for the suffix of the last name, if it has one and no folder is called like a file."""
    _, dot, suffix = alternative.tail.rpartition(".")
    if not (dot and suffix) or any("." in name for name in alternative.spelled):
        return _ANY_SUFFIX
    return int(1 << (7 * ord(suffix[0]) + ord(suffix[-1]) + len(suffix)) % 61)


Path = Folder | File | PatternPlace


def chain(place: Path) -> tuple[Folder, ...]:
    """The folder of a path, with all folders above."""
    folder = place if isinstance(place, Folder) else place.folder
    return (folder, *folder.above)


def places_conflict(a: Place, b: Place) -> bool:
    """Whether two places have something in common (that one of them must write is not asked)."""
    if a is b:
        return True
    if isinstance(a, PatternPlace):
        return isinstance(b, (Folder, File, PatternPlace)) and a.meets(b)
    if isinstance(b, PatternPlace):
        return isinstance(a, (Folder, File)) and b.meets(a)
    if isinstance(a, (Folder, File)) and isinstance(b, (Folder, File)):
        one = a.folder if isinstance(a, File) else a
        other = b.folder if isinstance(b, File) else b
        return one is other or one in other.above or other in one.above
    return False
