"""How tasks come into a run.

    submitting.py   the public methods: submit, submit_all, run, map, wait_all
    preparation.py  one task: its agent can be called, its claims and data are in their final form
    prepared.py     the result of that
    batch.py        several tasks: known ones are recognized, new ones go to the kernel together
    parent.py       children: what the attempt that submits them has to offer, and their names

Start with `batch.py`. Nothing here changes the state of a run by itself: a batch hands the kernel
one stimulus, and the shell adds the handles once the kernel has accepted it. Whether a task *may
start* is decided in `kernel/`; whether it *has been done before* in `runtime/recovery/`.
"""
