"""The async shell around the kernel: feeds it, journals its decisions, and carries them out.

Start with `shell.py`: the turn of the loop, and why it is right. Then `runtime.py`, the public API,
and `lifecycle.py`, how a run begins and ends. The shell's parts each own some of its state:

    submission/     how tasks come in            task_table.py   the tasks of a run, by id and key
    attempts.py     what runs                    requests.py     what running attempts ask for
    limits/         rates, slots, breakers       event_stream.py journal, listeners, followers
    recovery/       resuming a run               control/        commands from other processes
    hosting/        Runtimes for threads and for callers that share one

What does not live here: decisions about which task starts (`kernel/`), how an attempt runs
(`execution/`), what is on disk (`journal/`). This is the only room that sees all three.

Special words: a *turn* is one pass of the event loop, and one transaction; a *stimulus* goes into
the kernel, *instructions* come out; a *token* is the fencing token of an attempt, by which late
effects are refused; an *orphan* is an attempt that outlived its run.
"""
