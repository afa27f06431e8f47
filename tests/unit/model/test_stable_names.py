"""Interlock's own agents and data types have names in the journal that are not Python's."""

from __future__ import annotations

import ast
import dataclasses
from enum import Enum
from pathlib import Path

import pytest
from pydantic import BaseModel

import interlock
from interlock import AgentOutcome, EngineConfig, Message, Question, SubTask
from interlock.journal.agent_identity import agent_name
from interlock.journal.schema.codec import Codec
from interlock.journal.schema.own_records import OWN_TYPES
from interlock.model.stable_names import STABLE_NAMES, stable_name_of
from interlock.runtime.project import ask_first
from interlock.runtime.recorded_types import RECORDED_TYPES

SOURCE = Path(interlock.__file__).parent


def used_keys() -> list[str]:
    """The key of every decorated function and class of the package."""
    return [
        mark.args[0].value
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for mark in node.decorator_list
        if isinstance(mark, ast.Call)
        and getattr(mark.func, "id", "") == "stable_name"
        and isinstance(mark.args[0], ast.Constant)
        and isinstance(mark.args[0].value, str)
    ]


def test_every_stable_name_belongs_to_one_function_or_class() -> None:
    assert sorted(used_keys()) == sorted(STABLE_NAMES)
    assert len(set(STABLE_NAMES.values())) == len(STABLE_NAMES)


def test_every_public_data_type_has_a_name_that_is_not_pythons() -> None:
    public = [getattr(interlock, each) for each in interlock.__all__]
    data = {
        each
        for each in public
        if isinstance(each, type)
        and (
            dataclasses.is_dataclass(each)
            or issubclass(each, Enum | BaseModel)
            or hasattr(each, "_fields")
        )
    }
    assert len(data) > 20
    recorded = {*OWN_TYPES.values(), *RECORDED_TYPES.values()}
    assert [each for each in data - recorded if stable_name_of(each) is None] == []


@pytest.mark.parametrize(
    "value",
    [
        SubTask(1, "guide", "outline", "", None, None),
        Message("user", "hello"),
        Question("a", "Which?", 1),
        EngineConfig(default_model="small"),
        AgentOutcome(task_id="a", agent_id="b", error="no"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_written_under_its_stable_name_and_comes_back(value: object) -> None:
    text = Codec().dumps(value)
    assert f'"$":"{stable_name_of(type(value))}"' in text
    assert Codec().loads(text) == value


def test_the_agents_of_users_keep_the_names_that_python_gives_them() -> None:
    class Own(SubTask):
        pass

    assert agent_name(ask_first) == STABLE_NAMES["plan.question"]
    assert agent_name(Own).endswith("<locals>.Own")
    assert agent_name(used_keys) == f"{__name__}:used_keys"
