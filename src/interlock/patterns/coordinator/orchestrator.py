"""`Orchestrator`: a task is split, its parts run in parallel, their results are merged."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from interlock.errors import InterlockError, InvalidOption, OrchestratorException
from interlock.model.duration import Duration
from interlock.patterns.coordinator.config import settings
from interlock.patterns.coordinator.coordinator import ParallelAgentCoordinator
from interlock.patterns.coordinator.decomposition import INSTRUCTIONS, subtasks_in
from interlock.patterns.coordinator.llm_agent import asked
from interlock.patterns.coordinator.result_stream import Result
from interlock.patterns.coordinator.state_updates import StateWriter
from interlock.patterns.coordinator.subtask import SubTask, about, check_id, id_of
from interlock.patterns.coordinator.subtask_agent import AgentFactory
from interlock.patterns.coordinator.subtask_prompts import described
from interlock.patterns.coordinator.update_queue import UpdateQueue
from interlock.runtime.log import LOGGER

_ASKED = 2
"""How often the LLM is asked: the second time it is told what was wrong with its answer."""


class Orchestrator:
    """Decides whether a task is split, has it split and worked on, and merges what comes of it.

    `agent` does the work: a class of agents, or a function; an object is copied for each attempt,
    or give an `agent_factory`. `llm` is an agent too, and answers with text. Three functions can
    take the place of the defaults:

    - `should_decompose(task)`: whether `estimated_complexity` is above the `complexity_threshold`
      of the configuration (50);
    - `decompose(task)`: asks the `llm` for SubTasks;
    - `merge(task, results)`: the results of completed subtasks, joined by id.

    A task that cannot be split is done by one agent alone, unless `fallback` is False: then
    OrchestratorException says why. `coordinator` runs it all; the other options are its options.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None,
        state_manager: Any,
        agent: Any,
        llm: Any,
        *,
        should_decompose: Callable[[Any], bool] | None = None,
        decompose: Callable[[Any], Iterable[SubTask]] | None = None,
        merge: Callable[[Any, list[Result]], Any] | None = None,
        agent_factory: AgentFactory | None = None,
        fallback: bool = True,
        journal: str | os.PathLike[str] | None = None,
        resume: bool | str | None = None,
        workspace: str | os.PathLike[str] = ".",
        grace: Duration = 30.0,
    ) -> None:
        self._settings = settings(config)
        self._scribe = StateWriter(state_manager)
        self._llm = None if llm is None else asked(llm)
        self._should_decompose = should_decompose or self._is_complex
        self._decompose = decompose
        self._merge = merge or joined
        self._fallback = fallback
        self.coordinator = ParallelAgentCoordinator(
            state_manager,
            agent_factory or _factory(agent),
            config,
            journal=journal,
            resume=resume,
            workspace=workspace,
            grace=grace,
        )

    def execute_task(self, task_id: Any, context: Mapping[str, Any] | None = None) -> Result:
        """Do a task, named by its id in the state manager, or given as it is.

        The result has `task_id`, `status` (`completed` if all of it is, otherwise `failed`),
        `result`, `error`, `decomposed`, `subtasks` (the results of all parts) and
        `fallback_reason`.
        """
        task = self._task(task_id)
        own = id_of(task)
        own = own if own is not None else task_id
        check_id(own, "the id of a task")
        self.coordinator.check((), None, context)  # before anybody is asked
        with self.coordinator.kept_open():
            subtasks, reason = self._split(task, own)
            if subtasks is None:
                alone = _alone(task, own)
                results = self.coordinator.execute_parallel([alone], {"id": own}, context)
            else:
                results = self.coordinator.execute_parallel(subtasks, _parent(task, own), context)
        return self._merged(task, own, results, subtasks is not None, reason)

    def _task(self, task_id: Any) -> Any:
        if not isinstance(task_id, int | str):
            return task_id
        get_task = self._scribe.method("get_task")
        if get_task is None:
            raise OrchestratorException(
                f"the state manager has no get_task() to find task {task_id!r} with; "
                "give it one, or give the task itself"
            )
        try:
            task = get_task(task_id)
        except Exception as error:
            raise OrchestratorException(
                f"task {task_id!r} could not be found: {error!r}"
            ) from error
        if task is None:
            raise OrchestratorException(f"the state manager knows no task {task_id!r}")
        return task

    # -- splitting --------------------------------------------------------------------------

    def _is_complex(self, task: Any) -> bool:
        complexity = about(task, "estimated_complexity")
        return isinstance(complexity, int | float) and complexity > self._settings.threshold

    def _split(self, task: Any, own: Any) -> tuple[list[SubTask] | None, str | None]:
        """The subtasks, or None for one agent alone; and why, if it should have been split."""
        if not self._should_decompose(task):
            return None, None
        try:
            if self._decompose is None:
                return self._ask(task, own), None
            subtasks = list(self._decompose(task))
            if not subtasks:
                raise OrchestratorException(f"task {own!r} was split into nothing")
            self.coordinator.check(subtasks, _parent(task, own), None)
        except Exception as error:
            if not self._fallback:
                if isinstance(error, InterlockError):
                    raise
                raise OrchestratorException(f"task {own!r} was not split: {error!r}") from error
            reason = f"{type(error).__name__}: {error}"
            LOGGER.warning("not_decomposed", extra={"interlock": {"task": own, "reason": reason}})
            return None, reason
        return subtasks, None

    def _ask(self, task: Any, own: Any) -> list[SubTask]:
        """Ask the LLM, and once more if its answer cannot be used."""
        if self._llm is None:
            raise OrchestratorException("there is no llm to split a task, and no decompose=")
        wrong = ""
        for number in range(1, _ASKED + 1):
            answer = self._answer(task, own, number, wrong)
            try:
                subtasks = subtasks_in(answer, own)
                self.coordinator.check(subtasks, _parent(task, own), None)
            except InterlockError as error:
                wrong = str(error)
            else:
                return subtasks
        raise OrchestratorException(
            f"task {own!r}: the LLM was asked {_ASKED} times, and its last answer cannot be used: "
            + wrong
        )

    def _answer(self, task: Any, own: Any, number: int, wrong: str) -> Any:
        told = f"{INSTRUCTIONS}\nYour last answer could not be used: {wrong}" if wrong else ""
        asking = SubTask(
            f"decompose {number}",
            own,
            "split it into subtasks",
            told or INSTRUCTIONS,
            None,
            None,
            is_test=False,
        )
        feed = UpdateQueue()
        call = self.coordinator.call([asking], _parent(task, own), None, feed.tell, self._llm)
        # It is no subtask of the task: the state manager is not told of it.
        (result,) = self.coordinator.results_of(call, feed, StateWriter(None))
        if result["status"] != "completed":
            raise OrchestratorException(
                f"task {own!r}: the LLM did not answer: {result['status']}: {result['error']}"
            )
        return result["result"]

    # -- merging ----------------------------------------------------------------------------

    def _merged(
        self, task: Any, own: Any, results: list[Result], decomposed: bool, reason: str | None
    ) -> Result:
        bad = [each for each in results if each["status"] != "completed"]
        said = [f"{each['subtask_id']} {each['status']}: {each['error']}" for each in bad]
        error = f"{len(bad)} of {len(results)} not completed: {'; '.join(said)}" if bad else None
        try:
            merged = self._merge(task, results) if decomposed else results[0]["result"]
        except Exception as problem:  # noqa: BLE001 - a plugged-in function; what was done is kept
            LOGGER.exception("merge_failed", extra={"interlock": {"task": own}})
            merged, error = None, "; ".join(filter(None, [error, f"merge: {problem!r}"]))
        return {
            "task_id": own,
            "status": "completed" if error is None else "failed",
            "result": merged,
            "error": error,
            "decomposed": decomposed,
            "subtasks": results,
            "fallback_reason": reason,
        }

    def __enter__(self) -> Self:
        self.coordinator.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.coordinator.__exit__(kind, error, traceback)


