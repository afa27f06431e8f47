"""Where claims meet: every name, folder and pattern that is claimed is a place.

A place has *points* at which holds are counted. To hold a place is to mark some points; to ask
for it is to look at some points. Two claims conflict exactly when one looks at a point that the
other marks and one of them writes:

    name      looks at and marks its own point
    folder    (a literal path: that file or that whole subtree) looks at the own point of itself
              and of every folder above, and at its own *below*; it marks its own point and the
              *below* of every folder above
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
from typing import TYPE_CHECKING

from interlock.kernel.lines import Lines
from interlock.model.overlap import alternatives_overlap
from interlock.model.pattern import Alternative

if TYPE_CHECKING:
    from interlock.kernel.waiters import Profile, Shelf, Waiter

_REMEMBERED = 10_000


class Point:
    """A count of holds, and those who wait for it to change."""

    __slots__ = ("readers", "reserved", "shelves", "writers")

    def __init__(self) -> None:
        self.readers = 0
        self.writers = 0
        self.reserved: list[tuple[Waiter, bool]] | tuple[()] = ()
        """Overtaken waiters that nobody younger may pass here, with whether they write."""
        self.shelves: dict[Profile, Shelf] | None = None
        """Waiters that this point blocks, or did until somebody better was woken in their place."""


class Place:
    """Something that can be claimed as a whole."""

    __slots__ = (
        "label",
        "load",
        "looks",
        "marks",
        "own",
        "passes",
        "queues",
        "refs",
        "users",
        "writers",
    )

    def __init__(self, label: str) -> None:
        here = Lines()
        self.label = label
        self.own = Point()
        self.marks: tuple[Point, ...] = (self.own,)
        self.looks: tuple[Point, ...] = (self.own,)
        self.queues: tuple[Lines, ...] = (here,)
        """Where those who wait for this place stand in line; `here` comes first."""
        self.passes: tuple[Lines, ...] = (here,)
        """Whom a start at this place goes past."""
        self.refs = 0
        self.load = 0.0
        """The work of unfinished tasks that claim this place, by their estimates."""
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
    """A literal path: a file, or a folder with everything below it."""

    __slots__ = (
        "above",
        "alternative",
        "below",
        "beneath",
        "children",
        "name",
        "path",
        "patterns",
        "under",
        "writers_under",
    )

    def __init__(self, name: str, parent: Folder | None) -> None:
        path = (*parent.path, name) if parent else ()
        super().__init__("/".join(path) or "**")
        self.name = name
        self.path: tuple[str, ...] = path
        self.above: tuple[Folder, ...] = (*parent.above, parent) if parent else ()
        self.alternative = Alternative(path, ())
        self.children: dict[str, Folder] = {}
        self.patterns: dict[Glob, int] = {}
        """Patterns with this prefix that are held or reserved now, and how often."""
        self.below = Point()
        self.marks = (self.own, *(folder.below for folder in self.above))
        self.looks = (self.own, *(folder.own for folder in self.above), self.below)
        self.beneath = Lines()
        here = self.queues[0]
        self.queues = (here, *(folder.beneath for folder in self.above))
        self.passes = (here, *(folder.queues[0] for folder in self.above), self.beneath)
        self.under = 0
        self.writers_under = 0

    def crowd(self, write: bool) -> int:
        if write:
            return self.under + sum(folder.users for folder in self.above)
        return self.writers_under + sum(folder.writers for folder in self.above)

    def count(self, write: bool, by: int) -> None:
        super().count(write, by)
        self.count_under(write, by)

    def count_under(self, write: bool, by: int) -> None:
        """Count a claim at or below this folder, here and in the folders above."""
        self.under += by
        for folder in self.above:
            folder.under += by
        if write:
            self.writers_under += by
            for folder in self.above:
                folder.writers_under += by


class Glob(Place):
    """A path pattern that is not just a subtree, kept at its literal prefix."""

    __slots__ = ("alternative", "folder", "verdicts")

    def __init__(self, alternative: Alternative, folder: Folder) -> None:
        super().__init__(f"{folder.label}: {alternative}")
        self.alternative = alternative
        self.folder = folder
        chain = (folder, *folder.above)
        self.marks = (self.own, *(each.below for each in chain))
        self.looks = tuple(each.own for each in chain)
        # Overtaking is counted as if the pattern were its prefix folder: to know exactly whom a
        # pattern overtakes would mean to test it against all that wait.
        self.queues = folder.queues
        self.passes = folder.passes
        self.verdicts: dict[Folder | Glob, bool] = {}

    def crowd(self, write: bool) -> int:
        return self.folder.crowd(write)

    def count(self, write: bool, by: int) -> None:
        super().count(write, by)
        self.folder.count_under(write, by)

    def meets(self, other: Folder | Glob) -> bool:
        """Whether some path belongs to both: exact, and remembered."""
        known = self.verdicts.get(other)
        if known is None:
            if len(self.verdicts) >= _REMEMBERED:
                self.verdicts.clear()
            known = alternatives_overlap(self.alternative, other.alternative) is not None
            self.verdicts[other] = known
        return known

    def held_nearby(self) -> Iterator[Folder | Glob]:
        """Folders and patterns that are held or reserved where this pattern might match."""
        for folder in self.folder.above:
            yield from folder.patterns
        todo = [self.folder]
        while todo:
            folder = todo.pop()
            yield from folder.patterns
            for child in folder.children.values():
                own, below = child.own, child.below
                if own.writers or own.readers or own.reserved:
                    yield child
                if below.writers or below.readers or below.reserved:
                    todo.append(child)


def places_conflict(a: Place, b: Place) -> bool:
    """Whether two places have something in common (that one of them must write is not asked)."""
    if a is b:
        return True
    if isinstance(a, Glob):
        return isinstance(b, (Folder, Glob)) and a.meets(b)
    if isinstance(b, Glob):
        return isinstance(a, Folder) and b.meets(a)
    if isinstance(a, Folder) and isinstance(b, Folder):
        return a in b.above or b in a.above
    return False
