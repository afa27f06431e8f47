"""The durable record of runs: events are appended, and read back in the same order.

Lives here: the port (`port.py`) with its implementations, in memory (`memory.py`) and in SQLite
(`sqlite.py`); `schema/`, the names, versions and JSON forms of everything that is written;
`state/`, the one fold of a run's events; readers for other processes (`reader.py`, `follow.py`).
Not here: what a resume makes of all this, which is `runtime/recovery`.

Start reading at `port.py`, then `sqlite.py`; for a bug in what is stored, at `schema/names.py`.

Words: a *record* is a value that has a name in the schema, or one that `Records` keeps by key; a
*batch* is written in one transaction or not at all; a *tag* is a name with its version as written.
"""
