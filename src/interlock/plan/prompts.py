"""The prompts of tasks, from the plan or from files, and the results that they quote."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

from interlock.model.template import Reference, Template
from interlock.plan.for_each import Draft, Drafts
from interlock.plan.literal_secrets import ELSEWHERE, secret_in
from interlock.plan.problems import Problems
from interlock.plan.records import AgentSpec
from interlock.plan.variables import BRACES

LARGEST_PROMPT: Final = 1024 * 1024


class PromptReader:
    """Reads the prompts of one plan. Files are relative to its folder, and read once."""

    def __init__(self, folder: Path, problems: Problems) -> None:
        self._folder = folder
        self._problems = problems
        self._prompts: dict[str, str | None] = {}

    def of(self, draft: Draft, agent: AgentSpec) -> str | Template | None:
        """Return the prompt of a task, if it has one and its agent is given it."""
        found, problems = draft.found, self._problems
        key = "prompt_file" if found.says("prompt_file") else "prompt"
        if found.says("prompt") and found.says("prompt_file"):
            text = "there is also a `prompt`; keep one of them"
            problems.add(found.key_at("prompt_file"), found.path("prompt_file"), text)
        prompt: str | Template | None = found.get("prompt")
        if found.get("prompt_file") is not None:
            prompt = self._from_file(draft)
        if found.says(key) and not agent.takes_prompt:
            problems.add(
                found.key_at(key),
                found.path(key),
                f"agent {agent.name!r} is not given it; put '{{prompt}}' or '{{prompt_file}}' "
                "into its `command`, `env` or `stdin`",
            )
        elif (
            not found.says(key)
            and agent.command is not None
            and agent.takes_prompt
            and found.is_right
        ):
            problems.add(
                draft.at, found.field, f"agent {agent.name!r} needs a prompt; add `prompt:`"
            )
        return prompt

    def _from_file(self, draft: Draft) -> str | Template | None:
        found, problems = draft.found, self._problems
        name, at, field = found.values["prompt_file"], found.at("prompt_file"), "prompt_file"
        if name not in self._prompts:
            text, wrong = _read_prompt(self._folder / name)
            if wrong:
                problems.add(at, found.path(field), f"{name}: {wrong}")
            self._prompts[name] = text
        text = self._prompts[name]
        if text is None:
            return None
        if "{{" not in text:
            return text
        parts = draft.scope.parts(text, at, found.path(field), problems)
        if any(isinstance(each, Reference) for each in parts):
            return Template(parts)
        return "".join(str(each) for each in parts)

    def resolved(
        self,
        text: str | Template | None,
        draft: Draft,
        drafts: Drafts,
        key: str,
        after: dict[str, None],
    ) -> str | Template | None:
        """Return the text with its references checked; add their tasks to `after`."""
        if not isinstance(text, Template):
            return text
        found = draft.found
        key = key if found.says(key) else "prompt_file"
        parts: list[str | Reference] = []
        for part in text.parts:
            if isinstance(part, Reference):
                ids = drafts.names.get(part.task)
                if ids is None:
                    at, field = found.at(key), found.path(key)
                    what = f"{part}: there is no task {part.task!r}"
                    self._problems.unknown(at, field, part.task, what, drafts.names, BRACES)
                elif ids:
                    after.update(dict.fromkeys(ids))
                    own = () if ids == (part.task,) else ids
                    parts.append(Reference(part.task, part.field, part.path, own))
            else:
                parts.append(part)
        return Template(parts)


def _read_prompt(path: Path) -> tuple[str | None, str]:
    """Return the text of a file, or what is wrong with it."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None, "it is not a regular file"
        with path.open("rb") as file:
            data = file.read(LARGEST_PROMPT + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            return None, f"byte {error.start} is not UTF-8; save it as UTF-8"
        return None, f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if len(data) > LARGEST_PROMPT:
        return None, "it is larger than 1 MiB; let the prompt tell the agent which file to read"
    if not text.strip():
        return None, "it is empty"
    what = secret_in(text)
    return (None, f"it contains {what}; {ELSEWHERE}") if what else (text, "")
