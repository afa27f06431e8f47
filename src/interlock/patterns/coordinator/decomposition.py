"""Ask a language model for subtasks, and validate its answer.

The errors here are quoted in the next prompt, and a prompt is a part of what a task is. A run that
was interrupted after it would be refused if they read differently, so they stay as they are.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from interlock.errors import OrchestratorException
from interlock.patterns.coordinator.subtask import Id, SubTask

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
_BEGIN = re.compile(r'\[\s*\{\s*"|\{\s*"')
_DECODER = json.JSONDecoder()
_MAX_PROBLEMS = 5
_MAX_TEXT = 200

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


def parse_subtasks(answer: Any, parent_id: Id) -> list[SubTask]:
    """Return the subtasks of an answer; OrchestratorException says what is wrong with it."""
    data = _find_json(answer) if isinstance(answer, str) else answer
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


def _find_json(text: str) -> Any:
    """Return the JSON in a text: all of it, a fenced block, or what starts like a list."""
    for part in (text, *_FENCED.findall(text)):
        try:
            return json.loads(part)
        except (ValueError, RecursionError):
            continue
    # Not every bracket starts an answer: texts contain [1] and {so on}. A truncated answer is
    # rejected: a part of it must not be taken for the whole.
    begin = _BEGIN.search(text)
    while begin is not None:
        try:
            data, end = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            break
        if isinstance(data, list) or "subtasks" in data:
            return data
        begin = _BEGIN.search(text, end)
    raise OrchestratorException(f"no JSON: {text[:_MAX_TEXT]!r}")


def _problems(error: ValidationError) -> str:
    lines = []
    for each in error.errors(include_url=False, include_context=False)[:_MAX_PROBLEMS]:
        where = ".".join(str(part) for part in each["loc"]) or "all of it"
        lines.append(f"{where}: {each['msg']}, not {str(each['input'])[:_MAX_TEXT]!r}")
    if error.error_count() > _MAX_PROBLEMS:
        lines.append(f"and {error.error_count() - _MAX_PROBLEMS} more")
    return "; ".join(lines)
