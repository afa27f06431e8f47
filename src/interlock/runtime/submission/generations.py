"""Ids that can be used again: every use of a name is its next generation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable


class Generations:
    """Gives out ids that no task of the run has: `name`, then `name~2`, `name~3`, ...

    A run knows each id once, but programs reuse names: an agent is asked again, a group is executed
    again. The ids depend only on the names and their order, so a program that resumes a run asks
    for the same ids and finds its tasks again.

    The cost of an id is constant. Counting starts where the last use of the name ended, and an id
    is remembered here only until its task is submitted.
    """

    def __init__(self, is_known: Callable[[str], bool], max_names: int | None = None) -> None:
        self._is_known = is_known
        """Whether this process has submitted a task with an id."""
        self._max_names = max_names
        """So many names are counted; None: all."""
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()
        """The last generation of each name, the name that was used last at the end."""
        self._given: set[str] = set()
        """Ids that were given out and have not been submitted."""

    def next(
        self,
        name: str,
        separator: str = "~",
        *,
        numbered: bool = False,
        ids: Callable[[str], Iterable[str]] | None = None,
    ) -> str:
        """The next generation of a name that is free.

        With `numbered` the first one has a number as well. `ids` says which ids a name stands for,
        where it is that of a group of tasks: they are all free in the generation returned.
        """
        wanted = (name,) if ids is None else tuple(ids(name))
        count = 0
        for each in wanted:
            count = max(count, self._counts.get((each, separator), 0))
        while True:
            count += 1
            made = name if count == 1 and not numbered else f"{name}{separator}{count}"
            group = (made,) if ids is None else tuple(ids(made))
            for each in group:
                if each in self._given or self._is_known(each):
                    break
            else:
                self._count(wanted, separator, count)
                self._given.update(group)
                return made

    def _count(self, names: Iterable[str], separator: str, count: int) -> None:
        for name in names:
            self._counts[name, separator] = count
            self._counts.move_to_end((name, separator))
        # A name that is not counted any more costs time, not correctness: its ids are tried one
        # by one until one is free.
        while self._max_names is not None and len(self._counts) > self._max_names:
            self._counts.popitem(last=False)

    def submitted(self, ids: Iterable[str]) -> None:
        """The run knows these from now on, or no task will have them."""
        if self._given:
            self._given.difference_update(ids)