def joined(task: Any, results: list[Result]) -> str:
    """The results of completed subtasks by id, with an empty line in between."""
    return "\n\n".join(str(each["result"]) for each in results if each["status"] == "completed")


def _parent(task: Any, own: Any) -> dict[str, Any]:
    title, description = described(task)
    return {"id": own, "title": title, "description": description}


def _alone(task: Any, own: Any) -> SubTask:
    title, description = described(task)
    complexity = about(task, "estimated_complexity")
    if isinstance(complexity, bool) or not isinstance(complexity, int | float):
        complexity = None
    return SubTask(own, own, title, description, complexity, None)


def _factory(agent: Any) -> AgentFactory:
    if isinstance(agent, type):
        return agent
    if agent is None or isinstance(agent, str | int | float):
        raise InvalidOption(f"agent is {agent!r}; give a class of agents, a function or an agent")
    if inspect.isroutine(agent) or not (hasattr(agent, "send_prompt") or hasattr(agent, "run")):
        return lambda: agent
    try:
        copy.deepcopy(agent)
    except Exception as error:
        raise InvalidOption(
            f"{agent!r} cannot be copied, and each attempt needs an agent of its own: {error!r}; "
            "give agent_factory= or the class"
        ) from error
    return lambda: copy.deepcopy(agent)
