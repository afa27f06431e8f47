"""Names and versions in a journal do not depend on Python's, and unknown ones are refused."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tokenize
import zlib
from pathlib import Path

import pytest

from interlock import Runtime, UnreadableJournal
from interlock.journal.reader import Reader
from interlock.journal.rows import checksum
from interlock.journal.schema.codec import Codec, UnknownName, kind_of
from interlock.journal.schema.names import EVENTS, FIRST_EVENT_NAMES, RECORDS, split_tag
from interlock.journal.schema.own_records import OWN_TYPES
from interlock.journal.schema.upcasters import UPCASTERS
from interlock.kernel import stimuli as s
from interlock.model.claim import Mode
from interlock.model.event import Kind
from interlock.model.stable_names import STABLE_NAMES
from interlock.runtime.recorded_types import RECORDED_TYPES
from tests.crash import Stay, killed

SOURCE = Path(__file__).parents[3] / "src" / "interlock"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "journal-0.1.0"
PROGRAM = Path(__file__).with_name("every_record.py")
OWN_AGENTS = Path(__file__).with_name("every_own_agent.py")
CLASSES = {**OWN_TYPES, **RECORDED_TYPES}
CODEC = Codec(RECORDED_TYPES)


# -- the table ------------------------------------------------------------------------------


def test_every_name_has_a_class_and_every_class_one_name() -> None:
    assert CLASSES.keys() == RECORDS.keys()
    assert len(set(CLASSES.values())) == len(CLASSES)


@pytest.mark.parametrize("name", RECORDS)
def test_the_table_has_every_field_of_a_record(name: str) -> None:
    kind, attributes = CLASSES[name], RECORDS[name].attributes
    if hasattr(kind, "_fields"):
        assert attributes == kind._fields
    elif dataclasses.is_dataclass(kind):
        kept = [each.name for each in dataclasses.fields(kind) if each.name[0] != "_"]
        derived = {"is_path", "exception"}  # worked out anew, or of this process only
        assert list(attributes) == [each for each in kept if each not in derived]
    else:
        assert attributes == ()


def test_every_kind_of_event_has_a_name_and_a_version() -> None:
    assert EVENTS.keys() == {each.value for each in Kind}
    assert set(FIRST_EVENT_NAMES.values()) <= EVENTS.keys()
    assert not FIRST_EVENT_NAMES.keys() & EVENTS.keys()


def test_there_is_a_way_from_every_version_to_the_next() -> None:
    steps = {(name, each) for name, of in RECORDS.items() for each in range(1, of.version)}
    assert UPCASTERS.keys() == steps


def test_no_two_records_ever_had_the_same_name() -> None:
    tags = [tag for of in RECORDS.values() for tag in of.tags]
    firsts = [of.name for of in RECORDS.values() if of.first_name == of.name]
    assert len(tags) + len(firsts) == len(set(tags)) + len(firsts)


def test_every_stimulus_has_a_name() -> None:
    assert set(s.STIMULUS_NAMES) == set(s.Stimulus.__args__)
    assert len(set(s.STIMULUS_NAMES.values())) == len(s.STIMULUS_NAMES)


# -- older names ----------------------------------------------------------------------------


def test_records_of_0_1_0_are_read_as_those_of_today() -> None:
    assert CODEC.loads('{"$":"Mode","of":"alone"}') is Mode.EXCLUSIVE
    assert CODEC.loads('{"$":"Kind","of":"inherited"}') is Kind.REUSED
    assert CODEC.loads('{"$":"Unpause","of":{"task_id":"a"}}') == s.Unpause("a")
    old = '{"$":"Task","of":{"id":"a","claims":[["t","alone",1]],"labels":{"again_of":"b"}}}'
    task = CODEC.loads(old)
    assert (task.claims[0].mode, task.labels) == (Mode.EXCLUSIVE, {"retry_of": "b"})
    refused = CODEC.loads('{"$":"Refused","of":{"task_id":"a","token":1,"stimulus":"Gone"}}')
    assert refused.stimulus == "attempt_exited"


def test_a_name_or_a_version_that_is_not_known_is_an_error() -> None:
    with pytest.raises(UnknownName, match=r"'teleport' has version 1, .* nothing of that name"):
        CODEC.loads('[{"$":"teleport","of":{}}]')
    with pytest.raises(UnknownName, match=r"'claim' has version 7, .* versions up to 1 of it"):
        CODEC.loads('{"$":"claim/7","of":{}}')
    with pytest.raises(UnknownName, match=r"'settled' has version 2, .* versions up to 1 of it"):
        kind_of("settled/2")
    assert split_tag("a/x") == ("a", 0)


@pytest.mark.parametrize("record", ["task/2", "outcome"])
def test_a_field_that_is_not_known_is_an_error(record: str) -> None:
    known = {"task/2": '"id":"a"', "outcome": '"task_id":"a","status":"failed"'}[record]
    with pytest.raises(UnknownName, match=r"has a field 'colour', which is not known here"):
        CODEC.loads(f'{{"$":"{record}","of":{{{known},"colour":"red"}}}}')


def test_a_record_without_its_class_is_plain_data() -> None:
    assert Codec().loads(CODEC.dumps(s.Cancel("a"))) == {"task_id": "a"}


# -- bad input ------------------------------------------------------------------------------


def tampered(journal: Path, change: str, *values: object) -> None:
    """Change the rows of events as a newer Interlock might have written them."""
    connection = sqlite3.connect(journal)
    connection.create_function("checksum", -1, checksum)
    connection.execute(f"UPDATE events SET {change}", values)
    connection.execute("UPDATE events SET checksum = checksum(data, file, seq, at, kind, task_id)")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def content(journal: Path) -> dict[str, int]:
    return {
        each.name: zlib.crc32(each.read_bytes())
        for each in journal.parent.iterdir()
        if each.name.startswith(journal.name) and not each.name.endswith((".lock", "-shm", "-wal"))
    }


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("kind = 'teleported' WHERE kind = 'started'", "'teleported' has version 1"),
        ("kind = 'started/9' WHERE kind = 'started'", "'started' has version 9.*up to 1"),
        (
            """data = replace(data, '"start"', '"warp"') WHERE kind = 'started'""",
            "'warp' has version 1",
        ),
        (
            """data = replace(data, '"start"', '"start/4"') WHERE kind = 'started'""",
            "'start' has version 4.*up to 1",
        ),
    ],
)
async def test_what_a_newer_version_wrote_is_refused_and_nothing_is_written(
    tmp_path: Path, change: str, problem: str
) -> None:
    stay = Stay()

    async def program(rt: Runtime) -> None:
        rt.submit(stay, id="a")
        await stay.began.wait()

    journal = await killed(tmp_path / "j.db", program)
    tampered(journal, change)
    before = content(journal)
    with pytest.raises(UnreadableJournal, match=f"event 3 .*newer Interlock: .*{problem}"):
        async with Runtime(journal=journal, resume=True):
            pass
    assert content(journal) == before
    with Reader(journal, CODEC) as reader:
        (run,) = reader.runs()
        with pytest.raises(UnreadableJournal, match=problem):
            list(reader.all_events(run))


# -- renaming classes -----------------------------------------------------------------------


def renamed(source: str, names: frozenset[str]) -> str:
    """The source of a module with other names for some classes. Text in quotes stays."""
    lines = source.splitlines(keepends=True)
    before = ""
    found = []
    for token in tokenize.generate_tokens(iter(lines).__next__):
        # `asyncio.Task` is another one; `s.Cancel` and `do.Start` are ours.
        ours = not before.endswith(".") or before in ("s.", "do.", "event.")
        if token.type == tokenize.NAME and token.string in names and ours:
            found.append((token.start, token.string))
        before = before.removesuffix(".") + "." if token.string == "." else token.string
    for (row, column), name in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}Renamed{line[column:]}"
        assert line[column:].startswith(name)
    return "".join(lines)


def written_by(
    source: Path, *arguments: str, program: Path = PROGRAM, folder: Path | None = None
) -> list[str]:
    path = os.pathsep.join((str(source), str(FIXTURES)))
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    where, *rows = done.stdout.splitlines()
    assert where.startswith(str(source))
    return rows


def test_renaming_every_recorded_class_changes_no_byte_of_a_journal(tmp_path: Path) -> None:
    """In a copy of the source: all classes at once, and with them whatever refers to them."""
    source = tmp_path / "source"
    shutil.copytree(SOURCE, source / "interlock", ignore=shutil.ignore_patterns("__pycache__"))
    before = written_by(source, str(tmp_path / "before.db"))
    names = frozenset(each.__name__ for each in (*CLASSES.values(), *s.STIMULUS_NAMES))
    for module in source.rglob("*.py"):
        module.write_text(renamed(module.read_text(), names))
    assert "class RenamedCancel(" in (source / "interlock/kernel/stimuli.py").read_text()
    assert len(before) > len(CLASSES)
    assert written_by(source, str(tmp_path / "after.db")) == before


MOVED = ("patterns", "runtime/project.py", "execution/processes")
"""The homes of the agents that Interlock itself submits."""
OWNERS = "AgentEngine|AgentMaker|AgentLifecycle|GroupExecution|GroupEnd|Process"
"""Classes whose names are in the qualified names of those agents."""


def test_moving_and_renaming_interlocks_own_agents_changes_no_task_of_a_journal(
    tmp_path: Path,
) -> None:
    source, program = tmp_path / "source", tmp_path / "program.py"
    shutil.copytree(SOURCE, source / "interlock", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(OWN_AGENTS, program)
    (tmp_path / "before").mkdir()
    before = written_by(source, program=program, folder=tmp_path / "before")
    for home in MOVED:
        path = source / "interlock" / home
        path.rename(path.with_name(f"moved_{path.name}"))
    modules = [each.removesuffix(".py").replace("/", ".") for each in MOVED]
    for path in (program, *source.rglob("*.py")):
        if path.name == "stable_names.py":
            continue
        text = path.read_text()
        for module in modules:
            room, _, last = f"interlock.{module}".rpartition(".")
            text = re.sub(rf"\b{re.escape(room)}\.{last}\b", f"{room}.moved_{last}", text)
        path.write_text(re.sub(rf"(?<![\w.])({OWNERS})\b", r"Renamed\1", text))
    moved = source / "interlock/moved_patterns/pool/agent_engine.py"
    assert "class RenamedAgentEngine:" in moved.read_text()
    (tmp_path / "after").mkdir()
    after = written_by(source, program=program, folder=tmp_path / "after")
    assert after == before
    words = {word for row in before for word in row.split()}
    own = [key for key in STABLE_NAMES if key.startswith(("coordinator.", "executor.", "pool."))]
    seen = {key for key in own if STABLE_NAMES[key] in words}
    assert seen == {*own} - {"pool.make"}
