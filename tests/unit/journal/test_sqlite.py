"""The journal in a file: what was acknowledged is there when it is opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import InterlockError
from interlock.journal.reader import Reader
from interlock.journal.sqlite import SqliteJournal
from interlock.model.event import Event, Kind
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.unit.journal.story import AGENT, KNOWN, Story, opened, run


def test_what_was_appended_is_there_after_reopening(tmp_path: Path) -> None:
    story = Story()
    told = [story.tell(Kind.RUN_STARTED, "", {"run": "r1"}), *story.life(Task("a"), {"n": 1})]

    async def first() -> None:
        journal = await opened(tmp_path / "j.db")
        await journal.append(told[:3])
        await journal.append(told[3:])
        journal.close()

    async def second() -> tuple[list[Event], int]:
        journal = await opened(tmp_path / "j.db")
        found, last = list(journal.since(0)), journal.last
        journal.close()
        return found, last

    run(first())
    found, last = run(second())
    assert found == told
    assert last == told[-1].number


def test_a_reader_sees_an_append_as_soon_as_it_is_acknowledged(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        story = Story()
        with Reader(tmp_path / "j.db") as reader:
            (found,) = reader.runs()
            for name in "abc":
                await journal.append(story.begun(Task(name)))
                assert reader.status(found).counts[State.RUNNING] == story._next // 3
        journal.close()

    run(main())


def test_since_gives_a_page_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        story = Story()
        told = [story.tell(Kind.LOGGED, "a", {"line": str(n)}) for n in range(25)]
        await journal.append(told)
        assert list(journal.since(0, 10)) == told[:10]
        assert list(journal.since(10, 10)) == told[10:20]
        assert list(journal.since(20, 10)) == told[20:]
        assert list(journal.since(25)) == []
        journal.close()

    run(main())


def test_many_appends_at_once_are_all_there_in_their_order(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db", durability="normal")
        story = Story()
        told = [story.tell(Kind.LOGGED, "a", n) for n in range(500)]
        for done in [journal.append([event]) for event in told]:
            await done
        assert list(journal.since(0)) == told
        journal.close()

    run(main())


def test_closing_writes_what_nobody_has_waited_for(tmp_path: Path) -> None:
    story = Story()

    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        for n in range(50):
            journal.append([story.tell(Kind.LOGGED, "a", n)])
        journal.close()

    run(main())
    with Reader(tmp_path / "j.db") as reader:
        assert reader.last(reader.runs()[0]) == 50


def test_a_run_is_open_until_it_says_that_it_has_ended(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        story = Story()
        await journal.append([story.tell(Kind.RUN_STARTED)])
        journal.close()
        journal = await opened(tmp_path / "j.db", "r2")
        last = journal.read.last_run()
        assert last is not None
        assert last.id == "r2"
        await journal.append([story.tell(Kind.RUN_ENDED)])
        assert [each.is_open for each in journal.read.runs()] == [True, False]
        journal.close()

    run(main())


def test_runs_count_their_events_apart(tmp_path: Path) -> None:
    async def main() -> None:
        for name in ("r1", "r2", "r1"):
            journal = await opened(tmp_path / "j.db", name)
            await journal.append([Event(journal.last + 1, 1.0, Kind.LOGGED, "", name)])
            journal.close()
        with Reader(tmp_path / "j.db") as reader:
            told = {each.id: [e.data for e in reader.all_events(each)] for each in reader.runs()}
        assert told == {"r1": ["r1", "r1"], "r2": ["r2"]}

    run(main())


def test_a_task_stands_where_its_last_event_left_it(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        story = Story()
        task = Task("a", AGENT, key="k", labels={"kind": "fix"})
        await journal.append(story.begun(task, token=7))
        assert journal.run is not None
        row = journal.read.task(journal.run, "a")
        assert (row.state, row.attempts, row.token) == (State.RUNNING, 1, 7)
        assert (row.agent, row.key, row.labels) == (
            AGENT,
            "k",
            {"kind": "fix"},
        )
        assert journal.read.outcome(journal.run, "a") is None
        await journal.append([story.tell(Kind.RETRYING, "a", None)])
        assert journal.read.task(journal.run, "a").state is State.RETRYING
        ends = story.ended("a", "done", token=7)
        await journal.append(ends)
        assert journal.read.task(journal.run, "a").state is State.SUCCEEDED
        assert journal.read.outcome(journal.run, "a") == ends[-1].data
        journal.close()

    run(main())


def test_appending_before_a_run_has_begun_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        journal = SqliteJournal(tmp_path / "j.db", known=KNOWN)
        with pytest.raises(InterlockError, match="begin"):
            journal.append([Story().tell(Kind.LOGGED)])
        journal.close()

    run(main())


def test_the_success_of_a_key_is_found_from_any_later_run(tmp_path: Path) -> None:
    async def main() -> None:
        story = Story()
        journal = await opened(tmp_path / "j.db", "r1")
        await journal.append(story.life(Task("a", key="pay-17"), "paid"))
        await journal.append(story.begun(Task("b", key="pay-18")))
        await journal.append(story.ended("b", status=State.FAILED))
        journal.close()
        journal = await opened(tmp_path / "j.db", "r2")
        found = journal.read.success("pay-17")
        assert found is not None
        assert (found.run, found.task_id, found.outcome.result) == ("r1", "a", "paid")
        assert journal.read.success("pay-18") is None
        journal.close()

    run(main())


def test_the_first_success_of_a_key_stands(tmp_path: Path) -> None:
    async def main() -> None:
        for name in ("r1", "r2"):
            journal = await opened(tmp_path / "j.db", name)
            await journal.append(Story().life(Task("a", key="k"), name))
            journal.close()
        with Reader(tmp_path / "j.db") as reader:
            found = reader.success("k")
        assert found is not None
        assert found.outcome.result == "r1"

    run(main())


def test_a_key_is_found_although_its_task_was_submitted_before_a_crash(tmp_path: Path) -> None:
    async def main() -> None:
        story = Story()
        journal = await opened(tmp_path / "j.db")
        await journal.append(story.begun(Task("a", key="k")))
        journal.close()
        journal = await opened(tmp_path / "j.db")
        await journal.append(story.ended("a", "late"))
        found = journal.read.success("k")
        journal.close()
        assert found is not None
        assert found.outcome.result == "late"

    run(main())


def test_what_agents_took_is_an_estimate_for_the_next_time(tmp_path: Path) -> None:
    async def main() -> None:
        story = Story()
        journal = await opened(tmp_path / "j.db")
        for number, takes in enumerate((2.0, 4.0, 9.0)):
            task = Task(f"t{number}", AGENT, labels={"size": "big" if takes > 3 else "small"})
            await journal.append(story.life(task, takes=takes))
        assert journal.read.estimate(AGENT) == pytest.approx((3, 5.0, 3.605551275))
        assert journal.read.estimate(AGENT, "size=big") == pytest.approx((2, 6.5, 3.535533905))
        assert journal.read.estimate(AGENT, "size=small") == (1, 2.0, 0.0)
        assert journal.read.estimate("nobody") is None
        journal.close()

    run(main())


def test_a_time_that_is_a_whole_number_is_as_good_as_any(tmp_path: Path) -> None:
    async def main() -> None:
        journal = SqliteJournal(tmp_path / "j.db", known=KNOWN)
        begun = await journal.begin("r1", 1000)
        await journal.append([Event(1, 5, Kind.LOGGED, "a")])
        assert begun.started_at == 1000
        assert list(journal.since(0)) == [Event(1, 5.0, Kind.LOGGED, "a")]
        journal.close()

    run(main())


def test_ids_that_utf8_cannot_hold_do_not_stop_the_journal(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        task = Task("half \ud83d", AGENT, key="\udc00", labels={"l": "\ud800"})
        await journal.append(Story().life(task, "\ud83d"))
        *_, settled = journal.since(0)
        assert settled.data.result == "\ud83d"
        assert settled.data.task_id == task.id
        assert journal.read.success("\udc00") is not None
        journal.close()

    run(main())
