"""A coordinator to be killed: runs one agent, in a journal, for as long as it is let.

Its arguments: what kind of agent, in which containment, where the FIFOs are.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from interlock import Runtime, command, process
from interlock.execution.call_spec import BackendKind
from interlock.execution.processes.process_backend import Commands
from interlock.runtime.ports import Ports, real_backends

NASTY = str(Path(__file__).with_name("nasty_agent.py"))
DEPTH = 30


@process
def chain(announced: str, held: str) -> None:
    """A deep chain of processes, each in a session of its own: to sweep it takes a while."""
    sys.path.insert(0, str(Path(NASTY).parent))
    import nasty_agent  # type: ignore[import-not-found]  # noqa: PLC0415 - only in this process

    nasty_agent.hold(held)
    nasty_agent.chain(DEPTH)
    Path(announced).write_text("ready", encoding="ascii")
    nasty_agent.stay()


async def main(kind: str, containment: str, announced: str, held: str) -> None:
    ports = Ports(
        backends=lambda loop, house, orphaned: {
            **real_backends(loop, house, orphaned),
            BackendKind.COMMAND: Commands(loop, orphaned, containment),
        }
    )
    async with Runtime(journal="j.db", ports=ports) as rt:
        if kind == "chain":
            await rt.submit(chain, announced, held, id="agent", writes="x")
        else:
            argv = [sys.executable, NASTY, kind, announced, held]
            await rt.submit(command(argv), id="agent", writes="x")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
