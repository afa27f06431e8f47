"""Prompts that quote results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import AgentFailed, InvalidOption
from interlock.journal.schema.codec import Codec
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.model.template import LONGEST, Reference, Template


def outcomes(**results: Any) -> dict[str, Outcome[Any]]:
    return {name: Outcome(name, State.SUCCEEDED, result) for name, result in results.items()}


@dataclass
class Report:
    title: str
    pages: tuple[int, ...]


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("nothing to quote", "nothing to quote"),
        ("Use {{schema.output}}!", "Use the schema!"),
        ("{{ schema.output }}{{schema.status}}", "the schemasucceeded"),
        ("{{data.output}}", '{"names": ["é", "b"], "n": 1}'),
        ("{{data.output.names.1}} {{data.output.n}}", "b 1"),
        ("{{report.output}}", '{"title": "T", "pages": [1, 2]}'),
        ("{{report.output.title}}", "T"),
        ("{{nothing.output}}", "null"),
        (r"as it is: \{{schema.output}}, {single}", "as it is: {{schema.output}}, {single}"),
        ("{{schema.attempts}}", "0"),
        ("{{unclosed", "{{unclosed"),
    ],
)
def test_what_is_quoted_stands_in_the_text(text: str, rendered: str) -> None:
    known = outcomes(
        schema="the schema",
        data={"names": ["é", "b"], "n": 1},
        report=Report("T", (1, 2)),
        nothing=None,
    )
    assert Template(text).render(known) == rendered


def test_references_are_named_once_and_in_order() -> None:
    template = Template("{{b.output}} {{a.v2.output}} {{b.status}}")
    assert template.references == ("b", "a.v2")


@pytest.mark.parametrize("text", ["{{schema}}", "{{schema.outptu}}", "{{}}", "{{.output}}"])
def test_what_names_no_field_of_a_task_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="names no field of a task"):
        Template(text)


@pytest.mark.parametrize(
    "text", ["{{data.output.no}}", "{{data.output.a.x}}", "{{data.output.list.7}}"]
)
def test_a_part_that_is_not_there_is_a_failure_for_good(text: str) -> None:
    with pytest.raises(AgentFailed, match="the result has no") as caught:
        Template(text).render(outcomes(data={"a": 1, "list": [1]}))
    assert not caught.value.retryable


def test_methods_and_private_parts_are_no_parts_of_a_result() -> None:
    for name in ("__class__", "_secret", "bit_length"):
        with pytest.raises(AgentFailed):
            Template(f"{{{{a.output.{name}}}}}").render(outcomes(a=1))


def test_the_middle_of_a_long_result_is_left_out_and_that_is_said() -> None:
    text = Template("{{a.output}}").render(outcomes(a="x" * LONGEST + "end"))
    assert len(text) < LONGEST + 100
    assert text.endswith("end")
    assert "[... 3 characters left out ...]" in text


def test_data_that_json_cannot_hold_is_printed() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert Template("{{a.output}}").render(outcomes(a=loop)) == "[[...]]"
    assert Template("{{a.output}}").render(outcomes(a={(1, 2): 3})) == "{(1, 2): 3}"
    assert Template("{{a.output}}").render(outcomes(a={"b", "a"})) == '["a", "b"]'


def test_a_name_may_stand_for_several_tasks() -> None:
    template = Template(["all: ", Reference("page", "output", tasks=("page-1", "page-2"))])
    assert template.references == ("page-1", "page-2")
    known = outcomes(**{"page-1": "one", "page-2": "two"})
    assert template.render(known) == "all: page-1:\none\n\npage-2:\ntwo"
    assert str(template) == "all: {{page.output}}"


@given(st.lists(st.sampled_from(["{{", "}}", "a.output", "\\", " ", "x", "{{a.output}}", "{"])))
def test_a_template_as_text_is_the_same_template(parts: list[str]) -> None:
    try:
        template = Template("".join(parts))
    except InvalidOption:
        return
    known = outcomes(a="A")
    assert Template(str(template)).render(known) == template.render(known)


def test_a_task_comes_after_what_its_prompt_quotes() -> None:
    task = Task("b", prompt=Template("{{a.output}} {{c.output}}"), after=["c", "d"])
    assert task.after == ("c", "d", "a")


def test_a_task_with_a_template_comes_back_from_the_journal() -> None:
    codec = Codec()
    group = Reference("page", "output", ("x",), ("page-1", "page-2"))
    task = Task("b", prompt=Template(["all ", group]))
    text, same = codec.task(task)
    assert codec.loads(text) == task
    assert codec.task(task.replace(prompt="all {{page.output.x}}"))[1] != same
    assert codec.task(Task("other", prompt=Template(["all ", group])))[1] == same
