"""Draws a real run for the README: `PYTHONPATH=examples python -m tools.run_picture docs/run.svg`.

It runs the plan of the demo in a scratch folder and draws the moment at which most is going on.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from demo import set_up
from interlock.journal.state.run_facts import RunFacts
from interlock.model.event import Event
from interlock.model.outcome import State
from interlock.model.why import Explanation, HeldClaim
from interlock.plan.plan_file import load_plan
from interlock.plan.project_file import load_project
from interlock.service.coordinator import ProjectCoordinator, WatchedRun, carry_out
from interlock.service.project_folder import ProjectFolder
from interlock.service.run_request import RunRequest
from tools.run_svg import svg


class BestMoment:
    """Watches a run and keeps the moment at which the most different things happen."""

    def __init__(self) -> None:
        self.best: tuple[int, RunFacts, dict[str, Explanation | None]] | None = None
        self._run: WatchedRun | None = None

    def begin(self, run: WatchedRun) -> None:
        self._run = run

    def event(self, event: Event) -> None:
        if self._run is None:
            return
        facts = self._run.facts()
        waiting = [task for task in facts.tasks if task.state in (State.WAITING, State.RETRYING)]
        running = [task for task in facts.tasks if task.state is State.RUNNING]
        whys = {task.id: self._run.why(task.id) for task in waiting}
        waiting_for_claims = sum(_waits_for_claim(why) for why in whys.values())
        worth = 3 * len(running) + 4 * waiting_for_claims + (facts.progress.retrying > 0)
        if self.best is None or worth > self.best[0]:
            self.best = worth, facts, whys

    def give_up(self) -> None:
        """Nothing to do: there was nothing to see."""

    def end(self, *, hurry: bool = False) -> None:
        """Nothing to do: the best moment has been kept."""


def _waits_for_claim(why: Explanation | None) -> bool:
    return why is not None and any(isinstance(each, HeldClaim) for each in why.reasons)


def main(target: str) -> None:
    with tempfile.TemporaryDirectory(prefix="interlock-picture-") as name:
        folder = Path(name) / "units"
        set_up(folder)
        place = ProjectFolder(folder)
        place.make()
        project = load_project(folder / "interlock.yaml")
        plan = load_plan(folder / "plan.yaml", project)
        watcher = BestMoment()
        os.chdir(folder)
        request = RunRequest(plan="plan.yaml")
        carry_out(ProjectCoordinator(place, project, plan, request, watcher), place)
    assert watcher.best is not None
    _, facts, whys = watcher.best
    picture = svg(facts, whys.get, width=92, height=20, title="interlock run plan.yaml")
    Path(target).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).absolute()))
