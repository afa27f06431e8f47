"""Whatever agents and files say: no view lets through what a terminal obeys."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from rich.console import Group, RenderableType

from interlock.model.claim import read, write
from interlock.model.outcome import State
from interlock.model.why import Explanation, HeldClaim, UnansweredQuestion
from interlock.views.cli.agents_table import AgentRow, agents
from interlock.views.cli.graph_text import dot, mermaid
from interlock.views.cli.graph_tree import tree
from interlock.views.terminal.explanation import render_explanation
from interlock.views.terminal.frame import frame
from interlock.views.terminal.status import status
from interlock.views.terminal.summary import summary
from tests.unit.views.runs import HOSTILE, every_state, hostile, many, text_of, why
from tools.run_svg import svg

FACTS = hostile(every_state())
WHY = Explanation(
    HOSTILE,
    State.WAITING,
    1,
    (
        HeldClaim(read(HOSTILE), HOSTILE, write(HOSTILE), 1, False, HOSTILE),
        UnansweredQuestion(HOSTILE, 1),
    ),
    None,
    (HOSTILE,),
    10,
)
NODES = [replace(each, id=f"{HOSTILE}{n}", after=()) for n, each in enumerate(FACTS.tasks)]


def asked(_: str) -> Explanation:
    return WHY


VIEWS: dict[str, RenderableType] = {
    "live": Group(*frame(FACTS, asked, 100, 40)),
    "small": Group(*frame(FACTS, asked, 40, 12)),
    "summary": summary(FACTS),
    "status": status(FACTS, asked, resources=[(HOSTILE, HOSTILE)]),
    "why": render_explanation(WHY),
    "tree": tree(NODES),
    "agents": agents([AgentRow(HOSTILE, HOSTILE, (HOSTILE,), 1, HOSTILE, HOSTILE, note=HOSTILE)]),
}


def harmless(text: str) -> bool:
    return text.replace("\n", "").replace("\ufffd", "").isprintable()


@pytest.mark.parametrize("name", VIEWS)
def test_no_view_lets_a_control_character_through(name: str) -> None:
    shown = text_of(VIEWS[name])
    assert harmless(shown)
    assert "gpj.exe" in shown or "abc" in shown  # the rest of the text is there
    assert "owned" not in shown


def test_nor_do_graphs_for_other_programs() -> None:
    assert harmless(dot(NODES, HOSTILE))
    assert harmless(mermaid(NODES))


def test_a_picture_is_well_formed_and_calls_nobody() -> None:
    made = svg(FACTS, asked, title='{hostile} & "quoted" </title>' + HOSTILE)
    assert ElementTree.fromstring(made).tag == "{http://www.w3.org/2000/svg}svg"
    assert made.count("http") == 1
    assert "<script" not in made
    assert made == svg(FACTS, asked, title='{hostile} & "quoted" </title>' + HOSTILE)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_no_unicode_gets_none(encoding: str) -> None:
    for facts in (FACTS, many(60)):
        for made in (summary(facts), status(facts, why)):
            raw = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
            text_of(made, file=raw).encode(encoding)
