"""A language model as an agent: anything that takes a prompt and answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from interlock.errors import InvalidOption
from interlock.patterns.coordinator.subtask_agent import AgentFactory


class _Blocking:
    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    def send_prompt(self, prompt: str, context: dict[str, Any]) -> Any:
        return self._ask(prompt)


class _Async:
    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    async def send_prompt(self, prompt: str, context: dict[str, Any]) -> Any:
        return await self._ask(prompt)


def asked(llm: Any) -> AgentFactory:
    """Makes an agent that passes its prompt on to the model.

    A function that takes something else than a context takes the prompt; all others are agents
    already. A class makes one for each question.
    """
    if isinstance(llm, type):
        return llm
    if hasattr(llm, "send_prompt") or not callable(llm) or _takes_context(llm):
        if not (callable(llm) or any(hasattr(llm, n) for n in ("send_prompt", "run", "run_step"))):
            raise InvalidOption(f"llm is {llm!r}; it is a function or an agent that answers text")
        return lambda: llm
    call = llm if inspect.isroutine(llm) else llm.__call__
    if inspect.iscoroutinefunction(llm) or inspect.iscoroutinefunction(call):
        return lambda: _Async(llm)
    return lambda: _Blocking(llm)


def _takes_context(llm: Callable[..., Any]) -> bool:
    """Whether it is called as agents are, and finds the prompt in its context."""
    try:
        parameters = list(inspect.signature(llm).parameters.values())
    except (TypeError, ValueError):
        return False
    if not parameters:
        return True
    named = parameters[0].annotation
    named = named if isinstance(named, str) else getattr(named, "__name__", "")
    return parameters[0].name == "ctx" or named.rpartition(".")[2] == "TaskContext"
