"""Prompts that quote the results of other tasks: `Use this schema: {{schema.output}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from interlock.errors import AgentFailed, InvalidOption
from interlock.model.outcome import Outcome

FIELDS: Final = ("output", "status", "attempts", "duration")
"""What can be quoted of a task: its result, its status, its attempts, its duration in seconds."""
LONGEST: Final = 65_536
"""How many characters of one result are quoted. The middle of a longer one is left out."""

_HOLE = re.compile(r"\\\{\{|\{\{([^{}]*)\}\}")
_REFERENCE = re.compile(rf"(.+?)\.({'|'.join(FIELDS)})((?:\.[^.\s]+)*)")

_set = object.__setattr__


@dataclass(frozen=True, slots=True)
class Reference:
    """A field of a task, and the way into it: `{{schema.output.title}}`."""

    task: str
    """The name as it was written."""
    field: str
    path: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    """The tasks that the name stands for, if that is not the one task of that id."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the tasks that are meant."""
        return self.tasks or (self.task,)

    def __str__(self) -> str:
        return "{{" + ".".join((self.task, self.field, *self.path)) + "}}"


@dataclass(frozen=True, slots=True)
class Hole:
    """The text between two pairs of braces, and its position."""

    text: str
    at: int


def holes(text: str) -> list[str | Hole]:
    r"""Split text into literal parts and holes. `\{{` is two literal braces."""
    found: list[str | Hole] = []
    done = 0
    for match in _HOLE.finditer(text):
        found.append(text[done : match.start()])
        found.append("{{" if match[1] is None else Hole(match[1].strip(), match.start()))
        done = match.end()
    found.append(text[done:])
    return [each for each in found if each]


def reference(text: str) -> Reference | None:
    """Parse what is between the braces; None if it is not a reference."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        return None
    return Reference(found[1], found[2], tuple(found[3].split(".")[1:]))


@dataclass(frozen=True, slots=True, init=False)
class Template:
    r"""Text with references to other tasks, which have to succeed before it can be rendered.

    `{{schema.output}}` is the result of the task `schema`, `{{schema.output.title}}` a part of it;
    `status`, `attempts` and `duration` are available too. `\{{` stands for two literal braces.
    A task with a template as its prompt comes after all tasks that the template refers to.
    """

    parts: tuple[str | Reference, ...]

    def __init__(self, parts: str | Iterable[str | Reference]) -> None:
        _set(self, "parts", tuple(_parts(parts) if isinstance(parts, str) else parts))

    @property
    def references(self) -> tuple[str, ...]:
        """Return the ids of the tasks that it refers to, each once."""
        refs = (each for each in self.parts if isinstance(each, Reference))
        return tuple(dict.fromkeys(task for each in refs for task in each.ids))

    def renamed(self, names: Mapping[str, str]) -> Template:
        """Return the same template for tasks that have other ids now."""
        if not any(task in names for task in self.references):
            return self
        return Template(
            each
            if isinstance(each, str)
            else replace(each, tasks=tuple(names.get(task, task) for task in each.ids))
            for each in self.parts
        )

    def __str__(self) -> str:
        return "".join(
            each.replace("{{", r"\{{") if isinstance(each, str) else str(each)
            for each in self.parts
        )

    def render(self, outcomes: Mapping[str, Outcome[Any]]) -> str:
        """Return the text with results filled in; what is not a string is written as JSON."""
        return "".join(
            each if isinstance(each, str) else _quoted(each, outcomes) for each in self.parts
        )


def _parts(text: str) -> Iterable[str | Reference]:
    for part in holes(text):
        if isinstance(part, str):
            yield part
            continue
        found = reference(part.text)
        if found is None:
            raise InvalidOption(
                f"{{{{{part.text}}}}} at character {part.at} names no field of a task; write "
                rf"{{{{task.output}}}}, or \{{{{ for two braces as they are"
            )
        yield found


def _quoted(ref: Reference, outcomes: Mapping[str, Outcome[Any]]) -> str:
    if len(ref.ids) == 1:
        return _said(ref, ref.ids[0], outcomes)
    return "\n\n".join(f"{task}:\n{_said(ref, task, outcomes)}" for task in ref.ids)


def _said(ref: Reference, task: str, outcomes: Mapping[str, Outcome[Any]]) -> str:
    outcome = outcomes.get(task)
    if outcome is None:
        raise AgentFailed(f"{ref} in the prompt: there is no outcome of {task!r}", retryable=False)
    value = outcome.result if ref.field == "output" else getattr(outcome, ref.field)
    for name in ref.path:
        value = _inside(value, name, ref)
    text = value if isinstance(value, str) else _as_json(value)
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # Keys that are not strings, or data that contains itself.
        return repr(value)


def _plain(value: Any) -> Any:
    """Convert what JSON does not know: records field by field, the rest with `str`."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)


def _inside(value: Any, name: str, ref: Reference) -> Any:
    if isinstance(value, Mapping) and name in value:
        return value[name]
    if isinstance(value, list | tuple) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    if not name.startswith("_") and not isinstance(value, str | Mapping | list | tuple):
        found = getattr(value, name, _NOT_THERE)
        if found is not _NOT_THERE and not callable(found):
            return found
    raise AgentFailed(f"{ref} in the prompt: the result has no {name!r}", retryable=False)


_NOT_THERE: Final = object()
