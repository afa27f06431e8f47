"""`Roundtable`: the agents of a pool discuss a topic in rounds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Self

from interlock.errors import DuplicateId, InvalidOption
from interlock.model.duration import Duration, seconds
from interlock.model.outcome import Outcome, State
from interlock.patterns.pool.agent_engine import escaped
from interlock.patterns.pool.engine_config import EngineConfig, is_async
from interlock.patterns.pool.pool import AgentPool
from interlock.patterns.pool.pooled_agent import AgentMessage
from interlock.patterns.roundtable.prompt import (
    DiscussionTurn,
    fallback,
    prompt_for,
    synthesis_prompt,
)
from interlock.runtime.log import LOGGER
from interlock.runtime.runtime import Runtime
from interlock.runtime.session_store import text_of

OnTurn = Callable[[dict[str, Any]], object]
"""Called with `{"round": 1, "agent_id": "a", "response": "..."}` as each turn arrives."""

SYNTHESIS = "synthesis"


class Roundtable:
    """In each round all agents answer in parallel; in the next one each knows all earlier answers.

    The agents are those of the pool, so `config` may be None. A `synthesizer`, also an agent of the
    pool, sums up at the end. `max_history` is the maximum number of characters of earlier rounds in
    a prompt: older turns are left out, and the prompt says so.
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
            raise InvalidOption(f"config is {config!r}; it must be an EngineConfig or None")
        if not isinstance(pool, AgentPool):
            raise InvalidOption(f"pool is {pool!r}; it must be the AgentPool that has the agents")
        if on_turn is not None and (not callable(on_turn) or is_async(on_turn)):
            raise InvalidOption(f"on_turn is {on_turn!r}; it must be a plain function of a turn")
        if not isinstance(synthesizer, str | None):
            raise InvalidOption(f"synthesizer is {synthesizer!r}; it must be the id of an agent")
        if isinstance(max_history, bool) or not isinstance(max_history, int) or max_history < 0:
            raise InvalidOption(
                f"max_history is {max_history!r}; it must be a number of characters"
            )
        self._pool = pool
        self._synthesizer = synthesizer
        self._on_turn = on_turn
        self._max_history = max_history

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave the pool open: it belongs to the program that made it."""

    async def discuss(
        self,
        topic: str,
        agent_ids: Iterable[str],
        rounds: int = 3,
        timeout_per_round: Duration = 120.0,
    ) -> list[dict[str, Any]]:
        """Discuss a topic; returns `{"round": 1, "responses": {id: text}}` for each round.

        With a synthesizer there is one more, whose round is `"synthesis"`. An agent that fails, or
        does not answer before the deadline of a round, has a placeholder in it and takes part in
        the next one.
        """
        agents = self._checked(topic, agent_ids, rounds)
        time = seconds(timeout_per_round, "timeout_per_round")
        runtime = await self._pool.engine.open()
        name = runtime.fresh_id(
            _name(topic, agents, rounds),
            ids=lambda name: [_task_id(name, 1, agent_id) for agent_id in agents],
        )
        said: list[DiscussionTurn] = []
        found: list[dict[str, Any]] = []
        for number in range(1, rounds + 1):
            prompt = prompt_for(number, rounds, topic, said, self._max_history)
            outcomes = await self._ask(runtime, name, number, agents, prompt, time)
            responses = dict(zip(agents, map(_text, outcomes), strict=True))
            said += [DiscussionTurn(number, agent_id, text) for agent_id, text in responses.items()]
            found.append({"round": number, "responses": responses})
        if self._synthesizer is not None:
            prompt = synthesis_prompt(topic, said, self._max_history)
            by = self._synthesizer
            (outcome,) = await self._ask(runtime, name, SYNTHESIS, [by], prompt, time)
            text = _text(outcome)
            if not outcome.succeeded:
                text = fallback(topic, f"{by} gave {text}", found[-1]["responses"])
            found.append({"round": SYNTHESIS, "responses": {by: text}})
        return found

    def _checked(self, topic: Any, agent_ids: Any, rounds: Any) -> list[str]:
        """The ids of the agents; raises for what is wrong before the first round."""
        if not isinstance(topic, str) or not topic.strip():
            raise InvalidOption(f"the topic is {topic!r}; it must be non-blank text")
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise InvalidOption(f"rounds is {rounds!r}; it must be a whole number, 1 or more")
        if isinstance(agent_ids, str) or not isinstance(agent_ids, Iterable):
            raise InvalidOption(f"agent_ids is {agent_ids!r}; it must be a list of ids")
        agents = list(agent_ids)
        if len(agents) < 2:
            raise InvalidOption(f"a discussion needs at least two agents, not {agents!r}")
        for agent_id in agents:
            if not isinstance(agent_id, str):
                raise InvalidOption(f"agent_ids has {agent_id!r}; an id must be text")
            if agents.count(agent_id) > 1:
                raise DuplicateId(f"agent {agent_id!r} is in the discussion twice")
            self._pool.agent(agent_id)
        if self._synthesizer is not None:
            self._pool.agent(self._synthesizer)
        return agents

    async def _ask(
        self,
        runtime: Runtime,
        name: str,
        part: int | str,
        agents: list[str],
        prompt: str,
        time: float,
    ) -> list[Outcome[Any]]:
        """The outcomes of one round, or of the synthesis. They share one deadline."""
        engine = self._pool.engine
        until: float | datetime = time
        if engine.resumes:
            # A duration would count from before the crash. The round gets its whole time again.
            until = datetime.fromtimestamp(engine.ports.wall() + time, UTC)
        messages = []
        for agent_id in agents:
            agent, task_id = self._pool.agent(agent_id), _task_id(name, part, agent_id)
            assert agent.session is not None
            # Aside: each prompt has the whole discussion, so the session need not keep it.
            messages.append(
                AgentMessage(agent, agent.session, prompt, {}, task_id, deadline=until, aside=True)
            )

        def arrived(message: AgentMessage, outcome: Outcome[Any]) -> None:
            self._notify(part, message.to.agent_id, _text(outcome))

        return await engine.send(runtime, messages, on_answer=arrived)

    def _notify(self, part: int | str, agent_id: str, text: str) -> None:
        if self._on_turn is not None:
            try:
                self._on_turn({"round": part, "agent_id": agent_id, "response": text})
            except BaseException:  # noqa: BLE001 - SystemExit as well: the loop is shared
                LOGGER.exception("on_turn_failed")


def _text(outcome: Outcome[Any]) -> str:
    """The text of a turn, or the placeholder for a missing one."""
    if outcome.succeeded:
        return text_of(outcome.result)
    if outcome.status is State.TIMED_OUT:
        return "[Timeout]"
    return f"[Error: {outcome.reason or outcome.status}]"


def _name(topic: str, agents: list[str], rounds: int) -> str:
    """The name of a discussion: the same in every process, so that a crash can be resumed."""
    text = "\0".join((topic, str(rounds), *agents))
    digest = hashlib.sha256(text.encode(errors="surrogatepass"))  # a topic may be any text
    return f"roundtable {digest.hexdigest()[:8]}"


def _task_id(name: str, part: int | str, agent_id: str) -> str:
    stage = part if isinstance(part, str) else f"round {part}"
    return f"{name}/{stage}/{escaped(agent_id)}"
