"""The orchestrator: decide, split, run in parallel, merge; or one agent alone."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    InvalidOption,
    Orchestrator,
    OrchestratorException,
    SubTask,
    TaskContext,
)
from tests.unit.patterns.coordination import Notebook, title_in


@dataclass
class Job:
    id: str = "T"
    title: str = "A compiler"
    description: str = "in one week"
    estimated_complexity: float = 80


class Store(Notebook):
    def __init__(self, job: Any = None) -> None:
        super().__init__()
        self.job = job or Job()

    def get_task(self, task_id: Any) -> Any:
        return self.job if task_id == "T" else None


class Worker:
    def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
        return f"{title_in(prompt)} done"


ANSWER = [
    {"subtask_id": 2, "title": "write", "parallel_group": 2, "dependencies": [1]},
    {"subtask_id": 1, "title": "parse", "parallel_group": 1, "files": ["src/p.py"]},
]
CONFIG = {"max_retries": 0}


class Model:
    """Answers what it was given, one after another, and remembers the prompts."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> Any:
        self.prompts.append(prompt)
        return self.answers.pop(0)


def test_a_complex_task_is_split_run_in_parallel_and_merged() -> None:
    store, model = Store(), Model(json.dumps(ANSWER))
    result = Orchestrator(CONFIG, store, Worker, model).execute_task("T")
    assert result["status"] == "completed"
    assert result["decomposed"] is True
    assert result["result"] == "parse done\n\nwrite done"
    assert [each["subtask_id"] for each in result["subtasks"]] == [1, 2]
    assert (result["task_id"], result["error"], result["fallback_reason"]) == ("T", None, None)
    assert store.states == {n: ["pending", "in_progress", "completed"] for n in (1, 2)}
    assert [each["subtask_ids"] for each in store.records] == [[1], [2]]
    (asked,) = model.prompts
    assert "A compiler" in asked
    assert "in one week" in asked
    assert "JSON list" in asked


@pytest.mark.parametrize("complexity", [None, 0, 50])
def test_a_task_that_is_not_complex_is_done_by_one_agent_alone(complexity: Any) -> None:
    store, model = Store(Job(estimated_complexity=complexity)), Model()
    result = Orchestrator(CONFIG, store, Worker, model).execute_task("T")
    assert (result["status"], result["result"]) == ("completed", "A compiler done")
    assert (result["decomposed"], len(result["subtasks"])) == (False, 1)
    assert store.states == {"T": ["pending", "in_progress", "completed"]}
    assert model.prompts == []


def test_the_threshold_is_configured() -> None:
    model = Model(json.dumps(ANSWER))
    store = Store(Job(estimated_complexity=4))
    result = Orchestrator({"complexity_threshold": 3}, store, Worker, model).execute_task("T")
    assert result["decomposed"] is True


