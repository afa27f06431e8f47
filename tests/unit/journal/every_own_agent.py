"""Prints how a journal knows Interlock's own agents and some of its data types.

Run as a program, with the source to be used and the fixtures on the path. It runs the systems, and
the wrapper of `process()`, in the current folder.
"""

from __future__ import annotations

import asyncio
import sqlite3

import fixture_systems

import interlock
from interlock import AgentTask, Message, Runtime, SubTask, process
from interlock.journal.schema.codec import Codec
from interlock.runtime.project import ask_first

SYSTEMS = (
    "pool",
    "chat",
    "executor",
    "coordinator_async_agent",
    "coordinator_async_factory",
)


async def plain() -> None:
    async with Runtime(journal="plain.db") as rt:
        rt.submit(process(fixture_systems.make_async_writer), id="process")
        question = rt.submit(ask_first, id="question", prompt="Go on?")
        async for event in rt.events():
            if event.kind is interlock.Kind.NEEDS_YOU:
                break
        rt.answer("question", "yes")
        await question


def main() -> None:
    print(interlock.__file__)
    fixture_systems.patience = 0.0
    for name in SYSTEMS:
        fixture_systems.run(name, f"{name}.db")
    asyncio.run(plain())
    for name in (*SYSTEMS, "plain"):
        connection = sqlite3.connect(f"{name}.db")
        for task_id, agent, fingerprint in sorted(
            connection.execute("SELECT task_id, agent, fingerprint FROM tasks")
        ):
            # Tasks of a pool have its run in them; those that make an agent have their process.
            is_same = name != "pool" and not agent.endswith("make_in_a_thread")
            print(name, task_id, agent, fingerprint if is_same else "")
        connection.close()
    data = [SubTask(1, "a", "b", "c", None, None), Message("a", "b"), AgentTask("a", "b", [])]
    print(Codec().dumps(data))


if __name__ == "__main__":
    main()
