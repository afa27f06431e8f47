"""The files that `interlock init` writes: short, commented, and working as they are."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class CodingAgent(NamedTuple):
    """A coding agent that is installed, and how to have it do one thing without questions."""

    name: str
    argv: tuple[str, ...]


_KNOWN = (
    CodingAgent("claude", ("claude", "-p", "{prompt}", "--permission-mode", "acceptEdits")),
    CodingAgent("codex", ("codex", "exec", "-s", "workspace-write", "{prompt}")),
    CodingAgent("gemini", ("gemini", "--approval-mode", "yolo", "--skip-trust", "-p", "{prompt}")),
    CodingAgent("opencode", ("opencode", "run", "--auto", "{prompt}")),
    CodingAgent("qwen", ("qwen", "--approval-mode", "yolo", "{prompt}")),
    CodingAgent("aider", ("aider", "--yes-always", "--no-auto-commits", "--message", "{prompt}")),
)
_STAND_IN = CodingAgent("hello", ("sh", "-c", 'echo "I was asked to: $1"', "hello", "{prompt}"))


def installed_agents() -> list[CodingAgent]:
    """The coding agents on this machine."""
    return [each for each in _KNOWN if shutil.which(each.argv[0])]


def project_file_text(root: Path, found: Sequence[CodingAgent]) -> str:
    """A project file for what was found."""
    agents = "\n".join(_agent(each) for each in found or (_STAND_IN,))
    name = (found or (_STAND_IN,))[0].name
    where = "the environment, or .env" if (root / ".env").is_file() else "the environment"
    return f"""\
# Who works in this folder, and within which limits. `interlock agents` shows it,
# `interlock doctor` checks it; docs/plan.md has every field.

max_parallel: 4                   # so many attempts at once
defaults: {{agent: {name}}}         # who does `interlock run "some text"`

agents:
{agents}
# A Python function is an agent too:
#   reviewer:
#     python: tools.review:main   # module:function, found from this folder

# protected: [".github/**"]       # nobody may claim these for writing
# capacity: {{gpu: 1}}              # counted things; tasks say `uses: gpu`
# limits:
#   openai: {{requests: 60/min}}    # shared by all who say `uses: openai`
# secrets: [DEPLOY_KEY]           # names only: values come from {where}
"""


def plan_file_text(found: Sequence[CodingAgent]) -> str:
    """A plan of three tasks, two of which run side by side."""
    name = (found or (_STAND_IN,))[0].name
    return f"""\
# What is to be done. Two tasks whose `writes` meet never run at the same time.
# `interlock check plan.yaml` looks it through; `interlock run plan.yaml` does it.

defaults:
  agent: {name}
  timeout: 10m

tasks:
  outline:
    prompt: Write an outline of the user guide into docs/guide.md.
    writes: docs/guide.md
  changelog:
    prompt: Bring CHANGELOG.md up to date with the last commits.
    writes: CHANGELOG.md
  guide:
    prompt: |
      Write the user guide in docs/guide.md. This is what the outline's author said:
      {{{{outline.output}}}}
    writes: docs/guide.md
"""


def _agent(found: CodingAgent) -> str:
    argv = ", ".join(_quoted(each) for each in found.argv)
    return f"""\
  {found.name}:
    command: [{argv}]
    # owns: ["src/**"]            # claimed when a task does not say what it writes;
                                  # without it that is the whole folder
    # instances: 1                # so many at once
    # timeout: 20m
    # secrets: [OPENAI_API_KEY]   # programs see few variables; name those that it needs
"""


def _quoted(text: str) -> str:
    plain = text.replace("-", "").replace("_", "").isalnum() and not text.startswith("-")
    return text if plain else "'" + text.replace("'", "''") + "'"
