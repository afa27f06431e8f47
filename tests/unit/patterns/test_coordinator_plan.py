"""What can be run, and what is refused before anything starts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from interlock import (
    BlankId,
    DependencyCycle,
    DuplicateId,
    InvalidOption,
    InvalidPattern,
    OrchestratorException,
    ParallelAgentCoordinator,
    SubTask,
    UnknownDependency,
)
from interlock.patterns.coordinator.config import parse_settings
from interlock.patterns.coordinator.subtask_groups import is_test
from interlock.patterns.coordinator.subtask_prompts import SubtaskPrompts
from interlock.testing.simulated_ports import simulated_ports
from tests.unit.patterns.coordination import Notebook, Team, coordinator, part, sleeps
from tests.unit.patterns.groups import played


@pytest.mark.parametrize(
    "words",
    [
        "run pytest",
        "Test the parser",
        "write tests",
        "Testing",
        "use unittest.",
        "unit-test it",
        "mend test_parser.py",
        "all of tests/unit/test_*.py",
        "TESTS",
    ],
)
def test_these_words_make_a_test(words: str) -> None:
    assert is_test(part(1, title=words))
    assert is_test(part(1, description=f"first this, then {words}"))
    assert not is_test(part(1, title=words, is_test=False))


@pytest.mark.parametrize(
    "words",
    ["use the latest version", "contest", "attest to it", "testament", "fastest_path", "protests"],
)
def test_these_words_do_not(words: str) -> None:
    assert not is_test(part(1, title=words, description=words))
    assert is_test(part(1, title=words, is_test=True))


@pytest.mark.parametrize(
    "name",
    [
        "run_tests.sh",
        "models_test.py",
        "handler_test.go",
        "unit_test",
        "integration_tests",
        "e2e_tests",
        "unittests",
        "pytests",
        "tests2",
        "UserServiceTest.java",
        "ParserTests.cs",
        "testLogin",
        "__tests__/button.js",
        "button.test.ts",
    ],
)
def test_an_underscore_or_a_capital_separates_words_in_names_of_tests(name: str) -> None:
    assert is_test(part(1, title=f"mend {name}"))
    assert is_test(part(1, description=f"first this, then {name}."))


@pytest.mark.parametrize(
    "name", ["latest_models.py", "contest_handler.go", "testimony", "AttestKey", "greatest2"]
)
def test_an_underscore_or_a_capital_makes_no_test_of_another_word(name: str) -> None:
    assert not is_test(part(1, title=name, description=name))


def _refused(error: type[Exception], parts: list[SubTask], **config: Any) -> str:
    """What a coordinator says to this; it has started nothing, and told nobody of anything."""

    async def main() -> str:
        team, notebook = Team(), Notebook()
        with pytest.raises(error) as caught:
            await coordinator(team, notebook, **config).execute(parts, "T")
        assert team.made == 0
        assert notebook.states == {}
        assert notebook.records == []
        return str(caught.value)

    return played(main)


def test_a_violation_in_group_3_is_found_before_group_1_starts_and_names_both() -> None:
    parts = [part(1, 1), part(2, 2), part(3, 3), part(4, 3, description="run pytest")]
    said = _refused(OrchestratorException, parts)
    assert said.startswith("RULE_SINGLE_AGENT_TESTING: subtask 4 ('s4')")
    assert "subtask 3 ('s3')" in said
    assert "group 3" in said


def test_two_tests_cannot_share_a_group_either() -> None:
    parts = [part(1, 1, is_test=True), part(2, 1, title="tests")]
    assert "subtask 2 ('tests')" in _refused(OrchestratorException, parts)


def test_a_test_in_a_group_of_its_own_or_in_none_is_fine() -> None:
    async def main() -> None:
        parts = [part(1, 1), part(2, 2, is_test=True), part(3, title="test"), part(4, title="test")]
        assert len(await coordinator(Team()).execute(parts, "T")) == 4
        together = [part(1, 1), part(2, 1, is_test=True)]
        file_based = coordinator(Team(), parallelization_strategy="file_based")
        assert len(await file_based.execute(together, "T")) == 2

    played(main)


def test_nobody_can_depend_on_a_later_group_or_on_what_has_none() -> None:
    said = _refused(OrchestratorException, [part(1, 1, 2), part(2, 2)])
    assert "subtask 1 ('s1') in group 1 depends on subtask 2 ('s2')" in said
    said = _refused(OrchestratorException, [part(1, 1, 2), part(2)])
    assert "which runs later, in no group" in said


def test_wrong_dependencies_and_ids_are_named() -> None:
    assert "depends on '7'" in _refused(UnknownDependency, [part(1, 1, 7)])
    assert "1 -> 2 -> 1" in _refused(DependencyCycle, [part(1, 1, 2), part(2, 1, 1)])
    assert "two subtasks have the id '1'" in _refused(DuplicateId, [part(1), part("1")])
    stranger = SubTask(3, "other", "x", "", 1, 1)
    assert "belongs to task 'other', not to 'T'" in _refused(OrchestratorException, [stranger])


def test_a_pattern_that_cannot_be_read_is_named_with_its_subtask() -> None:
    assert "T/2" in _refused(InvalidPattern, [part(1, 1), part(2, 2, files="src/[")])


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"subtask_id": " "}, BlankId),
        ({"subtask_id": None}, InvalidOption),
        ({"subtask_id": True}, InvalidOption),
        ({"title": 5}, InvalidOption),
        ({"estimated_complexity": -1}, InvalidOption),
        ({"estimated_duration_minutes": "long"}, InvalidOption),
        ({"parallel_group": "first"}, InvalidOption),
        ({"dependencies": 1.5}, InvalidOption),
        ({"dependencies": [None]}, InvalidOption),
        ({"files": 3}, InvalidOption),
        ({"is_test": "no"}, InvalidOption),
    ],
)
def test_an_impossible_subtask_cannot_be_made(
    changes: dict[str, Any], error: type[Exception]
) -> None:
    good: dict[str, Any] = {"subtask_id": 1, "parent_task_id": 1, "title": "x", "description": ""}
    good |= {"estimated_complexity": 1, "estimated_duration_minutes": 1}
    SubTask(**good)
    with pytest.raises(error, match=next(iter(changes))):
        SubTask(**good | changes)


@pytest.mark.parametrize(
    "config",
    [
        {"max_parallel_agents": 0},
        {"max_parallel_agents": True},
        {"agent_timeout_seconds": 0},
        {"agent_timeout_seconds": -1},
        {"deadline_seconds": 0},
        {"max_retries": -1},
        {"retry_failed_agents": "yes"},
        {"parallelization_strategy": "all at once"},
        {"retry_backoff_seconds": "soon"},
        {"complexity_threshold": "high"},
    ],
)
def test_an_impossible_configuration_is_refused_by_name(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(config))):
        ParallelAgentCoordinator(None, Team().make, config)


def test_a_slip_of_the_pen_in_the_configuration_is_seen_and_the_rest_is_for_agents() -> None:
    with pytest.raises(InvalidOption, match="did you mean 'max_parallel_agents'"):
        ParallelAgentCoordinator(None, Team().make, {"max_parallel_agent": 3})
    ParallelAgentCoordinator(None, Team().make, {"model": "large"})


def test_what_makes_no_agents_or_awaits_its_manager_is_refused() -> None:
    class Slow:
        async def update_subtask(self, subtask_id: int, state: str) -> None: ...

    with pytest.raises(InvalidOption, match="agent_factory"):
        ParallelAgentCoordinator(None, 42)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="update_subtask"):
        ParallelAgentCoordinator(Slow(), Team().make)


def test_the_prompt_has_the_subtask_the_parent_and_the_context_and_names_no_other() -> None:
    async def main() -> None:
        team = Team()
        parts = [
            part(1, 1, title="parser", description="parse it", files=["src/p.py"]),
            part(2, 1, 1, title="writer"),
        ]
        parent = {"id": "T", "title": "A compiler", "description": "in one week"}
        await coordinator(team).execute(parts, parent, {"style": "plain", "numbers": [1, 2]})
        prompt = team.prompts["parser"]
        for expected in ("parser", "parse it", "src/p.py", "A compiler", "in one week"):
            assert expected in prompt
        assert "- style: plain\n- numbers: [1, 2]" in prompt
        assert "writer" not in prompt
        assert "parser" not in team.prompts["writer"]

    played(main)


def test_a_parent_may_be_an_object_or_just_an_id() -> None:
    class Parent:
        id = "T"
        title = "A compiler"
        description = None

    assert "this task: A compiler\n" in SubtaskPrompts(Parent(), {}).of(part(1))
    assert "this task: 7\n" in SubtaskPrompts(7, {}).of(part(1))
    assert SubtaskPrompts(None, {}).of(part(1)) == "Your part: s1"


def test_a_context_that_cannot_be_written_down_is_refused_by_name() -> None:
    circle: dict[str, Any] = {}
    circle["circle"] = circle

    class Mute:
        def __str__(self) -> str:
            raise LookupError

    for context in (circle, {"circle": {(1, 2): 3}}, {"circle": Mute()}):
        with pytest.raises(InvalidOption, match=r"context\['circle'\]"):
            SubtaskPrompts(None, context)


@pytest.mark.parametrize(
    "number", [10**400, 10**5000, 1e308, float("nan")], ids=["1", "2", "3", "4"]
)
def test_a_number_that_nobody_means_is_refused_by_name(number: Any) -> None:
    with pytest.raises(InvalidOption, match=r"subtask 1 .*estimated_complexity"):
        SubTask(1, "T", "x", "", number, 1)
    with pytest.raises(InvalidOption, match=r"subtask 1 .*estimated_duration_minutes"):
        SubTask(1, "T", "x", "", 1, number)
    with pytest.raises(InvalidOption, match="subtask_id"):
        SubTask(number, "T", "x", "", 1, 1)


def test_a_subtask_in_the_form_of_the_original_is_accepted() -> None:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    original = SubTask(
        subtask_id=1,
        parent_task_id="T",
        title="s1",
        description="",
        estimated_complexity=30.0,
        estimated_duration_minutes=60,
        dependencies=[],
        parallelizable=True,
        parallel_group=1,
        status="pending",
        created_at=made,
    )
    assert (original.status, original.created_at, original.parallelizable) == (
        *("pending", made),
        True,
    )
    with pytest.raises(InvalidOption, match="parallelizable is 'no'"):
        part(1, parallelizable="no")


def test_a_subtask_that_is_not_parallelizable_runs_alone() -> None:
    async def main() -> None:
        team = Team(**{f"s{n}": sleeps(5) for n in (1, 2, 3)})
        parts = [part(1, 1), part(2, 1), part(3, 1, parallelizable=False)]
        assert len(await coordinator(team).execute(parts, "T")) == 3
        begins = team.story.index("s3 begins")
        assert team.story[begins + 1] == "s3 ends"
        assert team.most == 2

    played(main)


def _config_of_agents(config: dict[str, Any], context: dict[str, Any]) -> tuple[Any, str]:
    """What agents are initialised with, and their prompt."""
    seen: list[Any] = []

    class Agent:
        async def initialize(self, config: dict[str, Any]) -> None:
            seen.append(config)

        async def send_prompt(self, prompt: str, context: dict[str, Any]) -> None:
            seen.append(prompt)

    async def main() -> None:
        coord = ParallelAgentCoordinator(None, Agent, config, ports=simulated_ports(0))
        [result] = await coord.execute([part(1)], "T", context)
        assert result["status"] == "completed"

    played(main)
    return seen[0], seen[1]


def test_a_configuration_may_have_sections() -> None:
    sections = {
        "parallel_execution": {"max_parallel_agents": 1, "max_retries": 0},
        "agent": {"model": "small"},
    }
    assert _config_of_agents(sections, {})[0] == {"model": "small"}
    settings = parse_settings(sections)
    assert (settings.max_parallel, settings.retry.attempts) == (1, 1)
    assert _config_of_agents({"model": "large"}, {})[0]["model"] == "large"
    with pytest.raises(InvalidOption, match="did you mean 'max_retries'"):
        parse_settings({"parallel_execution": {"max_retrys": 0}})
    with pytest.raises(InvalidOption, match="'agent'"):
        parse_settings({"agent": "small"})


def test_the_context_may_have_the_configuration_of_agents_which_no_prompt_shows() -> None:
    context = {"agent_config": {"api_key": "k-123"}, "style": "plain"}
    config, prompt = _config_of_agents({"agent": {"model": "small"}}, context)
    assert config == {"api_key": "k-123"}
    assert "plain" in prompt
    assert "k-123" not in prompt
    with pytest.raises(InvalidOption, match="agent_config"):
        _config_of_agents({}, {"agent_config": "small"})
