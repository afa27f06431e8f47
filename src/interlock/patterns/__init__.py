"""Seven ways to organise parallel agents, each a thin layer on the public Runtime.

    pool/          named, long-lived agents with sessions           AgentPool
    roundtable/    a discussion of the agents of a pool, in rounds  Roundtable
    cron/          jobs on a clock                                  CronScheduler
    executor/      one group on an engine, all outcomes             ParallelExecutor
    scheduler/     blocking agents; what they share                 TaskScheduler, LLMLimiter
    queue/         submit and forget, from any thread               TaskQueue
    coordinator/   a task split into subtasks                       ParallelAgentCoordinator

Each package holds the contract of one system: its names, its records and its words for states. What
two of them need belongs to the runtime: opening and sharing a Runtime (`runtime/hosting`), ids that
are used again, limits for a group, the conversion of outcomes. No package imports another, except
that a roundtable uses a pool. Start reading with the package's own `__init__.py`; docs/systems has
a page for each.
"""
