"""A simulated world on a virtual clock: it plays the agents, the people and the faults of a story.

It drives a fresh kernel and lets the oracle judge every step. There is one thread, no real clock
and no randomness but that of the story: the same story always has the same trace.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from interlock import errors
from interlock.errors import UsageError
from interlock.kernel import instructions as told
from interlock.kernel import stimuli as event
from interlock.kernel.kernel import Kernel
from interlock.model.claim import Mode
from interlock.model.outcome import State
from interlock.model.task import Task
from tests.simulation.kernel.bad_input import bad_tasks
from tests.simulation.kernel.deadlock import would_hang
from tests.simulation.kernel.oracle import Oracle
from tests.simulation.kernel.shadow import Violation
from tests.simulation.kernel.simulated_agent import SimulatedAgent
from tests.simulation.kernel.story import Operation, WorldPlan, WorldStory
from tests.simulation.narration import brief

MOST_HANDLES = 20_000
"""In a world that takes more steps than this, some task starves."""


@dataclass(slots=True)
class JudgedWorld:
    """A world that has been played, judged at every step."""

    story: WorldStory
    violation: Violation | None
    seen: Counter[str]
    trace: list[tuple[float, event.Stimulus, object]] = field(repr=False)

    @property
    def violations(self) -> list[str]:
        return [] if self.violation is None else [str(self.violation)]

    @property
    def steps(self) -> int:
        return len(self.trace)

    @property
    def length(self) -> int:
        return len(self.trace)

    def heading(self) -> list[str]:
        story = self.story
        limits = f"slots {story.slots}, capacities {story.capacities}, rates {story.rates}"
        limits += ", case folded" if story.fold_case else ""
        return [f"seed {story.seed}: {len(self.trace)} steps; {limits}"]

    def lines(self) -> list[str]:
        """What happened and what the kernel answered, step by step."""
        return [_line(*step) for step in self.trace]

    def trace_hash(self) -> str:
        """The same for the same story, whatever the hash seed of the process."""
        return hashlib.sha256("\n".join(self.lines()).encode()).hexdigest()


class World:
    """One play of a story."""

    def __init__(self, story: WorldStory) -> None:
        self.story = story
        self.kernel = Kernel(
            slots=story.slots,
            capacities=story.capacities,
            rates=story.rates,
            protected=story.protected,
            fold_case=story.fold_case,
        )
        limits = (story.slots, story.capacities, story.rates)
        self.oracle = Oracle(*limits, fold_case=story.fold_case)
        self.oracle.seen["case folded"] += story.fold_case
        self.now = 0.0
        self.trace: list[tuple[float, event.Stimulus, object]] = []
        self.plans: dict[str, WorldPlan] = {}
        self.agents: dict[int, SimulatedAgent] = {}
        self.closing = False
        self._agenda: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = 0
        self._timer: float | None = None
        self._reports: list[event.Ended | event.Gone] = []

    def run(self) -> JudgedWorld:
        """Play the story to its end; the first broken rule ends it early."""
        violation = None
        try:
            self._play()
        except Violation as found:
            violation = found
        return JudgedWorld(self.story, violation, self.oracle.seen, self.trace)

    def _play(self) -> None:
        last = 0.0
        for operation in self.story.operations:
            self.later(operation.at, self._operate, operation)
            last = max(last, operation.at)
        self.later(last + 8.0, self._close)
        while self._agenda:
            self.now, _, act, details = heapq.heappop(self._agenda)
            act(*details)
            if len(self.trace) > MOST_HANDLES:
                raise Violation(f"S19: after {MOST_HANDLES} steps there is no end in sight")
        self.oracle.finish()

    def later(self, at: float, act: Callable[..., None], *details: Any) -> None:
        """Do something at a time; at the same time, in the order of the calls."""
        self._order += 1
        heapq.heappush(self._agenda, (at, self._order, act, details))

    def tell(self, stimulus: event.Stimulus) -> UsageError | None:
        """Give the kernel a stimulus, judge its instructions, and perform them."""
        try:
            answer = self.kernel.handle(stimulus, self.now)
        except UsageError as error:
            self.trace.append((self.now, stimulus, f"{type(error).__name__}: {error}"))
            return error
        except Exception as error:  # A crash of the kernel is a finding like any other.
            self.trace.append((self.now, stimulus, repr(error)))
            raise Violation(f"the kernel raised {type(error).__name__}: {error}") from error
        self.trace.append((self.now, stimulus, list(answer)))
        self.oracle.observe(stimulus, self.now, answer, self.kernel)
        for instruction in answer:
            self._obey(instruction)
        return None

    def report(self, report: event.Ended | event.Gone) -> None:
        """Report the end of an attempt, alone or together with all others of this moment."""
        if not self.story.batched:
            self.tell(report)
            return
        if not self._reports:
            self.later(self.now, self._hand_in)
        self._reports.append(report)

    def _hand_in(self) -> None:
        reports, self._reports = tuple(self._reports), []
        self.tell(event.Reports(reports))

    def _obey(self, instruction: told.Instruction) -> None:
        match instruction:
            case told.Start(task_id, attempt, token):
                behaviours = self.plans[task_id].attempts
                behaviour = behaviours[min(attempt, len(behaviours)) - 1]
                agent = SimulatedAgent(self, task_id, attempt, token, behaviour)
                self.agents[token] = agent
                agent.start()
            case told.Stop(token=token):
                self.agents[token].told_to_stop()
            case told.Resume(token=token, request=request):
                self.agents[token].answered(request)
            case told.Deny(token=token, request=request):
                self.agents[token].answered(request)
            case told.SetTimer(at):
                self._timer = at
                if at is not None:
                    self.later(max(at + self.story.lateness, self.now), self._tick, at)
            case _:
                pass

    def _tick(self, at: float) -> None:
        if self._timer == at:
            self._timer = None
            self.tell(event.Tick())

    # What comes from outside

    def _operate(self, operation: Operation) -> None:
        match operation.kind:
            case "submit":
                assert isinstance(operation.stimulus, event.Submit)
                self.submit(operation.plans, operation.stimulus)
            case "bad":
                self._ask_the_impossible(operation.detail)
            case "stale":
                self._report_late(operation.detail)
            case _:
                assert operation.stimulus is not None
                self._interrupt(operation.stimulus)

    def submit(self, plans: tuple[WorldPlan, ...], shape: event.Submit) -> tuple[str, ...]:
        """Submit tasks; returns the ids of the accepted ones. Unknown dependencies are dropped."""
        known = self.oracle.shadow.items
        names = {p.task.id for p in plans} | set(known)
        tasks = tuple(_only_after(p.task, names) for p in plans)
        if not tasks:
            return ()
        self.plans.update((p.task.id, p) for p in plans)
        before = self._picture()
        error = self.tell(shape._replace(tasks=tasks))
        if error is not None:
            self._unchanged(before, error)
            self._check_refusal(tasks, shape, error)
        return tuple(t.id for t in tasks if t.id in known)

    def _check_refusal(
        self, tasks: tuple[Task, ...], shape: event.Submit, error: UsageError
    ) -> None:
        """Check that valid tasks were refused for a reason that has come up since."""
        shadow = self.oracle.shadow
        self.oracle.seen[type(error).__name__] += 1
        counted = [c for t in tasks for c in shadow.counted(t.claims)]
        short = any(c.amount > shadow.capacities[c.resource] for c in counted)
        if isinstance(error, errors.ShuttingDown) and shadow.draining and not shape.parent:
            return
        if isinstance(error, errors.ImpossibleClaim) and short:
            return
        if shape.parent and shape.token not in shadow.alive:
            return
        parent = shadow.alive.get(shape.token)
        hangs = parent is not None and would_hang(shadow, parent, tasks)
        if isinstance(error, errors.ChildWouldDeadlock) and hangs:
            return
        raise Violation(f"a good submission was refused: {type(error).__name__}: {error}")

    def check_request_refusal(self, stimulus: event.Stimulus, error: UsageError) -> None:
        """Check that a request was refused only because there can never be so much of it."""
        shadow = self.oracle.shadow
        if isinstance(stimulus, (event.Extend, event.Take)) and stimulus.token in shadow.alive:
            asker = shadow.alive[stimulus.token]
            waits = (c for request in asker.requests.values() for c in request.claims)
            held = shadow.counted((*asker.claims, *waits))
            for claim in shadow.counted(stimulus.claims):
                own = [c for c in held if c.resource == claim.resource]
                total = claim.amount + sum(c.amount for c in own)
                alone = any(c.mode is Mode.EXCLUSIVE for c in (claim, *own))
                if total > shadow.capacities[claim.resource] or (own and alone):
                    self.oracle.seen["extension refused"] += 1
                    return
        raise Violation(f"{stimulus} was refused: {type(error).__name__}: {error}")

    def _interrupt(self, stimulus: event.Stimulus) -> None:
        shadow = self.oracle.shadow
        if isinstance(stimulus, event.Vacate) and stimulus.name not in self._occupants():
            return
        task_id = getattr(stimulus, "task_id", None)
        if task_id is not None and task_id not in shadow.items:
            return
        error = self.tell(stimulus)
        if error is not None and (task_id is None or shadow.items[task_id].status is None):
            raise Violation(f"{stimulus} was refused: {error}")

    def _occupants(self) -> list[str]:
        return [a.item.id for a in self.oracle.shadow.alive.values() if a.outside]

    def _ask_the_impossible(self, kind: str) -> None:
        shadow = self.oracle.shadow
        if kind == "DuplicateId" and not shadow.items:
            return
        before = self._picture()
        tasks = bad_tasks(kind, next(iter(shadow.items), ""))
        error = self.tell(event.Submit(tasks))
        if error is None:
            raise Violation(f"bad input was taken: {kind} expected")
        if type(error).__name__ != kind and not shadow.draining:
            raise Violation(f"bad input raised {type(error).__name__} instead of {kind}")
        self._unchanged(before, error)
        self.oracle.seen[f"bad input: {kind}"] += 1

    def _picture(self) -> object:
        """All that can be seen of the kernel from outside."""
        kernel = self.kernel
        states = [(name, kernel.state(name)) for name in self.oracle.shadow.items]
        return states, repr(kernel.progress()), repr(sorted(a.token for a in kernel.alive()))

    def _unchanged(self, before: object, error: UsageError) -> None:
        if self._picture() != before:
            raise Violation(f"{type(error).__name__} was raised, but something was changed")

    def _report_late(self, task_id: str) -> None:
        """Report with a token that is no longer valid, or never was."""
        if task_id not in self.oracle.shadow.items:
            return
        old = [a.token for a in self.agents.values() if a.task_id == task_id and a.gone]
        tokens = [*old[:1], 10_000_000]
        for token in tokens:
            self.tell(event.Ended(task_id, token, State.SUCCEEDED))
            self.tell(event.Extend(task_id, token, 99, ()))
            self.tell(event.Gone(task_id, token))

    def _close(self) -> None:
        """End the story: lift all restrictions, so that everything can end."""
        shadow, self.closing = self.oracle.shadow, True
        self.tell(event.Unpause())
        for item in [i for i in shadow.open.values() if i.paused]:
            self.tell(event.Unpause(item.id))
        self.tell(event.SetCapacity("slots", self.story.slots))
        for name, capacity in self.story.capacities.items():
            self.tell(event.SetCapacity(name, max(capacity, shadow.most[name])))
        for name in ("slots", *self.story.capacities):
            self.tell(event.Throttle(name))
        for name in self._occupants():
            self.tell(event.Vacate(name))
        if shadow.draining:
            self.tell(event.Shutdown())
        for attempt, request in list(shadow.waits()):
            if request.kind == "ask" and not request.answered and not attempt.over:
                self.tell(event.Answer(attempt.item.id, request.number))


def _line(now: float, stimulus: event.Stimulus, answer: object) -> str:
    said = answer if isinstance(answer, str) else ", ".join(map(brief, _each(answer)))
    return f"{now:9.3f}  {brief(stimulus)}\n           -> {said or 'nothing'}"


def _each(answer: object) -> Iterable[object]:
    return answer if isinstance(answer, list) else ()


def _only_after(task: Task, known: set[str]) -> Task:
    after = tuple(d for d in task.after if d in known)
    return task if after == task.after else task.replace(after=after)
