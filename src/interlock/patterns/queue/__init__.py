"""`TaskQueue`: submit and forget, from any thread; tasks that conflict never run together.

Lives here: the queue with its `AgentTask` and Future, file ownership per agent type, the registry
of agents by name (a singleton across processes, by `system/lease.py`), `delegate_tasks_parallel`.
Not here: claims, priorities and retries, which are the Runtime's, and its event loop in a thread,
which is the host's.

Start reading at `queue.py`, then `task_future.py`.

Words: an *agent type* is the name of a kind of agent, of which one runs at a time; *ownership*
says which agent type may modify which paths.
"""
