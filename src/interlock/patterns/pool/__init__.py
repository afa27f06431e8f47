"""`AgentPool`: named, long-lived agents with sessions; also `SessionManager` and `ChatEngine`.

What lives here: the contracts of the pool and of single chats (entries in, answers out, status).
What does not: waiting, limits, timeouts, sessions, the journal. Those are the Runtime's: making an
agent is a task, every message is a task, a session is an exclusive claim, a model is a breaker.

Start with `pool.py`, then `agent_engine.py`, which the pool, the chat and the roundtable share.
`engine_config.py` makes agents from entries; `runtime/session_store.py` stores conversations.
Special words: an *entry* is the mapping that describes an agent; an *exchange* is a prompt with its
answer, stored in a session.
"""
