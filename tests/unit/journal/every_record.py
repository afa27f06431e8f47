"""Writes a journal that holds every record, the same one each time, and prints its rows.

Run as a program, with the source to be used on the path. Classes are found by their names in a
journal and not imported: the source may have other names for them.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path
from typing import Any

import interlock
from interlock.journal.memory import MemoryJournal
from interlock.journal.schema.names import RECORDS
from interlock.journal.schema.own_records import OWN_TYPES
from interlock.journal.sqlite import SqliteJournal
from interlock.model import event as events
from interlock.model.claim import uses, write
from interlock.model.command import command
from interlock.runtime.recorded_types import RECORDED_TYPES
from interlock.runtime.runtime import Runtime
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate

CLASSES: dict[str, Any] = {**OWN_TYPES, **RECORDED_TYPES}
Task, Mode, State, Kind = (CLASSES[each] for each in ("task", "mode", "state", "event_kind"))


def samples() -> list[Any]:
    """A record of each type, inside each other where they can be."""
    values: dict[str, Any] = {
        "claims": (uses("suite", exclusive=True), write("src/")),
        "claim": uses("suite", exclusive=True),
        "mode": Mode("exclusive"),
        "status": State("failed"),
        "state": State("failed"),
        "error": CLASSES["error"]("OSError", "no", "at line 1", False),
        "load": CLASSES["load"](1.0, 2.0),
        "because": CLASSES["open_breaker"]("api", 2, "OSError: no", 1.0, None),
        "usage": CLASSES["usage"](1, 2, 0.5),
        "quota": CLASSES["quota"](3, 60.0),
        "requests": CLASSES["quota"](3, 60.0),
        "tokens": CLASSES["quota"](4, 60.0),
        "past": (CLASSES["task_past"](1, 2.0), None),
        "ends": (("a", State("succeeded")),),
        "parts": ("of ", CLASSES["template_reference"]("a", "output", ("title",))),
        "retry": CLASSES["retry"](2, 1.0, 2.0, 0.5),
        "prompt": CLASSES["template"]("of {{a.output}}"),
        "agent": command(["echo", "{prompt}"], errors={"auth_error": ["denied"]}, env={"A": "b"}),
        "argv": ("echo", "{prompt}"),
        "pass_env": ("TERM",),
        "env": {"A": "b"},
        "errors": {"auth_error": ("denied",)},
        "home": "private",
        "labels": {"retry_of": "b"},
        "args": (1, uses("suite", exclusive=True), State("failed"), Kind("command")),
        "kwargs": {"outcome": CLASSES["outcome"]("a", State("succeeded"), {"x": (1,)})},
        "jitter": 0.5,
        "resource": "gpu",
        "after": ("a",),
        "tasks": ("a", "b"),
        "path": ("title",),
        "workspace": "shared",
        "guard": "none",
        "output": None,
        "started_at": None,
        "ended_at": None,
        "deadline": 5.0,
        "timeout": 5.0,
        "changed_paths": ("a.txt",),
    }
    made: list[Any] = []
    for name, schema in RECORDS.items():
        kind = CLASSES[name]
        if not schema.fields and not hasattr(kind, "_fields"):
            made += list(kind)
            continue
        fields = {each: values.get(each, 3) for each in schema.attributes}
        if name in ("auto_slots",):
            fields |= {"least": 1, "most": 4}
        if name == "task":
            fields["id"], fields["key"], fields["priority"] = "sample", "k", 2
        made.append(kind(**{each: _fits(name, each, value) for each, value in fields.items()}))
    return made


def _fits(name: str, field: str, value: Any) -> Any:
    texts = {"task_id", "reason", "question", "answer", "name", "type", "message", "traceback"}
    texts |= {"detail", "group", "parent", "stdin", "check", "kind", "cause", "last", "stimulus"}
    if name == "template_reference" and field in ("task", "field"):
        return "output"
    return "text" if field in texts else value


async def run() -> None:
    async def ends() -> str:
        return "done"

    async def fails() -> None:
        raise OSError("no")

    async def stays(ctx: Any) -> None:
        await ctx.extend(writes="more.txt", uses="tool!")
        await ctx.ask("Which colour?")

    async with Runtime(2, ports=simulated_ports(7, lambda: JOURNAL)) as rt:
        rt.submit(ends, id="ends", uses="suite!", key="k")
        rt.submit(fails, id="fails", retry=CLASSES["retry"](2, 0.5))
        rt.submit(ends, id="skipped", after=["fails"])
        asks = rt.submit(stays, id="asks", writes="a.txt")
        rt.submit(
            Task("echo", ends, prompt=CLASSES["template"]("of {{ends.output}}"), labels={"a": "b"})
        )
        rt.pause("echo")
        rt.resume("echo")
        rt.prioritize("echo", 4)
        while not rt.questions():
            await asyncio.sleep(1)
        rt.answer("asks", "blue")
        await asks
        # The kernel refuses what comes from an attempt that is over, and says what it was.
        rt._shell.take_in(CLASSES["attempt_exited"]("asks", 1))
        rt._shell.take_in(CLASSES["used"]("asks", 1, 1, "slots", 1))


JOURNAL = MemoryJournal()


async def write_down(path: Path) -> None:
    journal = SqliteJournal(path, known=RECORDED_TYPES)
    await journal.begin("run", 1_700_000_000.0, options={"workspace": "w"})
    happened = list(JOURNAL.since(0, 10_000))
    number = len(happened)
    for each in samples():
        number += 1
        kind = Kind("submitted") if isinstance(each, Task) else Kind("command")
        happened.append(events.Event(number, 1.0 * number, kind, f"task-{number}", each))
    await journal.append(happened)
    for number, each in enumerate(samples()):
        await journal.records("samples").put(str(number), [each])
    journal.close()


def main() -> None:
    simulate(run, seed=7).value()
    path = Path(sys.argv[1])
    asyncio.run(write_down(path))
    print(interlock.__file__)
    connection = sqlite3.connect(path)
    for table in ("runs", "events", "tasks", "keys", "records", "history"):
        for row in connection.execute(f"SELECT * FROM {table}"):
            print(table, ascii(row))
    connection.close()


if __name__ == "__main__":
    main()
