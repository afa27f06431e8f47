"""Less is given out than there is: to a level, or so much more; and what `why` says to it."""

from __future__ import annotations

from interlock.errors import InvalidOption, UnknownResource
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Start
from interlock.kernel.kernel import Kernel
from interlock.model.claim import uses, write
from interlock.model.limits import Rate
from interlock.model.load import Load
from interlock.model.outcome import State
from interlock.model.task import Task
from interlock.model.throttled import ClosedGate, OpenBreaker
from interlock.model.why import NoCapacity
from tests.unit.kernel.judged import Judged, started

GATE = ClosedGate(Load(97.0, 20.0), 90.0, None, 0.0)
BREAKER = OpenBreaker("breaker:gpt", 3, "OSError: 503", 0.0, 30.0)


def calls(*names: str) -> tuple[Task, ...]:
    return tuple(Task(name, uses="breaker:gpt") for name in names)


class Rationed:
    """A kernel with one resource that can be rationed; the judge knows levels only."""

    def __init__(self, *, slots: int = 8, capacity: int = 100) -> None:
        self.kernel = Kernel(slots=slots, capacities={"breaker:gpt": capacity, "gpu": 8})
        self.tokens: dict[str, int] = {}

    def handle(self, stimulus: s.Stimulus, now: float = 0.0) -> list[str]:
        """The tasks that start."""
        starts = [each for each in self.kernel.handle(stimulus, now) if isinstance(each, Start)]
        self.tokens |= {each.task_id: each.token for each in starts}
        return [each.task_id for each in starts]

    def ration(self, more: int | None) -> list[str]:
        return self.handle(s.Throttle("breaker:gpt", more=more, because=BREAKER))

    def ends(self, task_id: str) -> list[str]:
        return self.handle(s.Ended(task_id, self.tokens[task_id]))


def test_a_level_is_held_and_given_up_without_changing_the_capacity() -> None:
    world = Judged(slots=4)
    world.handle(s.Throttle("slots", 1))
    assert started(world.submit(*(Task(f"t{n}") for n in range(4)))) == ["t0"]
    assert started(world.handle(s.Throttle("slots", 2))) == ["t1"]
    world.handle(s.SetCapacity("slots", 3))  # what there could be is another matter
    assert started(world.handle(s.Throttle("slots"))) == ["t2"]


def test_a_throttled_task_is_told_why_and_not_who_has_the_slots() -> None:
    world = Judged(slots=4)
    world.submit(Task("runs"))
    world.handle(s.Throttle("slots", 1, because=GATE))
    world.submit(Task("waits"))
    why = world.why("waits")
    assert why.reasons == (GATE,)
    assert "CPU at 97 % (at most 90 %)" in str(why)
    assert why.suggestions == ()


def test_where_all_is_in_use_as_well_both_reasons_are_given() -> None:
    world = Judged(slots=1)
    world.submit(Task("runs"))
    world.handle(s.Throttle("slots", 1, because=GATE))
    world.submit(Task("waits"))
    first, second = world.why("waits").reasons
    assert first == GATE
    assert isinstance(second, NoCapacity)


def test_a_ration_is_used_up_whatever_comes_back() -> None:
    world = Rationed()
    assert world.handle(s.Submit(calls("old1", "old2"))) == ["old1", "old2"]
    world.ration(1)
    assert world.handle(s.Submit(calls("a", "b", "c"))) == ["a"]
    assert world.ends("old1") == world.ends("old2") == world.ends("a") == []
    assert world.ration(None) == ["b", "c"]


def test_a_ration_of_nothing_refuses_no_task_and_says_until_when() -> None:
    world = Rationed(capacity=2)
    world.ration(0)
    assert world.handle(s.Submit((Task("a", uses="breaker:gpt=2"),))) == []
    why = world.kernel.why("a", 10.0)
    assert why.reasons == (BREAKER,)
    assert why.clears_at == 30.0
    assert "one attempt may try in 20 s" in str(why)


def test_a_child_goes_on_its_parents_ticket() -> None:
    # Otherwise a probe that waits for its own children would wait for ever.
    world = Rationed()
    world.ration(1)
    assert world.handle(s.Submit(calls("probe"))) == ["probe"]
    token = world.tokens["probe"]
    children = s.Submit(calls("c1", "c2"), parent="probe", token=token)
    assert world.handle(children) == ["c1"]
    assert world.handle(s.AwaitTasks("probe", token, 1, ("c1", "c2"))) == []
    assert world.ends("c1") == ["c2"]


def test_who_waits_for_a_ration_holds_nobody_back() -> None:
    world = Rationed(slots=1)
    world.ration(0)
    waits = Task("waits", claims=(write("src/**"), uses("breaker:gpt"), uses("gpu", 8)))
    world.handle(s.Submit((waits,)))
    for number in range(20):
        name = f"t{number}"
        passer = Task(name, claims=(write("src/a.py"), uses("gpu", 1)))
        assert world.handle(s.Submit((passer,))) == [name]
        world.ends(name)
    assert world.ration(1) == ["waits"]


def test_a_new_resource_counts_from_its_definition_on() -> None:
    world = Judged()
    world.handle(s.Define("breaker:gpt", 1))
    assert started(world.submit(*calls("a", "b"))) == ["a"]
    world.refuses(s.Define("breaker:gpt", 2), InvalidOption, "already a limit")


def test_a_name_that_is_in_use_without_a_limit_cannot_get_one() -> None:
    world = Judged()
    world.submit(*calls("a"))
    world.refuses(s.Define("breaker:gpt", 1), InvalidOption, "in use without a limit")


def test_a_rate_can_be_changed_while_some_wait_for_it() -> None:
    world = Judged(rates={"openai": Rate("1/min")})
    world.submit(*(Task(f"t{n}", uses="openai") for n in range(4)))
    assert world.starts == [(0.0, "t0")]
    assert started(world.handle(s.SetRate("openai", 2, 60.0))) == ["t1"]
    world.handle(s.SetRate("openai", 2, 10.0))
    world.until(10.0)
    assert [at for at, _ in world.starts] == [0.0, 0.0, 10.0, 10.0]


def test_a_rate_can_be_added() -> None:
    world = Judged()
    world.handle(s.SetRate("openai", 1, 5.0))
    world.submit(*(Task(name, uses="openai") for name in "ab"))
    world.until(5.0)
    assert world.starts == [(0.0, "a"), (5.0, "b")]
    assert world.state("b") is State.RUNNING


def test_what_cannot_be_throttled_is_refused() -> None:
    world = Judged(rates={"openai": Rate("1/min")})
    world.refuses(s.Throttle("openai", 1), UnknownResource, "no capacity to throttle")
    world.refuses(s.Throttle("nothing", 1), UnknownResource, "no capacity to throttle")
    world.refuses(s.Throttle("slots", -1), InvalidOption, "0 or more")
    world.refuses(s.Throttle("slots", more=1), InvalidOption, "to a level")
    world.refuses(s.SetRate("slots", 1, 1.0), InvalidOption, "cannot have a rate")
