"""What a project file says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interlock.errors import PlanError
from interlock.model.claim import uses
from interlock.model.command import Command
from interlock.model.limits import Breaker, Quota, Rate, Retry
from interlock.model.load import Auto, Gate
from interlock.plan.plan_file import plan_of_prompts
from interlock.plan.project_file import find_project
from interlock.plan.records import AgentSpec, PlannedTask, Project, claims_of
from tests.unit.plan import files

WHOLE = """\
agents:
  coder:
    description: writes code
    preset: command
    command: [my-agent, --task, "{prompt}"]
    owns: [src/, "tests/**"]
    instances: 2
    workspace: shared
    guard: none
    limits: [openai, outage]
    uses: [memory_mb=500]
    env: {MODE: fast, LEVEL: 3, EMPTY: ""}
    pass_env: SSH_AUTH_SOCK
    secrets: OPENAI_API_KEY
    stdin: "{prompt}"
    home: private
    errors: {auth_error: "not logged in", rate_limited: ["429", slow down]}
    check: make lint
    timeout: 20m
    attempts: 3
    backoff: 2m
  helper:
    python: "helpers.all:help_out"
    process: true
max_parallel: {most: 4}
capacity: {memory_mb: 16000}
limits:
  openai: {requests: 60/min, tokens: 100k/min}
  outage: {failures: 5, cool_down: 1m}
