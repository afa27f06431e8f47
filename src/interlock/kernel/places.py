"""Places: what can be claimed, and how the kernel sees in a few steps what conflicts.

Every name, folder, file and pattern that is claimed is a *place*. A place has *points*, which count
how many holds there are for reading and for writing. To hold a place is to *mark* some points; to
ask for it is to *look* at some. Two claims conflict exactly when one looks at a point that the
other marks, and one of them writes; only for patterns there is a second test.

    name      marks its own point
              looks at its own point
    folder    (a literal path and all below it)
              marks its own point, and the *below* of each folder above
              looks at its own point, the own point of each folder above, and its own *below*
    file      (a literal path without a final slash)
              marks and looks as the folder at that path does
    pattern   (kept at its literal prefix)
              marks its own point, and the *below* of the prefix and of each folder above
              looks at the own point of the prefix and of each folder above, and tests what is
              held below the prefix one by one

Of the folders above, only those count that have been claimed themselves or are the prefix of a
pattern. No other claim looks at the rest, so they need no points.

Why it is right
---------------
*Two literal paths* overlap exactly when they are equal or one is above the other.
- Equal: both mark and look at the same own point.
- `a` above `b`: `a` marks its own point and `b` looks at the own points above it. The other way
  round, `b` marks the *below* of `a` and `a` looks at its *below*. So each of them sees the other,
  whichever was granted first.
- Otherwise: what `b` marks is its own point and the *below* of folders above it. `a` is neither
  `b` nor above it, so it looks at none of these; and the same with `a` and `b` exchanged.

*A pattern and a literal path at or above its prefix* always overlap: a path may be a folder, and
then means all below it. The marks and looks are those of a folder below the prefix, so the argument
is the same.

*A pattern and something below its prefix* (a path or another pattern) may or may not overlap. There
the points say nothing; the exact test of `model.patterns.overlap` decides, for each pair once. What
is below looks at the patterns held above it (`Folder.held_patterns`), the pattern at everything
held at or below its prefix (`Folder.held`) and at the patterns held above (`held_nearby`).

*A folder that is claimed for the first time* (`claim`) takes over the counts and lines of what is
below it. From then on the table above holds for it as if it had been claimed from the beginning.

*Lines* (see `lines`) follow the same pattern: a waiter stands in line where it would mark, and a
start overtakes those that stand where it looks. So two literal claims conflict exactly when one
stands in a line that the other passes. Patterns stand and pass where their prefix folder does; for
them `conflicts_at` tests each pair.

Costs
-----
| operation | cost |
|---|---|
| look at, mark or release a literal path | twice the claimed folders above it |
| look at, mark or release a name | 1 |
| claim a folder for the first time | everything below it, once |
| look at a literal path below patterns that are held | those patterns, a remembered test each |
| look at a pattern | everything held at or below its prefix, a remembered test each |
| the test of a pair that was not seen before | the product of the two patterns' lengths |

Known limits
------------
- Many patterns with one short prefix (`*.py`, `**/test_*.py` at the root) are tested against
  everything that is held. Suffixes rule most pairs out by one bit operation (`suffix_bits`), and a
  pattern remembers 10,000 verdicts before it forgets them all.
- The first claim on a folder high up, such as `**` with a million paths queued below it, walks
  through all of them. It is paid once, not for every claim.
- Places vanish when no unfinished task claims them any more, so a run that goes on for ever with
  ever new paths stays small; but a long queue keeps the places of all its tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlock.kernel.lines import WaitingLine
from interlock.kernel.shelves import Point
from interlock.model.patterns.overlap import alternatives_overlap
from interlock.model.patterns.pattern import Alternative
from interlock.model.patterns.segment import DEPTH

if TYPE_CHECKING:
    from interlock.kernel.waiters import Waiter

_REMEMBERED = 10_000
_ANY_SUFFIX = -1


class Place:
    """Something that can be claimed as a whole: this class by a name, the subclasses as paths."""

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
        """Counts holds of exactly this place, once there are patterns that test against it."""
        points: tuple[Point, ...] = (own,)
        self.marks = self.looks = self.lines_at = self.overtakes_at = points
        self.counted_at: tuple[Place, ...] = (self,)
        """The places at which unfinished claims on it are counted, itself first."""
        self.suffix_bits = _ANY_SUFFIX
        """A bit for the suffix it ends with. Without a common bit, two places cannot meet."""
        self.users = 0
        """Unfinished tasks that claim it or something below it; `writers` of them write."""
        self.writers = 0
        self.refs = 0
        """What keeps it in the table: claims, and files and patterns of a folder."""
        self.text = ""
        """The spelling under which it is in `Table.known_paths`."""
        self.as_read: tuple[Place, bool] | None = None
        self.as_written: tuple[Place, bool] | None = None

    def need(self, writes: bool) -> tuple[Place, bool]:
        """Return the pair (place, writes). All that need it share one tuple, to save memory."""
        need = self.as_written if writes else self.as_read
        if need is None:
            need = (self, writes)
            if writes:
                self.as_written = need
            else:
                self.as_read = need
        return need

    def unlink(self) -> None:
        """Drop the references back to itself: nothing claims it any more.

        Without cycles it is freed at once, and the garbage collector has less to walk.
        """
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
        """Those folders above that have been claimed. Only they have points that matter."""
        self.claimed = False
        self.below: Point | None = None
        """Counts what is held below. None until the folder is claimed and has something below."""
        self.children: dict[str, Folder] | None = None
        self.file: File | None = None
        self.pattern_places: dict[Alternative, PatternPlace] | None = None
        """Patterns with this prefix."""
        self.held_patterns: dict[PatternPlace, int] | None = None
        """Those of them that are held now, with how often."""
        self.held: dict[Path, int] | None = None
        """Paths and patterns held at or below this folder, while there are any patterns."""
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
        """The names from the root to here."""
        return tuple(folder.name for folder in (*self.above[1:], self)) if self.above else ()

    @property
    def alternative(self) -> Alternative:
        """The folder as a pattern: itself and everything below it."""
        if self.alternative_or_none is None:
            self.alternative_or_none = Alternative(self.path, (DEPTH,))
        return self.alternative_or_none

    def claim(self) -> None:
        """Take in the first claim on this folder: from now on it counts what is held below.

        That costs as much as there is below, once.
        """
        self.claimed = True
        if self.children:
            self.branch()
            # First the counts and lines of what is already there, then the wiring: `_join_lines`
            # reads the lines as they were before this folder had any.
            for folder in self._claimed_below():
                self._take_over(folder)
            self._join_lines()
            self._rewire()

    def branch(self) -> None:
        """Begin to count what is held below: there is something below now."""
        if self.below is None:
            self.below = Point(parks_at=self.own)
            self.below.branched = self.own.branched = True
            self.wire()

    def wire(self) -> None:
        """Work out the points of this folder, its file and its patterns (see the table above)."""
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
        """Return the point that counts what is held below. There is one when something is below."""
        assert self.below is not None
        return self.below

    def _rewire(self) -> None:
        """Work out the points of everything below again."""
        todo = [self]
        while todo:
            parent = todo.pop()
            over = (*parent.over, parent) if parent.claimed else parent.over
            for folder in (parent.children or {}).values():
                folder.over = over
                folder.wire()
                todo.append(folder)

    def _claimed_below(self) -> Iterator[Folder]:
        """The nearest claimed folders below. They have counted what is below them."""
        todo = list((self.children or {}).values())
        while todo:
            folder = todo.pop()
            if folder.claimed:
                yield folder
            else:
                todo += (folder.children or {}).values()

    def _take_over(self, folder: Folder) -> None:
        """Add what a folder below has counted."""
        below = self.counts_below()
        self.users += folder.users
        self.writers += folder.writers
        for point in (folder.own, folder.below):
            if point is not None:
                below.readers += point.readers
                below.writers += point.writers

    def _join_lines(self) -> None:
        """Put all waiters for something below into the lines here too, oldest first."""
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


def _lines(folder: Folder, writes: bool) -> Iterator[WaitingLine[Waiter]]:
    for point in (folder.own, folder.below):
        line = None if point is None else point.writing if writes else point.reading
        if line is not None:
            yield line


class File(Place):
    """A literal path that may be a file.

    To literal paths it is the folder at that path. To patterns it differs: `src/*/x` meets the
    folder `src/a/`, but not the file `src/a`.
    """

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
        """Work out its points. It stands in the lines of its prefix folder, and passes those.

        What it really conflicts with there is tested one by one (`conflicts_at`).
        """
        folder = self.folder
        chain = (folder, *folder.over)
        self.marks = (self.own, *[each.counts_below() for each in chain])
        self.looks = tuple([each.own for each in chain])
        self.lines_at = folder.lines_at
        self.overtakes_at = folder.overtakes_at
        self.counted_at = folder.counted_at

    def meets(self, other: Path) -> bool:
        """Whether some path belongs to both. Exact, and remembered."""
        # Two cheap tests that are right whenever they say no; most pairs end here.
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
        """Yield the paths and patterns held where this pattern might match."""
        for folder in self.folder.above:
            yield from folder.held_patterns or ()
        # The latest first: the holder that is found is watched, and the latest is likely to stay
        # longest, so the waiter is woken least often.
        yield from reversed(self.folder.held or {})


def _suffix_bits(alternative: Alternative) -> int:
    """Return a bit for the suffix of the last name.

    All bits if there is no suffix, or if a folder has a name like a file: then what is below it
    may end with any suffix.
    """
    _, dot, suffix = alternative.tail.rpartition(".")
    if not (dot and suffix) or any("." in name for name in alternative.spelled):
        return _ANY_SUFFIX
    return int(1 << (7 * ord(suffix[0]) + ord(suffix[-1]) + len(suffix)) % 61)


Path = Folder | File | PatternPlace


def chain(place: Path) -> tuple[Folder, ...]:
    """Return the folder of a path, with all folders above."""
    folder = place if isinstance(place, Folder) else place.folder
    return (folder, *folder.above)


def places_conflict(a: Place, b: Place) -> bool:
    """Whether two places have something in common. Whether one of them writes is not asked."""
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
