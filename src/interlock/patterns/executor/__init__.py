"""`ParallelExecutor`: run one group of assignments on an engine and report every outcome.

Lives here: the frozen models that callers exchange with the executor, the lock port with its
in-memory implementation, the shutdown manager, and the execution of one group. Admission, slots,
timeouts, fail-fast and the journal are the Runtime's; the engine that talks to a model is the
caller's.

Start reading at `executor.py`, then `group_execution.py`.

Words: an *assignment* is an agent with its task; a *group* is a set of assignments executed
together; an *execution* is one call of `execute_group`, a *holder* one assignment in it.
"""
