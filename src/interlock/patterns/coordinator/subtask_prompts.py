"""The prompt of a subtask: the parent task, the subtask itself and the context."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from interlock.errors import InvalidOption
from interlock.patterns.coordinator.subtask import SubTask, attribute_of

AGENT_CONFIG = "agent_config"
"""The entry of a context that is the configuration of its agents; a prompt does not show it."""


class SubtaskPrompts:
    """Makes the prompts of a call. A prompt names no other subtask."""

    def __init__(self, parent: Any, context: Mapping[str, Any]) -> None:
        whole = _section("You work on one part of this task", title_and_description(parent))
        self._first = f"{whole}\n\n" if whole else ""
        shown = {name: value for name, value in context.items() if name != AGENT_CONFIG}
        lines = "\n".join(f"- {name}: {_text(name, value)}" for name, value in shown.items())
        self._last = f"\n\nContext:\n{lines}" if lines else ""

    def of(self, subtask: SubTask) -> str:
        """Return the prompt of one subtask."""
        own = _section("Your part", (subtask.title, subtask.description))
        if subtask.files != ():
            files = "\n".join(f"- {each}" for each in subtask.files)
            own += f"\n\nModify no other files than these:\n{files}"
        return f"{self._first}{own}{self._last}"


def title_and_description(task: Any) -> tuple[str, str]:
    """Return title and description of a task, which is an object, a mapping or text."""
    if isinstance(task, str | int):
        return str(task), ""
    title, description = attribute_of(task, "title"), attribute_of(task, "description")
    return "" if title is None else str(title), "" if description is None else str(description)


def _section(heading: str, texts: tuple[str, str]) -> str:
    title, description = texts
    if not (title or description):
        return ""
    return f"{heading}: {title}\n{description}".strip() if title else f"{heading}:\n{description}"


def _text(name: Any, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except Exception as error:  # any __str__ of a user may raise
        raise InvalidOption(
            f"context[{name!r}] cannot be written into a prompt: {error!r}; use text, or values "
            "that JSON can represent"
        ) from error