@pytest.mark.parametrize(
    "answer",
    [
        f"Here you are:\n```json\n{json.dumps(ANSWER)}\n```\nGood luck!",
        f"I suggest {json.dumps(ANSWER)}.",
        f'As [1] and {{others}} say, {{"two": 2}}: {json.dumps(ANSWER)} (see [2])',
        json.dumps({"subtasks": ANSWER}),
        ANSWER,
    ],
)
def test_an_answer_with_words_around_it_is_understood(answer: Any) -> None:
    result = Orchestrator(CONFIG, Store(), Worker, Model(answer)).execute_task("T")
    assert [each["subtask_id"] for each in result["subtasks"]] == [1, 2]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("I cannot do that.", "no JSON: 'I cannot do that.'"),
        ("[]", "it is empty"),
        ('[{"description": "no title"}]', "0.title: Field required"),
        ('[{"title": " "}]', "0.title"),
        ('[{"title": "x", "estimated_complexity": -1}]', "0.estimated_complexity"),
        ('[{"title": "x"}, {"title": "y", "dependencies": [7]}]', "depends on '7'"),
        ('[{"title": "x", "dependencies": [1]}]', "comes after itself"),
        (
            '[{"title": "x", "parallel_group": 1}, {"title": "run pytest", "parallel_group": 1}]',
            "RULE_SINGLE_AGENT_TESTING",
        ),
        ("[" * 100_000, "no JSON"),
        # It breaks off: what is inside must not be taken for all of it.
        ('Well: [{"title": "x", "steps": [{"title": "y"}]}, {"title"', "no JSON"),
        ('[{"title": "x", "files": ["../../x"]}]', "outside the workspace"),
        ('[{"title": "x", "files": ["a["]}]', "never closed"),
        ('[{"title": "x", "files": ["a\\u0000"]}]', "NUL"),
        ('[{"title": "x", "estimated_duration_minutes": 1e308}]', "estimated_duration_minutes"),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_for_again_and_then_one_agent_does_it_alone(
    answer: str, problem: str
) -> None:
    model = Model(answer, json.dumps(ANSWER))
    assert Orchestrator(CONFIG, Store(), Worker, model).execute_task("T")["decomposed"] is True
    assert problem in model.prompts[1]

    alone = Orchestrator(CONFIG, Store(), Worker, Model(answer, answer)).execute_task("T")
    assert (alone["status"], alone["decomposed"]) == ("completed", False)
    assert alone["result"] == "A compiler done"
    assert "asked 2 times" in alone["fallback_reason"]
    assert problem in alone["fallback_reason"]

    strict = Orchestrator(CONFIG, Store(), Worker, Model(answer, answer), fallback=False)
    with pytest.raises(OrchestratorException) as caught:
        strict.execute_task("T")
    assert problem in str(caught.value)


def test_a_model_that_fails_is_asked_as_often_as_agents_are_and_then_done_without() -> None:
    asked: list[int] = []

    def down(prompt: str) -> str:
        asked.append(1)
        raise ConnectionError("503")

    config = {"max_retries": 1, "retry_backoff_seconds": 0}
    result = Orchestrator(config, Store(), Worker, down).execute_task("T")
    assert len(asked) == 2
    assert "503" in result["fallback_reason"]
    assert result["status"] == "completed"


class Asked:
    def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
        return json.dumps(ANSWER)


class Runs:
    async def run(self, ctx: TaskContext) -> str:
        assert "JSON list" in str(ctx.prompt)
        return json.dumps(ANSWER)


async def answers(prompt: str) -> str:
    assert "JSON list" in prompt
    return json.dumps(ANSWER)


def answers_by_context(ctx: TaskContext) -> str:
    assert "JSON list" in str(ctx.prompt)
    return json.dumps(ANSWER)


@pytest.mark.parametrize("llm", [Asked(), Asked, Runs(), Runs, answers, answers_by_context])
def test_the_model_is_any_agent_or_function(llm: Any) -> None:
    assert Orchestrator(CONFIG, Store(), Worker, llm).execute_task("T")["decomposed"] is True


def test_all_three_decisions_can_be_plugged_in() -> None:
    def split(job: Job) -> list[SubTask]:
        return [SubTask(n, job.id, f"part {n}", "", 1, 1) for n in (1, 2)]

    def merge(job: Job, results: list[dict[str, Any]]) -> dict[str, Any]:
        return {each["subtask_id"]: each["result"] for each in results}

    orchestrator = Orchestrator(
        CONFIG,
        Store(Job(estimated_complexity=0)),
        Worker,
        None,
        should_decompose=lambda job: job.title == "A compiler",
        decompose=split,
        merge=merge,
    )
    assert orchestrator.execute_task("T")["result"] == {1: "part 1 done", 2: "part 2 done"}


