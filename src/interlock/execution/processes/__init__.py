"""Agents in processes of their own, which can be killed with all that they have started.

Start with `process_backend` (the backends), then `supervised_attempt` (one attempt as a thread of
ours sees it). `supervisor` and `containment` run in the agent's own process tree, in an interpreter
that imports as little as possible; `function_child` is what such an interpreter runs for
`interlock.process()`. `wire` and `inbox` carry the call and its ending. `sweep` ends processes that
have lost their supervisor. `shortage` waits for descriptors and processes that the system lacks.

Not here: what is special to programs, which is `commands`, and naming or locking on the level of
the operating system, which is the room `system`.
"""
