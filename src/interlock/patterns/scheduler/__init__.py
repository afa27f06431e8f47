"""`TaskScheduler` for blocking agents, and what such agents share.

Lives here: the scheduler, `LLMLimiter` (one rate limit for all threads and loops of a process),
`RollingSummary` (an append-only file of bounded size) and `SharedStore` (serialised writes around
any store). Not here: slots, timeouts and threads, which are the Runtime's; the arithmetic of rates
(`runtime/limits`); the file locks (`system/reader_writer_lock.py`).

Start reading at `scheduler.py`. The other modules are independent of it and of each other.

Words: a *step agent* is an object with a `role` and a blocking `run_step()`.
"""
