"""A program with a live view that does what it is told, line by line, and says when it has."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace

from interlock.journal.state.run_facts import RunFacts
from interlock.model.outcome import State
from interlock.views.terminal.console import make_console
from interlock.views.terminal.live_view import LiveView
from tests.unit.views.runs import NOW, many, run, task, why


class Program:
    """Orders come in on one pipe, answers go out on another; the terminal is for the view."""

    def __init__(self) -> None:
        self.facts: RunFacts = many(200)
        self.time = 0.0
        console = make_console()
        self.view = LiveView(console, lambda: self.facts, why, now=lambda: self.time)

    def obey(self, order: str) -> None:
        match order.split():
            case ["refresh"]:
                self.time += 1
                self.view.refresh()
            case ["second"]:
                self.time += 1
                self.facts = replace(self.facts, at=self.facts.at + 1)
                self.view.refresh()
            case ["end"]:
                self.facts = run(task("a", State.SUCCEEDED), ended_at=NOW)
            case ["print", what]:
                print(what)
            case ["fail"]:
                raise ValueError("a bug of the program")
            case ["exit"]:
                sys.exit(3)


def main() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    orders, answers = os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w")
    program = Program()
    with program.view:
        print("started", file=answers, flush=True)
        for order in orders:
            if order.strip() == "stop":
                break
            program.obey(order)
            print(order.strip(), file=answers, flush=True)
    print("stopped", file=answers, flush=True)


if __name__ == "__main__":
    main()
