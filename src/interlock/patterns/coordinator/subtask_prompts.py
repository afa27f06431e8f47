"""What an agent is told: its own subtask, what that is a part of, and the context."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from interlock.errors import InvalidOption
from interlock.patterns.coordinator.subtask import SubTask, about


class SubtaskPrompts:
    """Makes the prompts of a call. None names another subtask: an agent minds its own part."""

    def __init__(self, parent: Any, context: Mapping[str, Any]) -> None:
        whole = _described("You work on one part of this task", described(parent))
        self._first = f"{whole}\n\n" if whole else ""
        lines = "\n".join(f"- {name}: {_text(name, value)}" for name, value in context.items())
        self._last = f"\n\nContext:\n{lines}" if lines else ""

    def of(self, subtask: SubTask) -> str:
        """The prompt for one subtask."""
        own = _described("Your part", (subtask.title, subtask.description))
        if subtask.files != ():
            files = "\n".join(f"- {each}" for each in subtask.files)
            own += f"\n\nModify no other files than these:\n{files}"
        return f"{self._first}{own}{self._last}"


def described(task: Any) -> tuple[str, str]:
    """Title and description of a task, which is an object, a mapping or text."""
    if isinstance(task, str | int):
        return str(task), ""
    title, description = about(task, "title"), about(task, "description")
    return "" if title is None else str(title), "" if description is None else str(description)


def _described(what: str, said: tuple[str, str]) -> str:
    title, description = said
    if not (title or description):
        return ""
    return f"{what}: {title}\n{description}".strip() if title else f"{what}:\n{description}"


def _text(name: Any, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except Exception as error:  # it may be anybody's __str__
        raise InvalidOption(
            f"context[{name!r}] cannot be written into a prompt: {error!r}; give text, or what "
            "JSON can hold"
        ) from error
