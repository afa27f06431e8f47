"""The files that `interlock init` writes: short, commented, and usable as they are."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class CodingAgent(NamedTuple):
    """A coding agent, and its command line for one prompt without questions."""

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
    """The coding agents that are installed on this machine."""
    return [each for each in _KNOWN if shutil.which(each.argv[0])]


def project_file_text(root: Path, found: Sequence[CodingAgent]) -> str:
    """The text of a project file with these agents, or with a placeholder."""
    agents = "\n".join(_agent(each) for each in found or (_STAND_IN,))
    name = (found or (_STAND_IN,))[0].name
    where = "the environment, or .env" if (root / ".env").is_file() else "the environment"
    return f"""\
# The agents of this folder and their limits. `interlock agents` lists them,
# `interlock doctor` checks them; docs/plan.md describes every field.

max_parallel: 4                   # maximum number of concurrent attempts
defaults: {{agent: {name}}}         # the agent of `interlock run "some prompt"`

agents:
{agents}
# A Python function is an agent too:
#   reviewer:
#     python: tools.review:main   # module:function, importable from this folder

# protected: [".github/**"]       # no task may claim these for writing
# capacity: {{gpu: 1}}              # counted resources; tasks claim them with `uses: gpu`
# limits:
#   openai: {{requests: 60/min}}    # shared by all tasks with `uses: openai`
# secrets: [DEPLOY_KEY]           # names only: values come from {where}
"""


def plan_file_text(found: Sequence[CodingAgent]) -> str:
    """The text of a plan of three tasks, two of which run side by side."""
    name = (found or (_STAND_IN,))[0].name
    return f"""\
# The tasks. Two tasks whose `writes` overlap never run at the same time.
# Check this file with `interlock check plan.yaml`; run it with `interlock run plan.yaml`.

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
      Write the user guide in docs/guide.md. The author of the outline says:
      {{{{outline.output}}}}
    writes: docs/guide.md
"""


def _agent(found: CodingAgent) -> str:
    argv = ", ".join(_quoted(each) for each in found.argv)
    return f"""\
  {found.name}:
    command: [{argv}]
    # owns: ["src/**"]            # claimed by tasks without `writes`;
                                  # without `owns` they claim the whole folder
    # instances: 1                # how many may run at once
    # timeout: 20m
    # secrets: [OPENAI_API_KEY]   # environment variables that it may see
"""


def _quoted(text: str) -> str:
    plain = text.replace("-", "").replace("_", "").isalnum() and not text.startswith("-")
    return text if plain else "'" + text.replace("'", "''") + "'"
