"""A Runtime for a project: its agents by name, and the tasks of its plans."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import InvalidOption, NotAnAgent, Runtime, Task, TaskContext, Template, write
from interlock.model.claim import Claim, Mode, uses
from interlock.model.command import Command
from interlock.model.limits import Retry
from interlock.plan.records import AgentSpec, Plan, PlannedTask, Project
from interlock.runtime.project import ProjectAgents, tasks_of

CODE = """
from interlock import TaskContext

def shout(ctx: TaskContext, times: int = 1) -> str:
    return str(ctx.prompt).upper() * times

class Stepper:
    role = "stepper"
    def run_step(self) -> str:
        return "stepped"

broken = 3
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "team_of_this_test.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    echo = Command(["echo", "{prompt}"])
    agents = {
        "shouter": AgentSpec(
            "shouter",
            python="team_of_this_test:shout",
            instances=1,
            uses=(uses("agent:shouter"),),
        ),
        "stepper": AgentSpec("stepper", python="team_of_this_test:Stepper"),
        "broken": AgentSpec("broken", python="team_of_this_test:broken"),
        "missing": AgentSpec("missing", python="no_such_module_here:x"),
        "echo": AgentSpec("echo", command=echo, owns=("docs/",), secrets=("KEY",), timeout=9.0),
        "free": AgentSpec("free", command=echo),
    }
    return Project(tmp_path, agents=agents, capacity={"agent:shouter": 1}, protected=("secret/**",))


def _claims(task: Task) -> set[str]:
    return {str(each) for each in task.claims}


def test_an_agent_is_found_by_its_name_and_stays_the_same(project: Project) -> None:
    agents = ProjectAgents(project)
    assert agents.named("shouter") is agents.named("shouter")
    assert agents.named("stepper").run_step() == "stepped"


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("nobody", InvalidOption, "shouter"),
        ("broken", NotAnAgent, "3 is no agent"),
        ("missing", NotAnAgent, "no_such_module_here cannot be imported"),
    ],
)
def test_what_is_no_agent_is_said_with_its_name(
    project: Project, name: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ProjectAgents(project).named(name)


def test_a_program_is_given_the_secrets_that_its_agent_names_and_goes_by_the_agents_name(
    project: Project,
) -> None:
    made = ProjectAgents(project).named("echo")
    assert (made.name, made.pass_env) == ("echo", ("KEY",))


def test_a_program_that_does_not_say_what_it_writes_claims_what_its_agent_owns(
    project: Project,
) -> None:
    plan = Plan(
        "p",
        (
            PlannedTask("owner", "echo", "x"),
            PlannedTask("anybody", "free", "x"),
            PlannedTask("reader", "free", "x", writes=(), reads=("a",)),
            PlannedTask("python", "stepper"),
        ),
    )
    owner, anybody, reader, python = tasks_of(plan, ProjectAgents(project))
    assert _claims(owner) == {"write docs/"}
    assert _claims(anybody) == {"write **"}
    assert _claims(reader) == {"read a"}
    assert _claims(python) == set()


def test_a_task_submitted_by_hand_gets_what_the_project_says_of_its_agent(
    project: Project,
) -> None:
    async def main() -> Task:
        async with Runtime.for_project(project) as rt:
            rt.pause()
            handle = rt.submit(rt.agent("echo"), id="a", prompt="x")
            handle.cancel()
            return handle.task

    task = asyncio.run(main())
    assert _claims(task) == {"write docs/"}
    assert (task.timeout, task.labels["agent"]) == (9.0, "echo")


def test_what_a_task_says_itself_goes_before_what_the_project_says(project: Project) -> None:
    async def main() -> Task:
        async with Runtime.for_project(project) as rt:
            rt.pause()
            agent = rt.agent("echo")
            handle = rt.submit(
                agent, id="a", prompt="x", writes="b", timeout=1, retry=Retry(attempts=2)
            )
            handle.cancel()
            return handle.task

    task = asyncio.run(main())
    assert (_claims(task), task.timeout, task.retry.attempts) == ({"write b"}, 1.0, 2)


def test_the_tasks_of_a_plan_run_with_results_in_prompts(project: Project) -> None:
    plan = Plan(
        "p",
        (
            PlannedTask("a", "shouter", "one "),
            PlannedTask("b", "shouter", Template("{{a.output}}two "), kwargs={"times": 2}),
        ),
    )

    async def main() -> Any:
        async with Runtime.for_project(project) as rt:
            return await rt.run(rt.tasks_from(plan))

    assert asyncio.run(main())["b"].result == "ONE TWO ONE TWO "


def test_instances_are_a_claim_with_a_capacity(project: Project) -> None:
    plan = Plan("p", (PlannedTask("a", "shouter", "x"),))
    assert Claim("agent:shouter", Mode.USE) in tasks_of(plan, ProjectAgents(project))[0].claims


@pytest.mark.parametrize(("answer", "status"), [("yes", "succeeded"), (" No ", "skipped")])
def test_a_question_is_asked_before_its_task_starts(
    project: Project, answer: str, status: str
) -> None:
    plan = Plan("p", (PlannedTask("a", "shouter", "x", ask="Really?"),))

    async def main() -> str:
        async with Runtime.for_project(project) as rt:
            tasks = rt.tasks_from(plan)
            handles = rt.submit_all(tasks)
            async for event in rt.events():
                if event.kind == "needs_you":
                    break
            assert [each.question for each in rt.questions()] == ["Really?"]
            assert rt.progress().blocked == 1
            rt.answer("a?", answer)
            return (await handles[1]).status

    assert asyncio.run(main()) == status


def test_a_check_needs_a_program(project: Project) -> None:
    plan = Plan("p", (PlannedTask("a", "shouter", "x", check="true"),))
    with pytest.raises(InvalidOption, match="a check needs an agent that is a program"):
        tasks_of(plan, ProjectAgents(project))
    checked = Plan("p", (PlannedTask("a", "echo", "x", check="make test"),))
    assert tasks_of(checked, ProjectAgents(project))[0].agent.check == "make test"


def test_a_runtime_without_a_project_says_how_to_get_one() -> None:
    with pytest.raises(InvalidOption, match="load_project"):
        Runtime().agent("codex")
    with pytest.raises(InvalidOption, match="for_project"):
        Runtime().tasks_from(Plan("p", ()))


def test_protected_paths_and_options_of_the_project_hold(project: Project) -> None:
    async def main() -> None:
        async with Runtime.for_project(project, max_parallel=2) as rt:
            rt.submit(_nothing, claims=[write("secret/x")])

    with pytest.raises(Exception, match="protected"):
        asyncio.run(main())


async def _nothing(ctx: TaskContext) -> None:
    return
