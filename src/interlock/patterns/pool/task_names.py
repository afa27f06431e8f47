"""What the tasks of a pool are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable


class Names:
    """Names of tasks in one run, none of them given twice.

    They are the same in every process that asks for the same in the same order, so that a run can
    be taken up. It counts for a whole Engine: several chats may share one.
    """

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def message(self, to: str) -> str:
        """The next message to an agent, or in a session: `a#1`, `a#2`, ..."""
        stem = f"{plain(to)}#"
        self._given[stem] += 1
        return f"{stem}{self._given[stem]}"

    def spawn(self, agent_id: str, has_ended: Callable[[str], bool]) -> str:
        """Making an agent: `spawn a`; `spawn a~2` if that has ended, also in an earlier process."""
        name = self.together(f"spawn {plain(agent_id)}")
        while has_ended(name):
            name = self.together(f"spawn {plain(agent_id)}")
        return name

    def together(self, stem: str) -> str:
        """The stem itself, then `stem~2`, `stem~3`, ..."""
        self._given[stem] += 1
        count = self._given[stem]
        return stem if count == 1 else f"{stem}~{count}"


def plain(name: str) -> str:
    """A name of a user in which a `#` or `~` cannot be taken for one of ours: it is doubled."""
    return name.replace("#", "##").replace("~", "~~")
