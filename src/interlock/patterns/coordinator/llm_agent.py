"""Use a language model as an agent: anything that takes a prompt and answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from interlock.errors import InvalidOption
from interlock.patterns.coordinator.subtask_agent import AgentFactory


class _BlockingModel:
    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    def send_prompt(self, prompt: str, context: dict[str, Any]) -> Any:
        return self._ask(prompt)


class _AsyncModel:
    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    async def send_prompt(self, prompt: str, context: dict[str, Any]) -> Any:
        return await self._ask(prompt)


def agent_factory_for(llm: Any) -> AgentFactory:
    """Return a factory of agents that pass their prompt to the model.

    A function whose first parameter is not a context gets the prompt; everything else is an agent
    already. A class makes an agent for each prompt.
    """
    if isinstance(llm, type):
        return llm
    if hasattr(llm, "send_prompt") or not callable(llm) or _takes_context(llm):
        if not (callable(llm) or any(hasattr(llm, n) for n in ("send_prompt", "run", "run_step"))):
            raise InvalidOption(f"llm is {llm!r}; it must be a function or agent that returns text")
        return lambda: llm
    call = llm if inspect.isroutine(llm) else llm.__call__
    if inspect.iscoroutinefunction(llm) or inspect.iscoroutinefunction(call):
        return lambda: _AsyncModel(llm)
    return lambda: _BlockingModel(llm)


def _takes_context(llm: Callable[..., Any]) -> bool:
    """Whether it is called like an agent, with the prompt in its context."""
    try:
        parameters = list(inspect.signature(llm).parameters.values())
    except (TypeError, ValueError):
        return False
    if not parameters:
        return True
    named = parameters[0].annotation
    named = named if isinstance(named, str) else getattr(named, "__name__", "")
    return parameters[0].name == "ctx" or named.rpartition(".")[2] == "TaskContext"
