"""Makes the run of a seed: what the user asks for, and what the agents do."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from interlock.model.claim import Claim, Mode, read, uses, write
from interlock.model.conflict import conflicts
from interlock.model.limits import Quota, Rate, Retry
from interlock.model.task import Task
from tests.simulation.runtime.story import Act, AgentPlace, Course, RunPlan, RunStep, RunStory
from tests.simulation.storyteller import FILES, Storyteller

CLAIMED = (*FILES, "src/", "docs/", "src/*.py", "**/*.py", "src/{a,b}.py", "docs/?.md", "**")
FEATURES = (
    "threads", "processes", "resisting", "failures", "odd ends", "retries", "timeouts",
    "deadlines", "dependencies", "results", "extensions", "rates", "questions", "children",
    "joins", "together", "counted", "names", "groups", "maps", "waits", "impatience", "cancels",
    "pauses", "capacities", "holds", "priorities", "estimates", "keys", "bad input", "looks",
    "slow journal", "bad listener", "reports", "hangs", "strikes",
)  # fmt: skip
"""What a run may have."""
ENDS = ("", "", "", "", "raise", "cancel the user", "cancel the user twice", "shutdown")
FAILURES = ("raise", "later", "return an error", "return an outcome")
ODD = ("give up", "exit", "interrupt", "cancel itself", "group")


def make_story(seed: int) -> RunStory:
    """The story that belongs to a seed."""
    return _RunStoryteller(seed).write()


class _RunStoryteller(Storyteller):
    def __init__(self, seed: int) -> None:
        dice = Random(f"run {seed}")
        super().__init__(seed, dice, FEATURES, 0.35)
        self.plain = dice.random() < 0.08
        """Nothing but tasks with claims, of which overtaking can be counted."""
        if self.plain:
            self.has = dict.fromkeys(FEATURES, False)
        self.end = "" if self.plain else dice.choice(ENDS)
        self.slots = dice.choice((1, 1, 2, 2, 3, 4))
        self.files = FILES[: dice.randint(1, len(FILES))]
        self.families = 0
        self.count = dice.randint(12, 25) if self.plain else dice.randint(2, 10)

    def write(self) -> RunStory:
        dice = self.dice
        acts, at = self.timeline(self._scenes)
        acts += self._ending(at)
        acts.sort(key=lambda act: act.at)
        tokens = Quota(dice.randint(4, 8), dice.choice((0.75, 3.0)))
        requests = Quota(dice.randint(1, 3), dice.choice((1.0, 2.5)))
        return RunStory(
            self.seed,
            self.slots,
            {"gpu": 2, "memory_mb": 5},
            {"openai": Rate(requests, tokens)},
            dice.choice((0.5, 2.0, 8.0)),
            tuple(acts),
            dice.choice(("at once", "last")),
            dice.choice((0.25, 1.0, 3.0)),
            dice.choice((0.01, 0.1)) if self.has["slow journal"] else 0.0,
            self.has["bad listener"],
            self._next_run(),
            dice.randint(2, 60) if self.has["strikes"] else 0,
        )

    def _scenes(self, at: float) -> Iterator[Act]:
        yield self._request(at)
        if self.sometimes("cancels", 0.3):  # changed its mind at once
            yield Act(at, "cancel", task_id=self.ids[-1])
        if self.sometimes("waits", 0.6):
            yield self._waiting(at + self.pause())
        if self.dice.random() < 0.5:
            yield from self._steering(at + self.pause())

    # Tasks

    def _request(self, at: float) -> Act:
        dice = self.dice
        if self.sometimes("maps", 0.3):
            return self._map(at)
        if self.sometimes("keys", 0.2):
            plan = self._plan(self._name())
            task = plan.task.replace(key=f"key of {plan.task.id}")
            return Act(at, "same key", (plan._replace(task=task, given=()),))
        grouped = self.sometimes("groups", 0.6)
        earlier = list(self.ids)
        plans = []
        for _ in range(dice.choice((1, 1, 2, 3))):
            plan = self._plan(self._name(), earlier=earlier, given=not grouped)
            plans.append(plan)
            if grouped:
                earlier.append(plan.task.id)
        if not grouped:
            return Act(at, "submit", tuple(plans))
        return Act(
            at,
            "run",
            tuple(plan._replace(given=()) for plan in plans),
            patience=self.pause() + 0.1 if self.sometimes("impatience", 0.5) else None,
            fail_fast=dice.random() < 0.4,
            deadline=dice.choice((0.5, 2.0, 6.0)) if self.sometimes("deadlines", 0.4) else None,
        )

    def _name(self) -> str:
        self.ids.append(f"t{len(self.ids) + 1}")
        return self.ids[-1]

    def _map(self, at: float) -> Act:
        dice = self.dice
        claims = (write(dice.choice(("src/{item}.py", "src/a.py", "docs/{item}.md"))),)
        task = Task(self._name(), claims=claims, retry=self._retry(), timeout=self._timeout())
        course = (RunStep("work", self.pause()), *self._failure(0.3))
        patience = self.pause() + 0.1 if self.sometimes("impatience", 0.5) else None
        return Act(
            at, "map", (RunPlan(task, (course,)),), amount=dice.randint(0, 4), patience=patience
        )

    def _plan(
        self, name: str, *, depth: int = 0, earlier: list[str] | None = None, given: bool = False
    ) -> RunPlan:
        dice = self.dice
        after: tuple[str, ...] = ()
        args: tuple[str, ...] = ()
        if earlier and self.sometimes("dependencies", 0.6):
            after = self.few_of(earlier)
        if earlier and given and self.sometimes("results", 0.5):
            args = self.few_of(earlier)
        task = Task(
            name,
            claims=self._claims(depth),
            after=after,
            priority=dice.choice((0, 0, 5)) if self.has["priorities"] else 0,
            timeout=self._timeout(),
            deadline=dice.choice((1.0, 3.0, 8.0)) if self.sometimes("deadlines", 0.3) else None,
            retry=self._retry(),
            estimate=dice.choice((0.5, 2.0)) if self.sometimes("estimates", 0.5) else None,
        )
        place = self._place(depth)
        courses = tuple(self._course(task, place, depth) for _ in range(dice.choice((1, 2))))
        # Those in processes more often: only a kill shows what is special about them.
        resists = self.sometimes("resisting", 0.5) or (place == "process" and dice.random() < 0.5)
        return RunPlan(task, courses, place, dice.choice((1, 3, 3, 6)) if resists else 0, args)

    def _retry(self) -> Retry | None:
        if not self.sometimes("retries", 0.6):
            return None
        return Retry(self.dice.randint(2, 3), self.dice.choice((0.0, 0.5, 2.0)))

    def _timeout(self) -> float | None:
        return self.dice.choice((0.5, 1.5, 3.0)) if self.sometimes("timeouts", 0.5) else None

    def _place(self, depth: int) -> AgentPlace:
        if self.sometimes("threads", 0.5):
            return "thread"
        # A child may get another name than its plan has, and could not tell in a process.
        return "process" if self.sometimes("processes", 0.4) and not depth else "loop"

    def _claims(self, depth: int) -> tuple[Claim, ...]:
        dice = self.dice
        found: list[Claim] = []
        for _ in range(dice.choice((0, 1, 1, 2))):
            paths = self.files if self.plain or dice.random() < 0.6 else CLAIMED
            found.append(dice.choice((read, write, write))(dice.choice(paths)))
        if self.sometimes("counted", 0.4):
            found.append(dice.choice((uses("gpu"), uses("gpu", 2), uses("memory_mb", 3))))
        if self.sometimes("names", 0.4):
            found.append(uses("db:staging", exclusive=dice.random() < 0.6))
        if self.sometimes("rates", 0.2) and not depth:
            found.append(uses("openai"))
        return tuple(found)

    # StoryAgents

    def _course(self, task: Task, place: str, depth: int) -> Course:
        dice = self.dice
        steps = [*self._touches(task.claims)]
        for _ in range(dice.choice((0, 1, 1, 2)) if place != "process" else 0):
            step = self._midflight(task, depth)
            if step is not None:
                steps.append(step)
        dice.shuffle(steps)
        steps.insert(0, RunStep("work", self.pause()))
        steps.append(RunStep("work", self.pause()))
        steps += self._touches(task.claims)
        may_hang = task.timeout is not None or task.deadline is not None or self.end
        if may_hang and (self.sometimes("hangs", 0.4) or (place == "process" and depth == 0)):
            return (*steps, RunStep("hang") if place != "thread" else RunStep("work", 30.0))
        if place == "process" and self.sometimes("failures", 0.2):
            return (*steps, RunStep("die"))
        return (*steps, *self._failure(0.35))

    def _failure(self, chance: float) -> Course:
        if self.sometimes("failures", chance):
            return (RunStep(self.dice.choice(FAILURES)),)
        if self.sometimes("odd ends", chance):
            return (RunStep(self.dice.choice((*ODD, "out of memory"))),)
        return ()

    def _touches(self, claims: tuple[Claim, ...]) -> list[RunStep]:
        found = []
        for claim in claims:
            path = self._path_in(claim)
            if path and self.dice.random() < 0.7:
                found.append(RunStep("write" if claim.mode is Mode.WRITE else "read", path=path))
        return found

    def _path_in(self, claim: Claim) -> str:
        if not claim.is_path:
            return ""
        everything = Claim(claim.resource, Mode.WRITE)
        paths = [each for each in FILES if conflicts(everything, read(each))]
        return self.dice.choice(paths) if paths else ""

    def _midflight(self, task: Task, depth: int) -> RunStep | None:
        dice = self.dice
        kinds = [
            kind
            for kind, feature in (
                ("extend", "extensions"),
                ("take", "rates"),
                ("ask", "questions"),
                ("children", "children"),
                ("orphans", "children"),
                ("join", "joins"),
                ("together", "together"),
                ("report", "reports"),
            )
            if self.has[feature]
        ]
        if not kinds:
            return None
        kind = dice.choice(kinds)
        patience = self.pause() if self.sometimes("impatience", 0.5) else None
        match kind:
            case "extend":
                claim = dice.choice((read, write, write))(dice.choice(self.files))
                more = uses("gpu") if self.sometimes("counted", 0.3) else claim
                path = claim.resource if more is claim else ""
                return RunStep(kind, patience=patience, claims=(more,), path=path)
            case "take":
                return RunStep(kind, self.pause(), patience=patience, amount=dice.randint(1, 4))
            case "join":
                known = [each for each in self.ids if each != task.id.partition(".")[0]]
                if not known:
                    return None
                return RunStep(kind, patience=patience, tasks=(dice.choice(known),))
            case "children" | "orphans":
                return self._children(kind, task, depth, patience)
            case "together":
                asks, works = RunStep("ask", patience=patience), RunStep("work", 0.25)
                extends = RunStep("extend", claims=(write(self.files[0]),), path=self.files[0])
                return RunStep(kind, steps=(asks, works, extends))
        return RunStep(kind, patience=patience)

    def _children(
        self, kind: str, task: Task, depth: int, patience: float | None
    ) -> RunStep | None:
        if depth >= 3:
            return None
        plans: list[RunPlan] = []
        # The same children come again only when the same course is repeated.
        self.families = family = self.families + 1
        for each in range(self.dice.choice((1, 2))):
            name = f"{task.id}.{family}{'abc'[each]}"
            plans.append(self._plan(name, depth=depth + 1, earlier=[p.task.id for p in plans]))
        return RunStep(kind, patience=patience, plans=tuple(plans))

    # What the user does besides

    def _waiting(self, at: float) -> Act:
        patience = self.pause() if self.sometimes("impatience", 0.5) else None
        how = self.dice.choice(("", "result"))
        return Act(at, "await", task_id=self.dice.choice(self.ids), patience=patience, name=how)

    def _steering(self, at: float) -> list[Act]:
        dice = self.dice
        one = dice.choice(self.ids)
        choices = {
            "cancels": [Act(at, "cancel", task_id=one)],
            "pauses": [
                Act(at, "pause", task_id=dice.choice(("", one))),
                Act(at + self.pause(), "resume", task_id=one),
                Act(at + 2.0, "resume"),
                Act(at + 2.0, "resume", task_id=one),
            ],
            "capacities": [
                Act(at, "set capacity", name="slots", amount=dice.choice((0, 1, 5))),
                Act(at, "set capacity", name="gpu", amount=dice.choice((0, 1, 4))),
                Act(at + 1.0, "set capacity", name="slots", amount=self.slots),
                Act(at + 1.0, "set capacity", name="gpu", amount=2),
            ],
            "holds": [Act(at, "hold rate", amount=2)],
            "priorities": [Act(at, "prioritize", task_id=one, amount=dice.choice((-3, 9)))],
            "bad input": [Act(at, "bad input", (RunPlan(Task("bad"), ((),)),))],
            "looks": [Act(at, "look")],
        }
        possible = [acts for feature, acts in choices.items() if self.has[feature]]
        return dice.choice(possible) if possible else []

    def _ending(self, last: float) -> list[Act]:
        at = self.dice.choice((0.3, 1.0, last, last, last + 1.0)) + self.pause()
        if self.end == "shutdown":
            return [Act(at, "shutdown", amount=self.dice.choice((0, 1, 20)))]
        if self.end == "cancel the user twice":
            again = at + self.dice.choice((0.0, 0.25, 1.0))
            return [Act(at, "cancel the user"), Act(again, "cancel the user")]
        return [Act(at, self.end)] if self.end else []

    def _next_run(self) -> tuple[RunPlan, ...]:
        plans = []
        for number, path in enumerate(("src/", "docs/x.md")):
            task = Task(f"next{number + 1}", claims=(write(path),), deadline=20.0)
            course = (RunStep("work", 0.5), RunStep("write", path=self._path_in(write(path))))
            plans.append(RunPlan(task, (course,)))
        return tuple(plans)
