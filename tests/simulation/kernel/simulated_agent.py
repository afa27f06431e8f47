"""An agent of the simulated world: it does what its behaviour says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.kernel import stimuli as event
from interlock.model.outcome import ErrorRecord, State
from tests.simulation.kernel.story import Behaviour, WorldPlan, WorldStep

if TYPE_CHECKING:
    from tests.simulation.kernel.world import World


class SimulatedAgent:
    """One attempt, from its start until it is gone."""

    def __init__(
        self, world: World, task_id: str, attempt: int, token: int, behaviour: Behaviour
    ) -> None:
        self.world = world
        self.task_id = task_id
        self.attempt = attempt
        self.token = token
        self.behaviour = behaviour
        self.gone = False
        self._ended = False
        self._stopped = False
        self._next_step = 0
        self._pending: set[int] = set()
        """The requests it has open."""
        self._waits_to_finish = False
        self._children: list[str] = []

    def start(self) -> None:
        """Begin to work."""
        self._go_on()

    def answered(self, request: int) -> None:
        """A request was granted or denied; either way the agent goes on."""
        if request not in self._pending:
            return
        self._pending.remove(request)
        step = self.behaviour.steps[request - 1]
        if step.kind == "take":
            self._after(0.25, self._settle_up, step, request)
        if not step.beside:
            self._go_on()
        elif self._waits_to_finish and not self._pending:
            self._after(0.0, self._finish)

    def told_to_stop(self) -> None:
        """Stop after a while; an agent that ignores the cancellation works until it has to stop."""
        if not self._stopped:
            self._stopped = True
            self._after(self.behaviour.deaf, self._give_in)

    def _after(self, wait: float, act: object, *details: object) -> None:
        self.world.later(self.world.now + wait, act, *details)  # type: ignore[arg-type]

    def _go_on(self) -> None:
        steps = self.behaviour.steps
        if self._next_step < len(steps):
            self._after(steps[self._next_step].after, self._take_step, self._next_step)
        else:
            self._after(self.behaviour.work, self._finish)

    @property
    def _silent(self) -> bool:
        """Whether it reports nothing any more: it has ended, or was told to stop."""
        swallows = self.behaviour.last_words == "finishes"
        return self._ended or self.gone or (self._stopped and not swallows)

    def _take_step(self, number: int) -> None:
        if self._silent or number != self._next_step:
            return
        step = self.behaviour.steps[number]
        self._next_step = request = number + 1
        name, token = self.task_id, self.token
        match step.kind:
            case "extend":
                self._ask(event.Extend(name, token, request, step.claims), request, step)
            case "take":
                self._ask(event.Take(name, token, request, step.claims), request, step)
            case "ask":
                self._ask(event.Ask(name, token, request, "May I?"), request, step)
                if step.patience and not self.world.closing:
                    self._after(step.patience, self._be_answered, request)
                elif self.world.closing:
                    self._after(0.0, self._be_answered, request)
            case "await":
                waits = event.AwaitTasks(name, token, request, tuple(self._children))
                self._ask(waits, request, step)
            case "join":
                known = self.world.oracle.shadow.items
                others = tuple(each for each in step.others if each in known)
                self._ask(event.AwaitTasks(name, token, request, others), request, step)
            case _:
                self._hand_out(step, request)

    def _ask(
        self,
        stimulus: event.Extend | event.Take | event.Ask | event.AwaitTasks,
        request: int,
        step: WorldStep,
    ) -> None:
        self._pending.add(request)
        error = self.world.tell(stimulus)
        if error is not None:
            self.world.check_request_refusal(stimulus, error)
        if (error is not None or self._stopped) and request in self._pending:
            self.answered(request)
        elif step.kind != "ask" and step.patience == 4.0:
            self._after(step.patience, self._die_waiting, request)
        if step.gives_up is not None:
            self._after(step.gives_up, self._give_up, request)
        if step.beside:
            self._go_on()

    def _settle_up(self, step: WorldStep, request: int) -> None:
        """Report what a take used, which may be more or less than was taken."""
        if not self._silent:
            resource = step.claims[-1].resource
            used = event.Used(self.task_id, self.token, request, resource, step.used)
            self.world.tell(used)

    def _be_answered(self, request: int) -> None:
        if request in self._pending and not self.gone:
            self.world.tell(event.Answer(self.task_id, request))

    def _die_waiting(self, request: int) -> None:
        if request in self._pending and not self._silent:
            self._end(State.FAILED)

    def _give_up(self, request: int) -> None:
        """Withdraw a request; the answer may already be on its way."""
        if not self._silent:
            withdraw = event.Withdraw(self.task_id, self.token, request)
            self.world.tell(withdraw)
            if self.behaviour.echo:
                self._after(0.125, self.world.tell, withdraw)

    def _hand_out(self, step: WorldStep, request: int) -> None:
        """Submit children, named after this attempt, and wait for them or not."""
        stem = f"{self.task_id}#{self.attempt}.{request}"
        names = {p.task.id: f"{stem}.{number}" for number, p in enumerate(step.children, 1)}
        plans = tuple(_renamed(plan, names) for plan in step.children)
        shape = event.Submit((), step.group, parent=self.task_id, token=self.token)
        taken = self.world.submit(plans, shape)
        self._children.extend(taken)
        if taken and step.kind == "children" and not self._stopped:
            waits = event.AwaitTasks(self.task_id, self.token, request, taken)
            self._ask(waits, request, step)
        else:
            self._go_on()

    def _finish(self) -> None:
        if self._silent:
            return
        if self._pending and not self.behaviour.careless:
            self._waits_to_finish = True
        elif self.behaviour.vanishes:
            self._ended = True
            self._leave()
        else:
            self._end(self.behaviour.status)

    def _end(self, status: State) -> None:
        how = self.behaviour
        error = None
        if status is not State.SUCCEEDED:
            error = ErrorRecord("Boom", "it went wrong", retryable=how.retryable)
        self._ended = True
        self.gone = how.lag == 0.0
        report = event.Ended(
            self.task_id, self.token, status, error, how.retry_after, how.chance, self.gone
        )
        self.world.report(report)
        if how.echo:
            self._after(0.125, self.world.report, report)
        if not self.gone:
            self._after(how.lag, self._leave)

    def _give_in(self) -> None:
        """The end of a zombie."""
        if self.gone or self._ended:
            return
        if self.behaviour.last_words == "failed":
            self._end(State.FAILED)
        else:
            self._ended = True
            self._leave()

    def _leave(self) -> None:
        if not self.gone:
            self.gone = True
            gone = event.Gone(self.task_id, self.token)
            self.world.report(gone)
            if self.behaviour.echo:
                self._after(0.125, self.world.report, gone)


def _renamed(plan: WorldPlan, names: dict[str, str]) -> WorldPlan:
    after = tuple(names.get(d, d) for d in plan.task.after)
    return plan._replace(task=plan.task.replace(id=names[plan.task.id], after=after))
