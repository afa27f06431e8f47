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

So a literal claim costs its depth, whatever else is held, and patterns cost what is held near
them. The tests between a pattern and another place are exact, and remembered.

Those who wait stand in *lines*, so that overtaking can be counted (see `lines`): whoever waits for
a place stands *here* in its line, and *beneath* in those of the folders above. A start at a place
goes past those who stand here in it and in the folders above, and past those beneath it.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.kernel.lines import Lines
from interlock.kernel.shelves import Point
from interlock.model.overlap import alternatives_overlap
from interlock.model.pattern import Alternative
from interlock.model.segment import DEPTH

_REMEMBERED = 10_000


class Place:
    """Something that can be claimed as a whole: this one by a name, the others as paths."""

    __slots__ = (
        "as_needed",
        "exact",
        "looks",
        "marks",
        "name",
        "own",
        "passes",
        "queues",
        "refs",
        "text",
        "users",
        "writers",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.as_needed = ((self, False), (self, True))
        """This place as something to read, and to write: made once for all that need it."""
        self.own = self.exact = Point()
        """`exact` counts only holds of just this spelling: what patterns are tested against."""
        here = Lines(self.own)
        self.marks: tuple[Point, ...] = (self.own,)
        self.looks: tuple[Point, ...] = (self.own,)
        self.queues: tuple[Lines, ...] = (here,)
        """Where those who wait for this place stand in line; `here` comes first."""
        self.passes: tuple[Lines, ...] = (here,)
        """Whom a start at this place goes past."""
        self.refs = 0
        self.text = ""
        """How it was spelled first."""
        self.users = 0
        self.writers = 0

    def crowd(self, write: bool) -> int:
        """How many unfinished claims conflict with a claim here, at least."""
        return self.users if write else self.writers

    def count(self, write: bool, by: int) -> None:
        """Note that an unfinished task claims this place (by = 1), or no longer (by = -1)."""
        self.users += by
        if write:
            self.writers += by


class Folder(Place):
    """A literal path with everything below it; also the node at which files and patterns hang."""

    __slots__ = (
        "above",
        "alternative_or_none",
        "below",
        "beneath",
        "children",
        "file",
        "held",
        "patterns",
        "under",
        "writers_under",
    )

    def __init__(self, name: str, parent: Folder | None) -> None:
        super().__init__(name)
        self.above: tuple[Folder, ...] = (*parent.above, parent) if parent else ()
        self.alternative_or_none: Alternative | None = None
        self.file: File | None = None
        self.held: dict[Path, int] = {}
        """Paths and patterns at or below this folder that are held; kept only for patterns."""
        self.children: dict[str, Folder] = {}
        self.patterns: dict[Glob, int] | None = None
        """Patterns with this prefix that are held now, and how often."""
        own, here = self.own, self.queues[0]
        self.exact = Point()
        self.below = below = Point()
        self.beneath = beneath = Lines(own)
        own.lines = here
        here.branches = self.children
        if parent is None:
            self.marks = (own, self.exact)
            self.looks, self.passes = (own, below), (here, beneath)
        else:
            # What the parent has, but for the parts that are about itself only.
            self.marks = (own, self.exact, *parent.marks[2:], parent.below)
            self.looks = (own, *parent.looks[:-1], below)
            self.queues = (here, *parent.queues[1:], parent.beneath)
            self.passes = (here, *parent.passes[:-1], beneath)
        self.under = 0
        self.writers_under = 0

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

    def crowd(self, write: bool) -> int:
        return self.under if write else self.writers_under

    def count(self, write: bool, by: int) -> None:
        self.users += by
        self.writers += by if write else 0
        self.count_under(write, by)

    def count_under(self, write: bool, by: int) -> None:
        """Count a claim at or below this folder, here and in the folders above."""
        writers = by if write else 0
        self.under += by
        self.writers_under += writers
        for folder in self.above:
            folder.under += by
            folder.writers_under += writers


class File(Place):
    """A literal path that may be a file: only who spells it out goes below it."""

    __slots__ = ("alternative", "folder")

    def __init__(self, folder: Folder, alternative: Alternative) -> None:
        self.name = folder.name
        self.as_needed = ((self, False), (self, True))
        self.folder = folder
        self.alternative = alternative
        self.own = folder.own
        self.exact = Point()
        self.marks = (self.own, self.exact, *folder.marks[2:])
        self.looks = folder.looks
        self.queues = folder.queues
        self.passes = folder.passes
        self.refs = 0
        self.text = ""

    def crowd(self, write: bool) -> int:
        return self.folder.crowd(write)

    def count(self, write: bool, by: int) -> None:
        folder = self.folder
        writers = by if write else 0
        folder.users += by
        folder.writers += writers
        folder.under += by
        folder.writers_under += writers
        for above in folder.above:
            above.under += by
            above.writers_under += writers


class Glob(Place):
    """A path pattern that is not just a subtree, kept at its literal prefix."""

    __slots__ = ("alternative", "folder", "verdicts")

    def __init__(self, alternative: Alternative, folder: Folder) -> None:
        super().__init__(folder.name)
        self.alternative = alternative
        self.folder = folder
        chain = (folder, *folder.above)
        self.marks = (self.own, *(each.below for each in chain))
        self.looks = tuple(each.own for each in chain)
        # It stands in the lines of its prefix folder; whom it really conflicts with there is
        # tested one by one.
        self.queues = folder.queues
        self.passes = folder.passes
        self.verdicts: dict[Path, bool] = {}

    def crowd(self, write: bool) -> int:
        return self.folder.crowd(write)

    def count(self, write: bool, by: int) -> None:
        self.folder.count_under(write, by)

    def meets(self, other: Path) -> bool:
        """Whether some path belongs to both: exact, and remembered."""
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
            yield from folder.patterns or ()
        # The latest first: whoever is found is watched, and that one is likely to stay longest.
        yield from reversed(self.folder.held)


Path = Folder | File | Glob


def chain(place: Path) -> tuple[Folder, ...]:
    """The folder of a path, with all folders above."""
    folder = place if isinstance(place, Folder) else place.folder
    return (folder, *folder.above)


def places_conflict(a: Place, b: Place) -> bool:
    """Whether two places have something in common (that one of them must write is not asked)."""
    if a is b:
        return True
    if isinstance(a, Glob):
        return isinstance(b, (Folder, File, Glob)) and a.meets(b)
    if isinstance(b, Glob):
        return isinstance(a, (Folder, File)) and b.meets(a)
    if isinstance(a, (Folder, File)) and isinstance(b, (Folder, File)):
        one = a.folder if isinstance(a, File) else a
        other = b.folder if isinstance(b, File) else b
        return one is other or one in other.above or other in one.above
    return False