def test_subtasks_that_no_run_would_take_are_a_reason_for_one_agent_alone() -> None:
    def split(job: Job) -> list[SubTask]:
        return [SubTask(1, job.id, "x", "", 1, 1, files="../x")]

    result = Orchestrator(CONFIG, Store(), Worker, None, decompose=split).execute_task("T")
    assert (result["status"], result["decomposed"]) == ("completed", False)
    assert "outside the workspace" in result["fallback_reason"]


def test_what_is_wrong_with_the_context_is_said_before_the_model_is_asked() -> None:
    model = Model()
    with pytest.raises(InvalidOption, match=r"context\['places'\]"):
        Orchestrator(CONFIG, Store(), Worker, model).execute_task("T", {"places": {(1, 2): 3}})
    assert model.prompts == []


def test_what_failed_is_said_and_what_was_done_is_kept() -> None:
    class Clumsy(Worker):
        def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
            if title_in(prompt) == "write":
                raise OSError("no ink")
            return super().send_prompt(prompt, context)

    result = Orchestrator(CONFIG, Store(), Clumsy, Model(json.dumps(ANSWER))).execute_task("T")
    assert (result["status"], result["result"]) == ("failed", "parse done")
    assert result["error"] == "1 of 2 not completed: 2 failed: OSError: no ink"

    def merge(job: Any, results: Any) -> None:
        raise ValueError("conflict")

    result = Orchestrator(
        CONFIG, Store(), Worker, Model(json.dumps(ANSWER)), merge=merge
    ).execute_task("T")
    assert (result["status"], result["result"]) == ("failed", None)
    assert result["error"] == "merge: ValueError('conflict')"
    assert [each["status"] for each in result["subtasks"]] == ["completed"] * 2


def test_an_unknown_task_or_nobody_who_knows_it_is_an_error() -> None:
    class Broken:
        def get_task(self, task_id: Any) -> Any:
            raise OSError("disk")

    for manager, said in ((Store(), "has no task"), (None, "get_task"), (Broken(), "disk")):
        with pytest.raises(OrchestratorException, match=said):
            Orchestrator(CONFIG, manager, Worker, None).execute_task("U")
    given = Orchestrator(CONFIG, None, Worker, None).execute_task({"id": 5, "title": "a small one"})
    assert (given["task_id"], given["result"]) == (5, "a small one done")


def test_an_object_is_copied_for_each_attempt_if_it_can_be() -> None:
    class Counts(Worker):
        def __init__(self) -> None:
            self.asked = 0

        def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
            self.asked += 1
            return str(self.asked)

    agent = Counts()
    result = Orchestrator(CONFIG, Store(), agent, Model(json.dumps(ANSWER))).execute_task("T")
    assert (result["result"], agent.asked) == ("1\n\n1", 0)

    class Locked(Worker):
        def __init__(self) -> None:
            self.lock = threading.Lock()

    with pytest.raises(InvalidOption, match="agent_factory"):
        Orchestrator(CONFIG, Store(), Locked(), None)
    Orchestrator(CONFIG, Store(), Locked(), None, agent_factory=Locked)
    with pytest.raises(InvalidOption, match="llm"):
        Orchestrator(CONFIG, Store(), Worker, 42)
    with pytest.raises(InvalidOption, match="agent is 'codex'"):
        Orchestrator(CONFIG, Store(), "codex", None)


def test_a_run_that_is_taken_up_asks_the_model_nothing_again(tmp_path: Path) -> None:
    def run(model: Model, resume: bool) -> str:
        orchestrator = Orchestrator(
            CONFIG, Store(), Worker, model, journal=tmp_path / "j.db", resume=resume
        )
        with orchestrator:
            result = orchestrator.execute_task("T")
            names = {each.task_id for each in orchestrator.coordinator.runtime.outcomes}
            assert {"T/decompose 1", "T/1", "T/2", "T:group 1"} <= names
        return str(result["result"])

    model = Model(json.dumps(ANSWER))
    first = run(model, resume=False)
    assert run(Model(), resume=True) == first
