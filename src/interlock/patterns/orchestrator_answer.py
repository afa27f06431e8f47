"""Asking a language model for subtasks, and reading its answer: text by a stranger."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from interlock.errors import OrchestratorException
from interlock.patterns.coordinator_models import Id, SubTask

INSTRUCTIONS = """\
Split this task into subtasks that agents can work on at the same time, each on its own files.
Answer with a JSON list and nothing else. Each entry is an object:
- "subtask_id": a number from 1
- "title": a short text
- "description": all that its agent needs to know, since it sees no other subtask
- "estimated_complexity": from 0 to 100
- "estimated_duration_minutes": a number
- "parallel_group": a number; groups run one after another, subtasks of one group at the same time
- "dependencies": a list of the subtask_ids that have to be completed first; may be empty
- "files": a list of the paths or patterns that it modifies; may be empty
- "is_test": true if it runs tests; such a subtask needs a parallel_group of its own"""

_FENCED = re.compile(r"```[\w-]*\s*\n(.*?)```", re.DOTALL)
_SHOWN = 5
_LONGEST = 200

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SubtaskRecord(BaseModel):
    """One entry of the answer."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    subtask_id: int | Text | None = None
    title: Text
    description: str = ""
    estimated_complexity: Number | None = None
    estimated_duration_minutes: Number | None = None
    parallel_group: int | None = None
    dependencies: tuple[int | Text, ...] = ()
    files: tuple[Text, ...] = ()
    is_test: bool | None = None


_RECORDS = TypeAdapter(list[SubtaskRecord])


def subtasks_in(answer: Any, parent_id: Id) -> list[SubTask]:
    """The subtasks of an answer; OrchestratorException says what is wrong with it."""
    data = _data(answer) if isinstance(answer, str) else answer
    if isinstance(data, dict) and "subtasks" in data:
        data = data["subtasks"]
    try:
        records = _RECORDS.validate_python(data)
    except ValidationError as error:
        raise OrchestratorException(f"no list of subtasks: {_problems(error)}") from error
    if not records:
        raise OrchestratorException("no list of subtasks: it is empty")
    return [
        SubTask(
            number if each.subtask_id is None else each.subtask_id,
            parent_id,
            each.title,
            each.description,
            each.estimated_complexity,
            each.estimated_duration_minutes,
            each.parallel_group,
            each.dependencies,
            each.files,
            each.is_test,
        )
        for number, each in enumerate(records, 1)
    ]


def _data(text: str) -> Any:
    """The JSON of a text: all of it, a fenced block, or from the first bracket to the last."""
    found = [text, *_FENCED.findall(text)]
    for first, last in ("[]", "{}"):
        found.append(text[text.find(first) : text.rfind(last) + 1])
    for part in found:
        try:
            return json.loads(part)
        except (ValueError, RecursionError):
            continue
    raise OrchestratorException(f"no JSON: {text[:_LONGEST]!r}")


def _problems(error: ValidationError) -> str:
    lines = []
    for each in error.errors(include_url=False, include_context=False)[:_SHOWN]:
        where = ".".join(str(part) for part in each["loc"]) or "all of it"
        lines.append(f"{where}: {each['msg']}, not {str(each['input'])[:_LONGEST]!r}")
    if error.error_count() > _SHOWN:
        lines.append(f"and {error.error_count() - _SHOWN} more")
    return "; ".join(lines)
