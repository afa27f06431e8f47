"""The limits of a run that change while it goes on, and rates for callers outside of a run.

    options.py      the limits that a Runtime was given, checked
    rates.py        rates (requests and tokens in a window), held and changed while the run goes on
    slots.py        how many slots there are now, given the load of the machine
    breakers.py     circuit breakers: after failures in a row, a resource gives out nothing
    llm_answers.py  Retry-After and token usage, read from answers and errors of model libraries
    allowance.py    rates for any number of loops and threads, without a run; with quota_queue.py

Nothing here decides which task starts. Each part measures or counts something and tells the kernel
with a stimulus (SetRate, HoldRate, Throttle); the kernel admits tasks, and explains what they wait
for. A part reaches the kernel through `KernelDriver` only. Start with `rates.py`.

Special words: a *quota* is an amount in a window; a *meter* (kernel/meters.py) counts what is used
of it; a breaker is *half-open* while one attempt tries whether the resource works again.
"""
