"""`Orchestrator`: decompose a task, run its subtasks in parallel, merge their results."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from interlock.errors import InterlockError, InvalidOption, OrchestratorException
from interlock.model.duration import Duration
from interlock.patterns.coordinator.config import parse_settings
from interlock.patterns.coordinator.coordinator import ParallelAgentCoordinator
from interlock.patterns.coordinator.decomposition import INSTRUCTIONS, parse_subtasks
from interlock.patterns.coordinator.llm_agent import agent_factory_for
from interlock.patterns.coordinator.result_stream import Result, UpdateQueue
from interlock.patterns.coordinator.state_updates import StateWriter
from interlock.patterns.coordinator.subtask import SubTask, attribute_of, check_id, id_of
from interlock.patterns.coordinator.subtask_agent import AgentFactory
from interlock.patterns.coordinator.subtask_prompts import title_and_description
from interlock.runtime.log import LOGGER

_MAX_PROMPTS = 2
"""How often the LLM is prompted; the second prompt says what was wrong with its answer."""


class Orchestrator:
    """Decides whether to decompose a task, runs its subtasks, and merges their results.

    `agent` does the work: a class of agents, or a function; an object is copied for each attempt,
    unless there is an `agent_factory`. `llm` is an agent that answers with text. Three functions
    replace the defaults:

    - `should_decompose(task)`: whether `estimated_complexity` is above the `complexity_threshold`
      of the configuration (50);
    - `decompose(task)`: asks the `llm` for SubTasks;
    - `merge(task, results)`: the results of completed subtasks, joined by id.

    A task that cannot be decomposed is done by one agent alone; with `fallback=False`,
    OrchestratorException says why instead. The other options are those of the `coordinator`.
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
        self._settings = parse_settings(config)
        self._writer = StateWriter(state_manager)
        self._llm = None if llm is None else agent_factory_for(llm)
        self._should_decompose = should_decompose or self._is_complex
        self._decompose = decompose
        self._merge = merge or join_results
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
        """Execute a task, given by its id in the state manager or as the task itself.

        The result has `task_id`, `status` (`completed` if every subtask is, else `failed`),
        `result`, `error`, `decomposed`, `subtasks` (the results of all subtasks) and
        `fallback_reason`.
        """
        task = self._task(task_id)
        own = id_of(task)
        own = own if own is not None else task_id
        check_id(own, "the id of a task")
        self.coordinator.check((), None, context)  # before anything starts
        with self.coordinator.kept_open():
            subtasks, reason = self._subtasks_of(task, own)
            if subtasks is None:
                alone = _alone(task, own)
                results = self.coordinator.execute_parallel([alone], {"id": own}, context)
            else:
                results = self.coordinator.execute_parallel(subtasks, _parent(task, own), context)
        return self._merged(task, own, results, subtasks is not None, reason)

    def _task(self, task_id: Any) -> Any:
        if not isinstance(task_id, int | str):
            return task_id
        get_task = self._writer.method("get_task")
        if get_task is None:
            raise OrchestratorException(
                f"the state manager has no get_task() to find task {task_id!r}; "
                "add one, or pass the task itself"
            )
        try:
            task = get_task(task_id)
        except Exception as error:
            raise OrchestratorException(
                f"task {task_id!r} could not be found: {error!r}"
            ) from error
        if task is None:
            raise OrchestratorException(f"the state manager has no task {task_id!r}")
        return task

    # -- decomposing ------------------------------------------------------------------------

    def _is_complex(self, task: Any) -> bool:
        complexity = attribute_of(task, "estimated_complexity")
        return isinstance(complexity, int | float) and complexity > self._settings.threshold

    def _subtasks_of(self, task: Any, own: Any) -> tuple[list[SubTask] | None, str | None]:
        """Return the subtasks, or None for one agent alone, with the reason for a fallback."""
        if not self._should_decompose(task):
            return None, None
        try:
            if self._decompose is None:
                return self._ask_llm(task, own), None
            subtasks = list(self._decompose(task))
            if not subtasks:
                raise OrchestratorException(f"decompose() returned no subtasks for task {own!r}")
            self.coordinator.check(subtasks, _parent(task, own), None)
        except Exception as error:
            if not self._fallback:
                if isinstance(error, InterlockError):
                    raise
                raise OrchestratorException(
                    f"task {own!r} could not be decomposed: {error!r}"
                ) from error
            reason = f"{type(error).__name__}: {error}"
            LOGGER.warning("not_decomposed", extra={"interlock": {"task": own, "reason": reason}})
            return None, reason
        return subtasks, None

    def _ask_llm(self, task: Any, own: Any) -> list[SubTask]:
        """Ask the LLM, and once more if its answer is invalid."""
        if self._llm is None:
            raise OrchestratorException("a task cannot be decomposed without an llm or decompose=")
        problem = ""
        for number in range(1, _MAX_PROMPTS + 1):
            answer = self._prompt_llm(task, own, number, problem)
            try:
                subtasks = parse_subtasks(answer, own)
                self.coordinator.check(subtasks, _parent(task, own), None)
            except InterlockError as error:
                problem = str(error)
            else:
                return subtasks
        raise OrchestratorException(
            f"task {own!r}: the LLM was asked {_MAX_PROMPTS} times, and its last answer cannot be "
            f"used: {problem}"
        )

    def _prompt_llm(self, task: Any, own: Any, number: int, problem: str) -> Any:
        correction = f"\nYour last answer could not be used: {problem}" if problem else ""
        question = SubTask(
            f"decompose {number}",
            own,
            "split it into subtasks",
            f"{INSTRUCTIONS}{correction}",
            None,
            None,
            is_test=False,
        )
        updates = UpdateQueue()
        call = self.coordinator.call([question], _parent(task, own), None, updates.put, self._llm)
        # The state manager is not told: this is not a subtask of the task.
        (result,) = self.coordinator.results_of(call, updates, StateWriter(None))
        if result["status"] != "completed":
            raise OrchestratorException(
                f"task {own!r}: the LLM did not answer: {result['status']}: {result['error']}"
            )
        return result["result"]

    # -- merging ----------------------------------------------------------------------------

    def _merged(
        self, task: Any, own: Any, results: list[Result], decomposed: bool, reason: str | None
    ) -> Result:
        failed = [each for each in results if each["status"] != "completed"]
        texts = [f"{each['subtask_id']} {each['status']}: {each['error']}" for each in failed]
        error = (
            f"{len(failed)} of {len(results)} not completed: {'; '.join(texts)}" if failed else None
        )
        try:
            merged = self._merge(task, results) if decomposed else results[0]["result"]
        except Exception as problem:  # noqa: BLE001 - the user's function; the results are kept
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

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self.coordinator.__exit__(kind, error, traceback)


