"""How agents are made, initialised, asked and cleaned up."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from interlock import AgentFailed, ParallelAgentCoordinator, SubTask, TaskContext
from tests.unit.patterns.coordination import part, statuses


class Plain:
    """Notes what is done with it."""

    story: list[str]

    def __init__(self) -> None:
        self.story.append("made")

    def initialize(self, config: dict[str, Any]) -> None:
        self.story.append(f"initialized for {config['max_retries']} {config['model']}")

    def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
        self.story.append(f"asked {prompt.splitlines()[-1]} with {context}")
        return "answer"

    def cleanup(self) -> None:
        self.story.append("cleaned up")


class Async(Plain):
    async def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().send_prompt(prompt, context)

    async def cleanup(self) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().cleanup()


CONFIG = {"max_retries": 1, "model": "large", "retry_backoff_seconds": 0}


def results_of(factory: Any, **config: Any) -> list[dict[str, Any]]:
    coord = ParallelAgentCoordinator(None, factory, CONFIG | config)
    return coord.execute_parallel([part(1)], "T", {"key": [1]})


def _wrapped(kind: type) -> Any:
    def make() -> Any:
        return kind()

    return make


def _wrapped_async(kind: type) -> Any:
    async def make() -> Any:
        await asyncio.sleep(0)
        return kind()

    return make


@pytest.mark.parametrize("kind", [Plain, Async])
@pytest.mark.parametrize("how", [lambda kind: kind, _wrapped, _wrapped_async])
def test_an_agent_is_made_initialised_asked_and_cleaned_up(how: Any, kind: type[Plain]) -> None:
    Plain.story = []
    (result,) = results_of(how(kind))
    assert (result["status"], result["result"]) == ("completed", "answer")
    assert Plain.story == [
        "made",
        "initialized for 1 large",
        "asked - key: [1] with {'key': [1]}",
        "cleaned up",
    ]


@pytest.mark.parametrize("kind", [Plain, Async])
def test_an_agent_that_fails_is_cleaned_up_and_the_next_attempt_has_a_fresh_one(
    kind: type[Plain],
) -> None:
    Plain.story = []

    class Fails(kind):  # type: ignore[valid-type,misc]
        def initialize(self, config: dict[str, Any]) -> None:
            super().initialize(config)
            if self.story.count("made") == 1:
                raise OSError("no connection")

    (result,) = results_of(Fails)
    assert (result["status"], result["attempts"]) == ("completed", 2)
    assert Plain.story[:3] == ["made", "initialized for 1 large", "cleaned up"]
    assert Plain.story.count("cleaned up") == 2


def test_an_agent_that_is_initialised_already_is_not_initialised_again() -> None:
    Plain.story = []

    class Ready(Plain):
        is_initialized = True

    class AlsoReady(Plain):
        def initialized(self) -> bool:
            return True

    for kind in (Ready, AlsoReady):
        assert results_of(kind)[0]["status"] == "completed"
    assert not any(line.startswith("initialized") for line in Plain.story)


def test_an_agent_that_is_cut_off_is_cleaned_up() -> None:
    Plain.story = []

    class Hangs(Async):
        async def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:  # type: ignore[override]
            await asyncio.Event().wait()
            raise AssertionError

    (result,) = results_of(Hangs, max_retries=0, agent_timeout_seconds=0.05)
    assert result["status"] == "timeout"
    assert Plain.story[-1] == "cleaned up"


def test_a_failed_clean_up_is_logged_as_such_and_the_answer_stands(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Plain.story = []

    class Untidy(Plain):
        def cleanup(self) -> None:
            raise OSError("stuck")

    with caplog.at_level(logging.ERROR, "interlock"):
        assert results_of(Untidy)[0]["result"] == "answer"
    assert [each.message for each in caplog.records] == ["cleanup_failed"]


@pytest.mark.parametrize("kind", [Plain, Async])
@pytest.mark.parametrize("leaves_by", [SystemExit, KeyboardInterrupt])
def test_a_clean_up_that_wants_to_end_the_program_does_not_undo_what_was_done(
    kind: type[Plain], leaves_by: type[BaseException]
) -> None:
    Plain.story = []

    class Leaves(kind):  # type: ignore[valid-type,misc]
        def cleanup(self) -> None:
            raise leaves_by

    (result,) = results_of(Leaves)
    assert (result["status"], result["result"]) == ("completed", "answer")


def test_a_factory_that_fails_is_a_failed_attempt() -> None:
    made: list[int] = []

    def factory() -> Any:
        made.append(1)
        if len(made) == 1:
            raise OSError("no licence")
        return Plain()

    Plain.story = []
    (result,) = results_of(factory)
    assert (result["status"], result["attempts"]) == ("completed", 2)
    (result,) = results_of(lambda: None)
    assert (result["status"], result["attempts"]) == ("failed", 2)
    assert "returned None" in result["error"]


def test_send_prompt_wins_over_run_and_run_is_used_without_it() -> None:
    class Both:
        def run(self, ctx: TaskContext) -> str:
            return "ran"

        def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
            return "was asked"

    class Runs:
        def run(self, ctx: TaskContext) -> str:
            return f"{ctx.task.id}: {ctx.prompt}"

    class RunsAsync:
        async def run(self, ctx: TaskContext) -> str:
            await asyncio.sleep(0)
            return f"{ctx.task.id}: {ctx.prompt}"

    class Steps:
        def run_step(self) -> str:
            return "step"

    assert results_of(Both)[0]["result"] == "was asked"
    for kind in (Runs, RunsAsync, _wrapped(Runs), _wrapped(RunsAsync), _wrapped_async(Runs)):
        assert results_of(kind)[0]["result"].endswith("Your part: s1\n\nContext:\n- key: [1]")
    assert results_of(Steps)[0]["result"] == "step"


def test_functions_are_agents_too_wherever_they_run() -> None:
    def blocking(ctx: TaskContext) -> str:
        return str(ctx.prompt)

    async def on_the_loop(ctx: TaskContext) -> str:
        await ctx.sleep(0)
        return str(ctx.prompt)

    for agent in (blocking, on_the_loop):
        for how in (lambda kind: lambda: kind, _async_returning):
            assert "Your part: s1" in results_of(how(agent))[0]["result"]
    (result,) = results_of(lambda: 42)
    assert (result["status"], result["attempts"]) == ("failed", 2)


def _async_returning(agent: Any) -> Any:
    async def make() -> Any:
        return agent

    return make


def test_an_agent_that_yields_has_failed_because_nothing_of_it_has_run() -> None:
    class Yields:
        def send_prompt(self, prompt: str, context: dict[str, Any]) -> Any:
            yield "answer"

    class YieldsAsync:
        async def send_prompt(self, prompt: str, context: dict[str, Any]) -> Any:
            yield "answer"

    for kind in (Yields, YieldsAsync, _wrapped(Yields), _wrapped_async(YieldsAsync)):
        (result,) = results_of(kind)
        assert (result["status"], result["attempts"]) == ("failed", 1)
        assert "send_prompt() instead of a value" in result["error"]


def test_a_subtask_may_be_called_like_the_attempt_of_another() -> None:
    def agent() -> str:
        return "done"

    # An agent from a factory works as a child of its attempt, and that has a name as well.
    once = CONFIG | {"max_retries": 0}
    with ParallelAgentCoordinator(None, lambda: agent, once) as coord:
        parts = [part("1", 1), part("1/attempt 1", 1), part("1/attempt 1'", 1)]
        assert set(statuses(coord.execute_parallel(parts, "T")).values()) == {"completed"}
        again = coord.execute_parallel([SubTask("attempt 1", "T/1", "x", "", 1, 1)], "T/1")
        assert statuses(again) == {"attempt 1": "completed"}


def test_an_agent_that_says_so_is_not_asked_again() -> None:
    def agent() -> None:
        raise AgentFailed("no such model", retryable=False)

    (result,) = results_of(lambda: agent)
    assert (result["attempts"], result["error"]) == (1, "AgentFailed: no such model")


def test_a_result_names_the_agent_as_it_calls_itself_or_as_we_do() -> None:
    class Named(Plain):
        agent_id = "ada"

    Plain.story = []
    assert results_of(Named)[0]["agent_id"] == "ada"
    assert results_of(Plain)[0]["agent_id"] == "T/1#1"


def test_agents_do_not_share_the_context() -> None:
    class Greedy(Plain):
        def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
            context["key"].append(2)
            return str(context)

    Plain.story = []
    context = {"key": [1]}
    coord = ParallelAgentCoordinator(None, Greedy, CONFIG)
    results = coord.execute_parallel([part(1, 1), part(2, 1)], "T", context)
    assert [each["result"] for each in results] == ["{'key': [1, 2]}"] * 2
    assert context == {"key": [1]}


def test_the_end_of_memory_is_the_failure_of_its_subtask_alone() -> None:
    async def agent(ctx: TaskContext) -> str:
        if "s1" in str(ctx.prompt):
            raise MemoryError
        return "fine"

    with ParallelAgentCoordinator(None, lambda: agent, CONFIG) as coord:
        results = coord.execute_parallel([part(1, 1), part(2, 1)], "T")
    assert statuses(results) == {1: "failed", 2: "completed"}
