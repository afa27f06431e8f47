"""The live view fills a terminal of any size, and what it says adds up."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from rich.text import Text

from interlock.journal.state.run_facts import RunFacts
from interlock.model.outcome import State
from interlock.model.why import Explanation
from interlock.views.terminal import footer
from interlock.views.terminal.frame import frame
from interlock.views.terminal.running_rows import RunningRows
from interlock.views.terminal.state_styles import STYLES
from tests.unit.views.runs import NOW, every_state, many, run, task, why

SIZES = [(80, 24), (200, 50), (40, 12), (120, 9), (20, 4), (7, 3), (3, 2), (1, 1), (500, 200)]
RUNS = {
    "empty": run(),
    "every state": every_state(),
    "200 tasks": many(200),
    "2000 tasks": many(2_000),
    "one": run(task("a", State.RUNNING)),
    "ended": run(task("a", State.SUCCEEDED), ended_at=NOW),
    "long ago": run(task("a", State.RUNNING, started_at=0.0), started_at=-1e6),
}


def plain(facts: RunFacts, width: int = 80, height: int = 24) -> list[str]:
    return [line.plain for line in frame(facts, why, width, height)]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_frame_fits_its_terminal_exactly(name: str, width: int, height: int) -> None:
    lines = frame(RUNS[name], why, width, height, left=100.0)
    assert len(lines) == height
    assert [line.plain for line in lines if line.cell_len > width] == []


def test_every_size_there_is_can_be_drawn() -> None:
    for width in range(1, 100):
        for height in range(1, 40, 3):
            lines = frame(RUNS["every state"], why, width, height)
            assert len(lines) == height
            assert max(line.cell_len for line in lines) <= width


def test_only_visible_rows_are_asked_why() -> None:
    asked: list[str] = []

    def ask(task_id: str) -> Explanation:
        asked.append(task_id)
        return why(task_id)

    lines = "\n".join(line.plain for line in frame(RUNS["200 tasks"], ask, 200, 24))
    assert 0 < len(asked) < 24
    assert lines.count("api holds write src/**") == len(asked)


@pytest.mark.parametrize("width", [300, 45, 34, 18])
def test_counts_add_up_in_every_form(width: int) -> None:
    facts = RUNS["200 tasks"]
    said = footer.counts(facts, width).plain
    numbers = [int(each) for each in re.findall(r"\d+", re.sub(r"\(.*?\)", "", said))]
    if "of 200 ended" in said:
        assert numbers == [facts.progress.ended, 200]
    elif "to go" in said:
        assert sum(numbers) == 200
    else:
        assert sorted(numbers)[-1] == 200
        assert sum(numbers) == 400


def test_every_state_is_named_in_the_counts() -> None:
    said = footer.counts(every_state(), 300).plain
    for look in STYLES.values():
        assert look.word in said
    assert "(1 stopping)" in said


def test_a_lane_says_who_does_what_for_how_long() -> None:
    row = next(line for line in plain(every_state()) if "everything" in line)
    assert " ".join(row.split()) == "● everything codex 0:30 ━━━━━─── 62% attempt 2 of 3 writing"


def test_without_a_report_the_estimate_is_shown_as_one() -> None:
    rows = plain(run(task("a", State.RUNNING, estimate=60.0)))
    assert "~50%" in "\n".join(rows)


def test_what_was_told_to_stop_and_is_not_gone_keeps_its_lane() -> None:
    rows = plain(run(task("slow", State.TIMED_OUT, stopping=True)))
    assert any(
        "◌ slow" in row and "timed out, told to stop, has not exited for 0:05" in row
        for row in rows
    )


def test_a_question_comes_first_and_says_how_to_answer() -> None:
    facts = run(task("a", State.RUNNING), task("b", State.NEEDS_YOU, question="Land it?"))
    rows = plain(facts)
    assert "interlock answer TASK" in rows[2]
    assert "? b" in rows[3]
    assert "Land it?" in rows[3]
    assert any("? b" in row for row in plain(facts, 40, 6))


def test_what_waits_says_why() -> None:
    rows = plain(run(task("a")))
    assert any(
        "○ a" in row and "api holds write src/**; all 4 slots are busy" in row for row in rows
    )


def test_blocked_tasks_are_counted_by_whom_they_wait_for() -> None:
    facts = run(
        task("a", State.RUNNING),
        task("done", State.SUCCEEDED),
        *(task(f"b{number}", State.BLOCKED, after=("a", "done")) for number in range(3)),
    )
    assert any("3 blocked by a (3)" in row for row in plain(facts))
    assert not any("done (3)" in row for row in plain(facts))


def test_a_list_that_is_cut_says_so() -> None:
    text = "\n".join(plain(run(*(task(f"t{number}") for number in range(100)))))
    found = re.search(r"Waiting (\d+) of 100", text)
    assert found
    assert text.count("○ t") == int(found[1])


def test_the_last_line_tells_time_money_and_what_ctrl_c_does() -> None:
    facts = run(
        task("a", State.SUCCEEDED, duration=100.0, tokens=12_300, cost=1.5),
        task("b", State.RUNNING),
    )
    last = frame(facts, why, 120, 24, left=200.0)[-1].plain
    assert last.split("  ")[:5] == [
        " 1:00",
        "about 3 min left",
        "1 min 10 s saved",
        "$1.50",
        "12k tokens",
    ]
    assert last.rstrip().endswith("Ctrl-C: let running tasks finish (up to 30 s), then stop")
    assert "Ctrl-C again" in frame(replace(facts, draining=True), why, 120, 24)[-1].plain
    assert "the run continues" in frame(facts, why, 120, 24, hints=footer.LEAVES)[-1].plain


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"paused": True}, "paused"),
        pytest.param(
            {"draining": True},
            "stopping: running tasks may finish",
            id="facts1-stopping: what runs may finish",
        ),
        pytest.param({"active": False}, "interrupted", id="facts2-nobody carries this run out now"),
        ({"ended_at": NOW}, "ended"),
    ],
)
def test_the_first_line_says_what_is_special(facts: dict[str, Any], said: str) -> None:
    assert plain(replace(every_state(), **facts))[0].rstrip().endswith(said)


def test_an_attempt_keeps_its_lane_while_others_end() -> None:
    lanes = RunningRows()
    a, b, c = (task(name, State.RUNNING) for name in "abc")
    assert lanes.place([a, b]) == [a, b]
    assert lanes.place([b]) == [None, b]
    assert lanes.place([b, c]) == [c, b]
    assert lanes.place([c]) == [c]


def test_nothing_is_said_by_colour_alone() -> None:
    marks = [look.mark + look.word for look in STYLES.values()]
    assert len(set(marks)) == len(STYLES)
    assert all(Text(look.mark).cell_len == 1 for look in STYLES.values())
