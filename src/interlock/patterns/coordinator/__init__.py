"""`ParallelAgentCoordinator` and `Orchestrator`: a task is split into subtasks for parallel agents.

Lives here: subtasks, their groups and prompts, the lifecycle of the agent of each attempt, the
results and records, the updates for a state manager, and the orchestrator that decides, decomposes
and merges. Not here: admission, retries, timeouts and estimates, which are the Runtime's, and the
opening and sharing of that Runtime (`runtime/hosting`).

Start reading at `coordinator.py`, then `coordinated_call.py`. `orchestrator.py` builds on both.

Words: a *call* is one `execute_parallel`, `stream` or `execute`; a *group* is a set of subtasks
that run together; an *update* is what a state manager is told about a subtask or a group.
"""