def join_results(task: Any, results: list[Result]) -> str:
    """Join the results of completed subtasks by id, with an empty line in between."""
    return "\n\n".join(str(each["result"]) for each in results if each["status"] == "completed")


def _parent(task: Any, own: Any) -> dict[str, Any]:
    title, description = title_and_description(task)
    return {"id": own, "title": title, "description": description}


def _alone(task: Any, own: Any) -> SubTask:
    title, description = title_and_description(task)
    complexity = attribute_of(task, "estimated_complexity")
    if isinstance(complexity, bool) or not isinstance(complexity, int | float):
        complexity = None
    return SubTask(own, own, title, description, complexity, None)


def _factory(agent: Any) -> AgentFactory:
    if isinstance(agent, type):
        return agent
    if agent is None or isinstance(agent, str | int | float):
        raise InvalidOption(f"agent is {agent!r}; it must be a class, a function or an agent")
    if inspect.isroutine(agent) or not (hasattr(agent, "send_prompt") or hasattr(agent, "run")):
        return lambda: agent
    try:
        copy.deepcopy(agent)
    except Exception as error:
        raise InvalidOption(
            f"{agent!r} cannot be copied, but each attempt needs an agent of its own: {error!r}; "
            "pass agent_factory= or the class"
        ) from error
    return lambda: copy.deepcopy(agent)
