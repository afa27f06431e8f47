"""Makes the world of a seed: what is submitted, what each agent does, what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from interlock.kernel import stimuli as event
from interlock.model.claim import Claim, read, uses, write
from interlock.model.limits import Quota, Rate, Retry
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.simulation.kernel.bad_input import BAD
from tests.simulation.kernel.story import Behaviour, Operation, WorldPlan, WorldStep, WorldStory
from tests.simulation.storyteller import FILES, PAUSES, Storyteller

FOLDERS = ("src/", "docs/", "src/api/")
PATTERNS = ("src/*.py", "src/**", "**/*.py", "docs/?.md", "src/{a,b}.py", "**", "src/[!a].py")
SPELLINGS = (str, str.upper, str.title)
NAMES = ("db:staging", "suite:tests")
COUNTED = ("gpu", "memory_mb")
GROUPS = ("g1", "g2", "g3")
FEATURES = (
    "patterns", "names", "counted", "rates", "dependencies", "retries", "timeouts", "deadlines",
    "zombies", "lags", "extensions", "takes", "children", "questions", "groups", "cancels",
    "pauses", "capacities", "holds", "priorities", "bad input", "stale reports", "crowd",
    "late clock", "failures", "readers", "several requests", "folded case",
    "families",
)  # fmt: skip
"""What a world may have."""
OCCUPIED = (
    (write("src/a.py"),), (write("src/"), read("docs/x.md")), (read("**/*.md"),),
    (uses("db:staging", exclusive=True), uses("gpu")), (uses("suite:tests"), uses("tpu", 3)),
    (uses("memory_mb", 4), uses("openai")), (uses("gpu", exclusive=True), write("docs/y.md")),
)  # fmt: skip
"""Claims that something outside the run may hold."""


def make_story(seed: int) -> WorldStory:
    """The story that belongs to a seed."""
    return _WorldStoryteller(seed).write()


class _WorldStoryteller(Storyteller):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, Random(seed), FEATURES, 0.45)
        self.has["families"] &= self.dice.random() < 0.4
        if self.has["families"]:
            self.has["children"] = self.has["counted"] = True
            self.has["zombies"] |= self.dice.random() < 0.5
        if self.has["capacities"]:
            self.has["counted"] = self.dice.random() < 0.8
        # Added later, with dice of their own, so that the worlds without them stayed as they were.
        self.more_dice = Random(f"{seed}, and more")
        self.joins = self.more_dice.random() < 0.3
        self.occupied = self.more_dice.random() < 0.3
        self.impatience = Random(f"{seed}, and not for long")
        self.withdraws = self.impatience.random() < 0.3
        self.valve = Random(f"{seed}, and sparingly")
        self.throttles = self.valve.random() < 0.3
        self.slots = self.dice.choice((1, 1, 2, 2, 3, 4, 8))
        self.capacities = {"gpu": self.dice.randint(1, 3), "memory_mb": self.dice.randint(3, 6)}
        quota = Quota(self.dice.randint(1, 4), self.dice.choice((1.0, 2.5, 5.0)))
        tokens = Quota(self.dice.randint(3, 8), self.dice.choice((0.75, 3.0)))
        self.rates = {"openai": Rate(requests=quota, tokens=tokens)}
        # A claim such as `**` would touch the protected folder, so worlds have one or the other.
        self.protected = () if self.has["patterns"] else ("secrets/",)
        crowded = self.has["crowd"] and self.dice.random() < 0.4
        self.count = self.dice.randint(25, 60) if crowded else self.dice.randint(2, 14)
        self.neglects = self.has["priorities"] and self.dice.random() < 0.3
        """Whether all but a few old tasks are urgent, with hardly any conflicts."""
        if self.neglects:
            self.slots, self.count = self.dice.choice((1, 2)), self.dice.randint(12, 25)
        self.files = FILES[: self.dice.randint(1, len(FILES))]

    def write(self) -> WorldStory:
        operations, at = self.timeline(self._scenes)
        if self.dice.random() < 0.1:
            how = self.dice.choice((event.Drain(), event.Shutdown(), event.CancelGroup("")))
            operations.append(Operation(at + self.pause(), "stimulus", stimulus=how))
        if self.occupied:
            operations += self._occupations(at)
        if self.throttles:
            operations += [self._throttle(at) for _ in range(self.valve.choice((1, 2, 5)))]
        operations.sort(key=lambda o: o.at)
        late = self.dice.choice((0.125, 1.0)) if self.has["late clock"] else 0.0
        limits = (self.slots, self.capacities, self.rates)
        batched = self.dice.random() < 0.3
        told = tuple(operations)
        folded = self.has["folded case"]
        return WorldStory(self.seed, *limits, told, self.protected, late, batched, folded)

    def _scenes(self, at: float) -> Iterator[Operation]:
        yield self._submission(at)
        for _ in range(self.dice.choice((0, 0, 1, 1, 2))):
            yield self._interruption(at + self.pause())
        if self.neglects:
            put_off = event.Prioritize(self.dice.choice(self.ids[:4]), -1)
            yield Operation(at + self.pause(), "stimulus", stimulus=put_off)

    # Tasks

    def _submission(self, at: float) -> Operation:
        many = self.dice.choice((1, 1, 2, 3, 6))
        plans = []
        for _ in range(many):
            name = f"t{len(self.ids) + 1}"
            after = self._after(self.ids) if self.sometimes("dependencies", 0.6) else ()
            plans.append(self._plan(name, after, depth=0))
            self.ids.append(name)
        group = ""
        fail_fast = False
        deadline = None
        if self.sometimes("groups", 0.6):
            group = self.dice.choice(GROUPS)
            fail_fast = self.dice.random() < 0.6
            deadline = self.pause() + 0.5 if self.dice.random() < 0.3 else None
        shape = event.Submit((), group, fail_fast, deadline)
        return Operation(at, "submit", tuple(plans), shape)

    def _after(self, ids: list[str]) -> tuple[str, ...]:
        return self.few_of(ids[-6:])

    def _plan(
        self, name: str, after: tuple[str, ...], depth: int, above: tuple[Claim, ...] = ()
    ) -> WorldPlan:
        """A task and its behaviour; `above` are the claims of its parent, which it may share."""
        dice = self.dice
        claims = {c.resource: c for c in self._claims(dice.choice((0, 1, 1, 2, 3)))}
        if self.has["families"] or dice.random() < 0.3:
            claims.update((c.resource, c) for c in above if c.resource in COUNTED)
        priority = dice.choice((-1, 0, 1, 5)) if self.has["priorities"] else 0
        if self.neglects:
            early = len(self.ids) < 4
            claims = claims if dice.random() < 0.2 else {}
            if early and not claims:
                claims = {"gpu": uses("gpu")}  # some of which may be reserved for it
            priority = -1 if early else 5
        most = dice.choice((1, 2, 3)) if self.has["retries"] else 1
        backoff = dice.choice((0.0, 0.5, 1.0))
        hangs = self.sometimes("timeouts", 0.3)
        task = Task(
            name,
            claims=tuple(claims.values()),
            after=after,
            priority=priority,
            timeout=dice.choice((0.5, 1.0, 2.0)) if hangs else None,
            deadline=self.pause() + 1.0 if self.sometimes("deadlines", 0.2) else None,
            retry=Retry(most, backoff, 4.0, dice.choice((0.0, 0.25))),
            estimate=self.pause() if dice.random() < 0.3 else None,
        )
        behaviours = tuple(self._behaviour(task, depth) for _ in range(min(most, 2)))
        return WorldPlan(task, behaviours)

    def _claims(self, many: int) -> tuple[Claim, ...]:
        return tuple({c.resource: c for c in (self._claim() for _ in range(many))}.values())

    def _claim(self) -> Claim:
        dice = self.dice
        if self.sometimes("names", 0.2):
            return uses(dice.choice(NAMES), exclusive=dice.random() < 0.4)
        if self.sometimes("counted", 0.3):
            name = dice.choice(COUNTED)
            if dice.random() < 0.15:
                return uses(name, exclusive=True)
            return uses(name, dice.randint(1, self.capacities[name]))
        if self.sometimes("rates", 0.3):
            return dice.choice((uses("openai"), uses("openai.tokens", dice.randint(1, 3))))
        where: tuple[str, ...] = self.files
        if self.sometimes("patterns", 0.5):
            where = dice.choice((FOLDERS, PATTERNS))
        reads = dice.random() < (0.7 if self.has["readers"] else 0.2)
        path = dice.choice(where)
        if self.has["folded case"]:
            path = dice.choice(SPELLINGS)(path)
        return (read if reads else write)(path)

    # Agents

    def _behaviour(self, task: Task, depth: int) -> Behaviour:
        dice = self.dice
        steps = [
            step
            for _ in range(dice.choice((0, 1, 2, 3) if self.has["several requests"] else (0, 1, 2)))
            if (step := self._step(task, depth)) is not None
        ]
        if any(step.kind == "orphans" for step in steps) and dice.random() < 0.6:
            if self.has["extensions"]:
                steps.append(WorldStep(self.pause(), "extend", self._claims(1)))
            steps.append(WorldStep(self.pause(), "await", patience=self.pause()))
        if self.joins and self.more_dice.random() < 0.4:
            steps.insert(self.more_dice.randint(0, len(steps)), self._join(task))
        if self.has["several requests"]:
            steps = [step._replace(beside=dice.random() < 0.6) for step in steps]
        if self.withdraws:
            steps = [self._impatient(step) for step in steps]
        fails = self.sometimes("failures", 0.35) or self.sometimes("retries", 0.4)
        status = State.SUCCEEDED
        if fails:
            status = State.CONFLICTED if dice.random() < 0.1 else State.FAILED
        return Behaviour(
            tuple(steps),
            work=self.pause(),
            status=status,
            retryable=dice.random() < 0.9,
            retry_after=self.pause() if dice.random() < 0.15 else 0.0,
            chance=dice.choice((0.0, 0.25, 0.5, 0.75)),
            lag=self.pause() if self.sometimes("lags", 0.5) else 0.0,
            deaf=dice.choice((0.5, 2.0, 12.0)) if self.sometimes("zombies", 0.6) else 0.0,
            last_words=dice.choice(("", "failed", "finishes")),
            vanishes=self.sometimes("failures", 0.1),
            careless=dice.random() < 0.2,
            echo=self.sometimes("stale reports", 0.3),
        )

    def _step(self, task: Task, depth: int) -> WorldStep | None:
        dice = self.dice
        kinds = [
            kind
            for kind, feature in (
                ("extend", "extensions"),
                ("take", "takes"),
                ("children", "children"),
                ("ask", "questions"),
            )
            if self.has[feature]
        ]
        if not kinds or dice.random() < 0.4:
            return None
        kind = dice.choice(kinds)
        after = self.pause()
        patience = self.pause()
        if kind == "extend":
            return WorldStep(after, kind, self._claims(dice.choice((1, 1, 2))), patience=patience)
        if kind == "take":
            claims = (uses("openai", 1),) + ((uses("openai.tokens", 2),) if patience > 1 else ())
            return WorldStep(after, kind, claims, patience=patience, used=dice.randint(0, 5))
        if kind == "ask":
            return WorldStep(after, kind, patience=patience)
        if depth >= 3:
            return None
        return self._children(task, depth, after, patience)

    def _impatient(self, step: WorldStep) -> WorldStep:
        """The same step, usually with a time after which it is withdrawn."""
        after = self.impatience.choice(PAUSES)
        return step._replace(gives_up=after) if self.impatience.random() < 0.7 else step

    def _join(self, task: Task) -> WorldStep:
        """Wait for other tasks: earlier ones, the next one, or (impossible) itself or its root."""
        dice = self.more_dice
        root, *path = task.id.split(".")
        known = [*self.ids[-5:], f"t{len(self.ids) + 2}"]
        others = tuple(dice.sample(known, min(len(known), dice.choice((1, 1, 2)))))
        if dice.random() < (0.4 if path else 0.1):
            others = (root,)
        pause, patience = dice.choice(PAUSES), dice.choice(PAUSES)
        return WorldStep(pause, "join", others=others, patience=patience)

    def _children(self, parent: Task, depth: int, after: float, patience: float) -> WorldStep:
        plans: list[WorldPlan] = []
        for number in range(self.dice.choice((1, 2, 3))):
            earlier = [p.task.id for p in plans]
            outside = self.ids if self.sometimes("dependencies", 0.1) else []
            chosen = self._after(earlier or outside) if self.dice.random() < 0.3 else ()
            name = f"{parent.id}.{number + 1}"
            plans.append(self._plan(name, chosen, depth + 1, parent.claims))
        kind = self.dice.choice(("children", "children", "orphans"))
        if self.has["families"] and depth:
            kind = "orphans"
        group = self.dice.choice(GROUPS) if self.sometimes("groups", 0.3) else ""
        return WorldStep(after, kind, children=tuple(plans), patience=patience, group=group)

    # What comes from outside

    def _occupations(self, last: float) -> list[Operation]:
        """Something outside acquires claims, and usually releases them before the end."""
        dice, operations = self.more_dice, []
        for number in range(dice.choice((1, 1, 2, 3))):
            at = dice.choice((0.0, dice.randint(0, int(8 * last)) / 8))
            name = f"old-{number + 1}"
            comes, goes = event.Occupy(name, dice.choice(OCCUPIED)), event.Vacate(name)
            operations.append(Operation(at, "stimulus", stimulus=comes))
            stays = dice.choice((*PAUSES, 8.0))
            operations.append(Operation(at + stays, "stimulus", stimulus=goes))
        return operations

    def _throttle(self, last: float) -> Operation:
        """Throttle a resource, or lift its throttle."""
        dice = self.valve
        at = dice.randint(0, int(8 * last)) / 8
        level = dice.choice((None, 0, 1, 2, 3))
        stimulus = event.Throttle(dice.choice(("slots", "slots", *COUNTED)), level)
        return Operation(at, "stimulus", stimulus=stimulus)

    def _interruption(self, at: float) -> Operation:
        dice = self.dice
        task_id = dice.choice(self.ids)
        choices: list[tuple[str, event.Stimulus]] = [
            ("cancels", event.Cancel(task_id)),
            ("pauses", event.Pause(task_id if dice.random() < 0.6 else None)),
            ("pauses", event.Unpause(task_id)),
            ("pauses", event.Unpause()),
            ("capacities", event.SetCapacity("slots", dice.choice((0, 1, 1, 2, 3, 5)))),
            ("capacities", event.SetCapacity("gpu", dice.randint(0, 3))),
            ("capacities", event.SetCapacity("gpu", dice.randint(2, 6))),
            ("capacities", event.SetCapacity("memory_mb", dice.randint(0, 8))),
            ("capacities", event.SetCapacity("memory_mb", dice.randint(5, 12))),
            ("holds", event.HoldRate("openai", at + self.pause())),
            ("priorities", event.Prioritize(task_id, dice.choice((-3, 0, 4, 9)))),
        ]
        if self.has["groups"] and dice.random() < 0.3:
            choices.append(("cancels", event.CancelGroup(dice.choice(GROUPS))))
        possible = [stimulus for feature, stimulus in choices if self.has[feature]]
        if self.sometimes("bad input", 0.4) or not possible:
            kinds = [kind for kind in BAD if self.protected or kind != "ProtectedPath"]
            return Operation(at, "bad", detail=dice.choice(kinds))
        if self.sometimes("stale reports", 0.4):
            return Operation(at, "stale", detail=task_id)
        return Operation(at, "stimulus", stimulus=dice.choice(possible))
