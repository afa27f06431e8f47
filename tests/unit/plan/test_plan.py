"""What a plan says."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from interlock.errors import PlanError
from interlock.model.claim import uses
from interlock.model.limits import Retry
from interlock.model.template import Template
from interlock.plan.plan_file import load_plan
from tests.unit.plan import files

WHOLE = """\
name: release
description: all of it
max_parallel: 3
fail_fast: true
deadline: 2h
defaults:
  timeout: 10m
  attempts: 2
  priority: low
  reads: shared/
  uses: memo
  labels: {kind: work}
tasks:
  schema:
    prompt: Design the schema.
    writes: schema/
  api:
    agent: coder
    prompt: |
      Build it by {{schema.output}}.
    writes: [src/api/**, tests/api/]
    reads: schema/
    uses: [gpu, db:staging!]
    after: schema
    priority: high
    timeout: 90
    deadline: 2026-12-24T18:00:00+01:00
    attempts: 4
    backoff: 5s
    estimate: 5m
    workspace: shared
    guard: none
    check: make test
    output: json
    ask: "{{schema.output}}: build it?"
    labels: {kind: code, area: 7}
  help:
    agent: helper
    with: {level: 3, deep: [1.5, yes, true, null, "5"], name: {no: 0x10}}
    output: "models:Report"
    writes: []
    deadline: 1h
"""


def test_everything_that_can_be_said(workspace: Path) -> None:
    plan = files.plan(WHOLE)
    assert (plan.name, plan.max_parallel, plan.fail_fast, plan.deadline) == (
        "release",
        3,
        True,
        7200,
    )
    schema, api, help_out = plan.tasks
    assert (schema.id, schema.agent, schema.prompt) == ("schema", "coder", "Design the schema.")
    assert (schema.timeout, schema.retry, schema.priority) == (600, Retry(2), -10)
    assert api.prompt == Template("Build it by {{schema.output}}.\n")
    assert api.ask == Template("{{schema.output}}: build it?")
    assert (api.writes, api.reads) == (("src/api/**", "tests/api/"), ("shared/", "schema/"))
    assert api.uses == (uses("memo"), uses("gpu"), uses("db:staging", exclusive=True))
    assert (api.after, api.priority, api.timeout) == (("schema",), 10, 90)
    zone = timezone(timedelta(hours=1))
    assert api.deadline == datetime(2026, 12, 24, 18, tzinfo=zone)
    assert (api.retry, api.estimate) == (Retry(4, 5), 300)
    assert (api.check, api.output) == ("make test", "json")
    assert api.labels == {"kind": "code", "area": "7"}
    assert str(api.position) == "plan.yaml:17:3"
    assert help_out.kwargs == {
        "level": 3,
        "deep": [1.5, "yes", True, None, "5"],
        "name": {"no": "0x10"},
    }
    assert (help_out.writes, help_out.output, help_out.deadline) == ((), "models:Report", 3600)
    assert help_out.prompt is None
    assert plan.warnings == ()


def test_a_list_of_texts_is_a_plan(workspace: Path) -> None:
    plan = files.plan(
        "tasks:\n- Fix the flaky login test!\n- {prompt: Document it, id: docs}\n- 42\n"
    )
    assert [(task.id, task.prompt) for task in plan.tasks] == [
        ("fix-the-flaky-login-test", "Fix the flaky login test!"),
        ("docs", "Document it"),
        ("42", "42"),
    ]
    assert plan.name == "plan"


def test_what_a_task_says_goes_before_the_plan_the_agent_and_the_project(workspace: Path) -> None:
    project = files.project(
        "agents:\n"
        "  a: {command: [a, '{prompt}'], timeout: 2s, attempts: 2, backoff: 2s}\n"
        "  b: {command: [b, '{prompt}']}\n"
        "defaults: {timeout: 1s, attempts: 9, backoff: 1s, estimate: 1s}\n"
    )
    Path("plan.yaml").write_text(
        "defaults: {backoff: 3s}\n"
        "tasks:\n"
        "  own: {agent: a, prompt: x, timeout: 4s}\n"
        "  by-agent: {agent: a, prompt: x}\n"
        "  by-project: {agent: b, prompt: x}\n"
    )
    found = {task.id: task for task in load_plan(Path("plan.yaml"), project).tasks}
    assert (found["own"].timeout, found["own"].retry) == (4, Retry(2, 3))
    assert (found["by-agent"].timeout, found["by-agent"].retry) == (2, Retry(2, 3))
    assert (found["by-project"].timeout, found["by-project"].retry) == (1, Retry(9, 3))
    assert found["own"].estimate == 1


def test_the_only_agent_of_a_project_needs_no_name(workspace: Path) -> None:
    project = files.project("agents:\n  a: {command: [a, '{prompt}']}\n")
    Path("plan.yaml").write_text("tasks: [x]\n")
    assert load_plan(Path("plan.yaml"), project).tasks[0].agent == "a"


def test_variables_fill_the_holes(workspace: Path) -> None:
    text = (
        "variables: {lang: English, n: 3, files: [a, b], target: }\n"
        "defaults: {agent: '{{who}}'}\n"
        "tasks:\n"
        "  '{{target}}-docs':\n"
        "    prompt: 'In {{ lang }}, {{files}}: \\{{as it is}}'\n"
        "    writes: ['docs/{{lang}}/']\n"
        "    attempts: '{{n}}'\n"
        "    labels: {'in': '{{lang}}'}\n"
    )
    [task] = files.plan(text, lang="no", target="web", who="coder", files="x, y").tasks
    assert task.id == "web-docs"
    assert task.prompt == "In no, x, y: {{as it is}}"
    assert (task.writes, task.retry.attempts) == (("docs/no/",), 3)
    assert task.labels == {"in": "no"}


def test_the_value_of_a_variable_is_never_a_template(workspace: Path) -> None:
    text = "variables: {x: '{{schema.output}}'}\ntasks:\n  a: {prompt: 'Say {{x}}'}\n"
    assert files.plan(text).tasks[0].prompt == "Say {{schema.output}}"


def test_what_is_set_and_not_used_is_a_mistake(workspace: Path) -> None:
    with pytest.raises(PlanError) as caught:
        files.plan("variables: {lang: en}\ntasks: [x]\n", lagn="fr", API_TOKEN="x", other="\udcff")
    assert str(caught.value).splitlines() == [
        "plan.yaml: --set API_TOKEN: this looks like a secret; secrets do not belong in this file: "
        "put the value into the environment or into .env, and the name of the variable under "
        "`secrets`",
        "plan.yaml: --set other: its value is not UTF-8 text",
        "plan.yaml: --set lagn: the plan has no variable 'lagn'; did you mean 'lang'?",
        "plan.yaml: --set API_TOKEN: the plan has no variable 'API_TOKEN'; known: lang",
        "plan.yaml: --set other: the plan has no variable 'other'; known: lang",
    ]


def test_a_task_for_each_item(workspace: Path) -> None:
    plan = files.plan(
        "variables: {pages: [intro, api]}\n"
        "tasks:\n"
        "  page-{{item}}: {for_each: pages, prompt: 'Write {{item}}', writes: 'docs/{{item}}.md'}\n"
        "  check: {for_each: '{{pages}}', prompt: '{{index}}', after: 'page-{{item}}'}\n"
        "  who:\n"
        "    for_each: [{name: a, level: 2}]\n"
        "    prompt: '{{item.name}}'\n"
        "    priority: '{{item.level}}'\n"
        "  all: {prompt: 'Sum up {{page.output}}', after: [check, who], writes: []}\n"
    )
    found = {task.id: task for task in plan.tasks}
    assert list(found) == ["page-intro", "page-api", "check-1", "check-2", "who-1", "all"]
    assert found["page-api"].writes == ("docs/api.md",)
    assert found["check-2"].after == ("page-api",)
    assert (found["who-1"].prompt, found["who-1"].priority) == ("a", 2)
    assert found["all"].after == ("check-1", "check-2", "who-1", "page-intro", "page-api")
    prompt = found["all"].prompt
    assert isinstance(prompt, Template)
    assert prompt.references == ("page-intro", "page-api")


def test_a_task_for_each_item_of_what_was_set(workspace: Path) -> None:
    text = "variables: {pages: }\ntasks:\n- {id: p, for_each: pages, prompt: '{{item}}'}\n"
    assert [task.prompt for task in files.plan(text, pages="a, b").tasks] == ["a", "b"]
    text = "tasks:\n- {for_each: [x, y], prompt: 'Do {{item}}'}\n"
    assert [task.id for task in files.plan(text).tasks] == ["do-x", "do-y"]


def test_for_each_of_nothing_is_no_task_and_what_comes_after_it_waits_for_nothing(
    workspace: Path,
) -> None:
    plan = files.plan("tasks:\n  a: {for_each: [], prompt: x}\n  b: {prompt: x, after: a}\n")
    assert [(task.id, task.after) for task in plan.tasks] == [("b", ())]
    assert plan.warnings == ("tasks.a: `for_each` is empty, so there is no such task",)


def test_only_some_tasks_with_what_they_come_after(workspace: Path) -> None:
    text = (
        "tasks:\n"
        "  a: {prompt: x}\n"
        "  b: {prompt: x}\n"
        "  c: {prompt: '{{a.output}}'}\n"
        "  d: {prompt: x, for_each: [1, 2], after: b}\n"
    )
    assert [task.id for task in files.plan(text, only=["c"]).tasks] == ["a", "c"]
    assert [task.id for task in files.plan(text, only=["d", "c"]).tasks] == [
        *("a", "b", "c", "d-1", "d-2"),
    ]
    with pytest.raises(PlanError, match=r"plan\.yaml: --only cc: there is no task 'cc'; did you"):
        files.plan(text, only=["cc"])


def test_a_prompt_from_a_file_is_a_template_too(workspace: Path) -> None:
    Path("prompts").mkdir()
    Path("prompts/do.md").write_text("Do {{what}} by {{schema.output}}, \\{{braces}}\n")
    text = (
        "variables: {what: it}\n"
        "tasks:\n"
        "  schema: {prompt: x}\n"
        "  api: {prompt_file: prompts/do.md}\n"
    )
    task = files.plan(text).tasks[1]
    assert task.after == ("schema",)
    assert str(task.prompt) == "Do it by {{schema.output}}, \\{{braces}}\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a\xff", "byte 1 is not UTF-8; save it as UTF-8"),
        (b" \n", "it is empty"),
        pytest.param(
            b"x" * (1024 * 1024 + 1),
            "it is larger than 1 MiB; let the prompt tell the agent which file",
            id="content2-it is larger than 1 MiB; a prompt can tell an agent to read",
        ),
        pytest.param(
            b"use ghp_" + b"a1" * 18,
            "it contains a GitHub token; secrets do not belong",
            id=f"use ghp_{'a1' * 18}-there is a GitHub token in it; secrets do not belong",
        ),
        (b"{{nobody.output}}", "{{nobody.output}}: there is no task 'nobody'"),
    ],
)
def test_a_prompt_file_that_cannot_be_used(content: bytes, said: str, workspace: Path) -> None:
    Path("p.md").write_bytes(content)
    with pytest.raises(PlanError) as caught:
        files.plan("tasks:\n  a: {prompt_file: p.md}\n")
    assert str(caught.value).startswith("plan.yaml:2:20: tasks.a.prompt_file: ")
    assert said in str(caught.value)


def test_tasks_that_share_anchors(workspace: Path) -> None:
    plan = files.plan(
        "x-usual: &usual {agent: coder, attempts: 3}\n"
        "tasks:\n"
        "  a: {<<: *usual, prompt: x}\n"
        "  b: {<<: *usual, prompt: y, attempts: 1}\n"
    )
    assert [(task.prompt, task.retry.attempts) for task in plan.tasks] == [("x", 3), ("y", 1)]


def test_warnings_say_what_will_run_one_after_another_and_who_owns_what(workspace: Path) -> None:
    project = files.project(
        "agents:\n"
        "  a: {command: [a, '{prompt}']}\n"
        "  docs: {command: [b, '{prompt}'], owns: docs/}\n"
        "defaults: {agent: a}\n"
    )
    Path("plan.yaml").write_text(
        "tasks:\n  x: {prompt: x}\n  y: {prompt: y}\n  z: {prompt: z, writes: docs/z.md}\n"
    )
    assert load_plan(Path("plan.yaml"), project).warnings == (
        "tasks.z.writes: docs/z.md is owned by agent 'docs', but this task belongs to 'a'",
        "2 tasks have no `writes`, so each claims the whole workspace and they run one after "
        "another: x, y. Add `writes` to run them in parallel",
    )
