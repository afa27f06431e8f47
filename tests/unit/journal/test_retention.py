"""Old runs are forgotten when asked for; what others rely on stays."""

from __future__ import annotations

from pathlib import Path

from interlock.journal.files import LARGE
from interlock.journal.reader import Reader
from interlock.model.event import Kind
from interlock.model.task import Task
from tests.unit.journal.story import AGENT, Story, opened, run


async def one_run(path: Path, name: str, ends: float | None, size: int = 1) -> None:
    journal = await opened(path, name)
    story = Story()
    for number in range(size):
        await journal.append(story.life(Task(f"t{number}", AGENT, key=f"{name}-{number}"), name))
    await journal.append(story.life(Task("large", key=f"{name}-large"), name * LARGE))
    if ends is not None:
        story.at = ends
        await journal.append([story.tell(Kind.RUN_ENDED)])
    journal.close()


def names(path: Path) -> list[str]:
    with Reader(path) as reader:
        return [each.id for each in reader.runs()]


async def pruned(path: Path, **rule: float) -> int:
    journal = await opened(path, "now")
    gone = await journal.prune(now=10_000.0, **rule)  # type: ignore[arg-type]
    journal.close()
    return gone


def test_the_oldest_closed_runs_go_first(tmp_path: Path) -> None:
    async def main() -> None:
        for number in range(5):
            await one_run(tmp_path / "j.db", f"r{number}", ends=2000.0 + number)
        assert await pruned(tmp_path / "j.db", keep=2) == 3

    run(main())
    assert names(tmp_path / "j.db") == ["r3", "r4", "now"]


def test_runs_that_ended_long_ago_go(tmp_path: Path) -> None:
    async def main() -> None:
        for number, ends in enumerate((2000.0, 9000.0, 3000.0)):
            await one_run(tmp_path / "j.db", f"r{number}", ends)
        assert await pruned(tmp_path / "j.db", age=5000.0) == 2

    run(main())
    assert names(tmp_path / "j.db") == ["r1", "now"]


def test_an_open_run_is_never_forgotten(tmp_path: Path) -> None:
    async def main() -> None:
        await one_run(tmp_path / "j.db", "cut-off", ends=None)
        await one_run(tmp_path / "j.db", "closed", ends=2000.0)
        assert await pruned(tmp_path / "j.db", keep=0, age=0.0) == 1

    run(main())
    assert names(tmp_path / "j.db") == ["cut-off", "now"]


def test_what_keys_brought_outlives_their_runs_with_its_files(tmp_path: Path) -> None:
    async def main() -> None:
        await one_run(tmp_path / "j.db", "old", ends=2000.0)
        await pruned(tmp_path / "j.db", keep=0)

    run(main())
    with Reader(tmp_path / "j.db") as reader:
        small, large = reader.success("old-0"), reader.success("old-large")
        assert small is not None
        assert large is not None
        assert (small.outcome.result, large.outcome.result) == ("old", "old" * LARGE)
        assert reader.estimate(AGENT) is not None


def test_files_that_no_row_names_are_removed_and_the_others_stay(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db", "old")
        story = Story()
        await journal.append(story.life(Task("a"), "a" * (LARGE + 1)))
        await journal.append([story.tell(Kind.RUN_ENDED)])
        journal.close()
        folder = tmp_path / "j.db.files"
        (folder / ".x.partial").write_text("what a crash left")
        journal = await opened(tmp_path / "j.db", "now")
        await journal.records("ns").put("k", "b" * (LARGE + 1))
        assert len(list(folder.iterdir())) == 3
        await journal.prune(now=1.0, keep=0)
        assert len(list(folder.iterdir())) == 1
        assert journal.records("ns").get("k") == "b" * (LARGE + 1)
        journal.close()

    run(main())


def test_a_large_run_is_removed_in_pieces_and_the_file_shrinks(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db", "old", durability="normal")
        story = Story()
        await journal.append([story.tell(Kind.LOGGED, "a", "x" * 200) for _ in range(12_000)])
        await journal.append([story.tell(Kind.RUN_ENDED)])
        journal.close()
        before = (tmp_path / "j.db").stat().st_size
        assert await pruned(tmp_path / "j.db", keep=0) == 1
        assert (tmp_path / "j.db").stat().st_size < before / 10

    run(main())