priorities: {urgent: 100, low: -1}
protected: [.github/**, Makefile]
secrets: [GITHUB_TOKEN]
gate: {cpu: 90.5, memory: 80}
grace: 10s
defaults: {agent: coder, timeout: 1h, labels: {team: a}}
x-note: anything at all
"""


def test_everything_that_can_be_said(workspace: Path) -> None:
    project = files.project(WHOLE)
    coder, helper = project.agents["coder"], project.agents["helper"]
    assert coder.command == Command(
        ["my-agent", "--task", "{prompt}"],
        name="coder",
        stdin="{prompt}",
        env={"MODE": "fast", "LEVEL": "3", "EMPTY": ""},
        pass_env="SSH_AUTH_SOCK",
        errors={"auth_error": ["not logged in"], "rate_limited": ["429", "slow down"]},
        check="make lint",
        home="private",
    )
    assert coder.owns == ("src/", "tests/**")
    assert coder.uses == (
        uses("memory_mb", 500),
        uses("openai"),
        uses("outage"),
        uses("agent:coder"),
    )
    assert coder.retry == Retry(3, 120, 120)
    assert (coder.timeout, coder.secrets) == (1200, ("OPENAI_API_KEY",))
    assert str(coder.position) == "interlock.yaml:3:5"
    assert (helper.python, helper.process) == ("helpers.all:help_out", True)
    assert helper.command is None
    assert project.root == workspace
    assert project.max_parallel == Auto(most=4)
    assert project.capacity == {"memory_mb": 16000, "agent:coder": 2}
    assert project.limits == {
        "openai": Rate(Quota(60, 60), Quota(100_000, 60)),
        "outage": Breaker(5, 60),
    }
    assert project.priorities == {"low": -1, "normal": 0, "high": 10, "urgent": 100}
    assert project.protected == (".github/**", "Makefile")
    assert project.secrets == ("GITHUB_TOKEN", "OPENAI_API_KEY")
    assert project.gate == Gate(90.5, 80)
    assert (project.grace, project.env_file, project.warnings) == (10, None, ())
    assert (project.defaults.agent, project.defaults.timeout) == ("coder", 3600)
    assert project.defaults.labels == {"team": "a"}


def test_a_dot_env_file_is_found_without_being_named(workspace: Path) -> None:
    (workspace / ".env").write_text("A=b\n")
    assert files.project().env_file == ".env"


def test_the_project_is_in_this_folder_or_above(workspace: Path) -> None:
    inside = workspace / "a" / "b"
    inside.mkdir(parents=True)
    assert find_project(inside) is None
    files.project()
    assert find_project(inside) == workspace / "interlock.yaml"
    assert find_project(Path()) == workspace / "interlock.yaml"


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("make test", ("make", "test")),
        ("my-agent --task {prompt}", ("my-agent", "--task", "{prompt}")),
        ("'my-agent \"with words\" {prompt}'", ("my-agent", "with words", "{prompt}")),
        ("make test | tail -5", ("sh", "-c", "make test | tail -5")),
        ("CI=1 make test", ("sh", "-c", "CI=1 make test")),
        ("ls *.py", ("sh", "-c", "ls *.py")),
    ],
)
def test_a_command_line_goes_through_a_shell_only_if_it_needs_one(
    line: str, argv: tuple[str, ...], workspace: Path
) -> None:
    project = files.project(f"agents:\n  a:\n    command: {line}\n")
    command = project.agents["a"].command
    assert command is not None
    assert command.argv == argv


def test_a_shell_gets_the_prompt_in_a_variable(workspace: Path) -> None:
    text = 'agents:\n  a:\n    command: echo "$INTERLOCK_PROMPT" | my-agent\n'
    command = files.project(text).agents["a"].command
    assert command is not None
    assert command.env == {"INTERLOCK_PROMPT": "{prompt}"}
    assert command.takes_prompt


def test_rules_of_ownership_that_overlap_are_warned_of(workspace: Path) -> None:
    text = "agents:\n  a: {command: a, owns: src/}\n  b: {command: b, owns: src/b/}\n"
    assert files.project(text).warnings == (
        "src/b belongs to a (src/) and to b (src/b/); the first one owns it",
    )


def test_an_agent_that_does_not_say_what_it_writes_claims_what_it_owns() -> None:
    program = AgentSpec("a", Command(["a"]), uses=(uses("x"),))
    owner = AgentSpec("a", Command(["a"]), owns=("src/",))
    function = AgentSpec("a", python="m:f")
    task = PlannedTask("t", "a", reads=("docs/",), uses=(uses("gpu"),))
    assert [str(each) for each in claims_of(task, program)] == [
        "write **",
        "read docs/",
        "gpu",
        "x",
    ]
    assert [str(each) for each in claims_of(task, owner)] == ["write src/", "read docs/", "gpu"]
    assert [str(each) for each in claims_of(task, function)] == ["read docs/", "gpu"]


def test_prompts_of_the_command_line_are_a_plan(workspace: Path) -> None:
    project = files.project("agents:\n  a: {command: [a, '{prompt}']}\n")
    plan = plan_of_prompts([(None, "Fix {{it}}!"), ("a", "Fix it"), ("a", "Fix it")], project)
    assert [(task.id, task.prompt, task.agent) for task in plan.tasks] == [
        ("fix-it", "Fix {{it}}!", "a"),
        ("fix-it-2", "Fix it", "a"),
        ("fix-it-3", "Fix it", "a"),
    ]
    with pytest.raises(PlanError) as caught:
        plan_of_prompts([("b", "x"), (None, " ")], project)
    assert str(caught.value).splitlines() == [
        "command line: tasks[1].prompt: the value is missing; use text, or leave the key out",
        "command line: tasks[0].agent: there is no agent 'b'; known: a",
    ]


def test_records_and_secrets_are_there_without_yaml() -> None:
    """Whoever runs tasks without files pays nothing for reading them."""
    code = (
        "import sys, interlock.plan.records, interlock.plan.env_file; print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_a_project_without_a_file_has_no_agents(workspace: Path) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of_prompts([(None, "x"), ("a", "y")], Project(workspace))
    assert str(caught.value).splitlines() == [
        "command line: tasks[0]: it has no agent; add `agent:` to the task or to `defaults`: "
        "there is none yet, define one in interlock.yaml",
        "command line: tasks[1].agent: there is no agent 'a'; none is defined; define it under "
        "`agents` in interlock.yaml",
    ]
