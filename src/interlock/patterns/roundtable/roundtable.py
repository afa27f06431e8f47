"""`Roundtable`: the agents of a pool discuss a topic in rounds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Self

from interlock.errors import DuplicateId, InvalidOption
from interlock.model.duration import Duration, seconds
from interlock.model.outcome import Outcome, State
from interlock.patterns.pool.engine_config import EngineConfig, is_async
from interlock.patterns.pool.member import Question
from interlock.patterns.pool.pool import AgentPool
from interlock.patterns.pool.sessions import text_of
from interlock.patterns.pool.task_names import plain
from interlock.patterns.roundtable.prompt import Turn, fallback, prompt_for, synthesis_prompt
from interlock.runtime.log import LOGGER
from interlock.runtime.runtime import Runtime

OnTurn = Callable[[dict[str, Any]], object]
"""Called with `{"round": 1, "agent_id": "a", "response": "..."}` as each turn arrives."""

SYNTHESIS = "synthesis"


class Roundtable:
    """In a round all agents think at once; in the next one each knows what all others said.

    The agents are those of the pool, so `config` may be None. A `synthesizer`, an agent of the pool
    as well, sums up at the end. `max_history` is how many characters of earlier rounds a prompt
    holds: what is older is left out, and the prompt says so.
    """

    def __init__(
        self,
        config: EngineConfig | None,
        pool: AgentPool,
        *,
        synthesizer: str | None = None,
        on_turn: OnTurn | None = None,
        max_history: int = 100_000,
    ) -> None:
        if not isinstance(config, EngineConfig | None):
            raise InvalidOption(f"config is {config!r}; it is an EngineConfig, or None")
        if not isinstance(pool, AgentPool):
            raise InvalidOption(f"pool is {pool!r}; it is the AgentPool that has the agents")
        if on_turn is not None and (not callable(on_turn) or is_async(on_turn)):
            raise InvalidOption(f"on_turn is {on_turn!r}; it is a plain function of a turn")
        if not isinstance(synthesizer, str | None):
            raise InvalidOption(f"synthesizer is {synthesizer!r}; it is the id of an agent")
        if isinstance(max_history, bool) or not isinstance(max_history, int) or max_history < 0:
            raise InvalidOption(f"max_history is {max_history!r}; it is a number of characters")
        self._pool = pool
        self._synthesizer = synthesizer
        self._on_turn = on_turn
        self._most = max_history

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """The pool belongs to whoever made it."""

    async def discuss(
        self,
        topic: str,
        agent_ids: Iterable[str],
        rounds: int = 3,
        timeout_per_round: Duration = 120.0,
    ) -> list[dict[str, Any]]:
        """Discuss a topic; `{"round": 1, "responses": {id: text}}` for each round.

        With a synthesizer one more, whose round is `"synthesis"`. Whoever fails or has not spoken
        by the deadline of a round has a placeholder in it, and may speak in the next one.
        """
        agents = self._checked(topic, agent_ids, rounds)
        time = seconds(timeout_per_round, "timeout_per_round")
        runtime = await self._pool.engine.open()
        name = self._pool.engine.names.together(_name(topic, agents, rounds))
        said: list[Turn] = []
        found: list[dict[str, Any]] = []
        for number in range(1, rounds + 1):
            prompt = prompt_for(number, rounds, topic, said, self._most)
            part = f"{name}/round {number}"
            outcomes = await self._ask(runtime, part, number, agents, prompt, time)
            responses = dict(zip(agents, map(_text, outcomes), strict=True))
            said += [Turn(number, agent_id, text) for agent_id, text in responses.items()]
            found.append({"round": number, "responses": responses})
        if self._synthesizer is not None:
            prompt = synthesis_prompt(topic, said, self._most)
            part, by = f"{name}/{SYNTHESIS}", self._synthesizer
            (outcome,) = await self._ask(runtime, part, SYNTHESIS, [by], prompt, time)
            text = _text(outcome)
            if not outcome.succeeded:
                text = fallback(topic, f"{by} gave {text}", found[-1]["responses"])
            found.append({"round": SYNTHESIS, "responses": {by: text}})
        return found

    def _checked(self, topic: Any, agent_ids: Any, rounds: Any) -> list[str]:
        """The speakers. Whatever is wrong is raised before the first round."""
        if not isinstance(topic, str) or not topic.strip():
            raise InvalidOption(f"the topic is {topic!r}; it is text that is not blank")
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise InvalidOption(f"rounds is {rounds!r}; it is a whole number, 1 or more")
        if isinstance(agent_ids, str) or not isinstance(agent_ids, Iterable):
            raise InvalidOption(f"agent_ids is {agent_ids!r}; it is a list of ids")
        agents = list(agent_ids)
        if len(agents) < 2:
            raise InvalidOption(f"a discussion takes at least two agents, not {agents!r}")
        for agent_id in agents:
            if not isinstance(agent_id, str):
                raise InvalidOption(f"agent_ids has {agent_id!r}; an id is text")
            if agents.count(agent_id) > 1:
                raise DuplicateId(f"agent {agent_id!r} sits at the table twice")
            self._pool.member(agent_id)
        if self._synthesizer is not None:
            self._pool.member(self._synthesizer)
        return agents

    async def _ask(
        self,
        runtime: Runtime,
        part: str,
        number: int | str,
        agents: list[str],
        prompt: str,
        time: float,
    ) -> list[Outcome[Any]]:
        """The outcomes of one round, which all have the same deadline."""
        engine = self._pool.engine
        until: float | datetime = time
        if engine.resumes:
            # A duration would go on from before the crash. The round has its whole time again.
            until = datetime.fromtimestamp(engine.ports.wall() + time, UTC)
        questions = []
        for agent_id in agents:
            member = self._pool.member(agent_id)
            assert member.session is not None
            # Aside: each prompt holds the whole discussion, which need not be remembered as well.
            questions.append(
                Question(
                    member,
                    member.session,
                    prompt,
                    {},
                    f"{part}/{plain(agent_id)}",
                    deadline=until,
                    aside=True,
                )
            )

        def arrived(question: Question, outcome: Outcome[Any]) -> None:
            self._tell(number, question.member.agent_id, _text(outcome))

        outcomes = await engine.ask(runtime, questions, each=arrived)
        for outcome in outcomes:
            engine.outages.turned_away(outcome.task_id)  # its reason says the same
        return outcomes

    def _tell(self, number: int | str, agent_id: str, text: str) -> None:
        if self._on_turn is not None:
            try:
                self._on_turn({"round": number, "agent_id": agent_id, "response": text})
            except BaseException:  # noqa: BLE001 - SystemExit as well: the loop is everybody's
                LOGGER.exception("on_turn_failed")


def _text(outcome: Outcome[Any]) -> str:
    """A turn, or the placeholder for one that did not come."""
    if outcome.succeeded:
        return text_of(outcome.result)
    if outcome.status is State.TIMED_OUT:
        return "[Timeout]"
    return f"[Error: {outcome.reason or outcome.status}]"


def _name(topic: str, agents: list[str], rounds: int) -> str:
    """What a discussion is called: the same in every process, so that it is known after a crash."""
    said = "\0".join((topic, str(rounds), *agents))
    known_by = hashlib.sha256(said.encode(errors="surrogatepass"))  # a prompt may hold anything
    return f"roundtable {known_by.hexdigest()[:8]}"
