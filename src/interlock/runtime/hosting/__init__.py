"""Hosting: when a Runtime is opened and closed, on which loop, and which callers share it.

A `Runtime` is one run inside one `async with` block. The systems in `patterns/` are objects that
are used without such a block, by several callers at once, on an event loop or in threads. Here is
the one class that stands between the two: `host.RuntimeHost`. It decides when a Runtime is opened
and closed, on which event loop, and which callers may share it. It knows nothing about tasks.

Start with `host.py`; `run_chain.py` counts callers and lets one run follow another, `hosted_run.py`
is one Runtime from its opening to its end, `milestone.py` what its callers wait for. Beside them:
`runtime_factory.py` makes the Runtimes of a host from one set of options, `thread_queue.py` passes
items from the loop of a run to a thread, `finish_at_exit.py` finishes open work when the program
ends.
Special words: a *caller* is a call that has entered and has not left; a *hosted run* is one Runtime
together with its callers; its *predecessor* is the hosted run that must be closed before it opens.
"""
