"""Opening a run: a new one, one that continues a closed run, or one that was interrupted.

`open_run.py` opens the journal and finds out which of the three it is. `known_tasks.py` tells what
earlier coordinators did with a task that the program submits again. `restore.py` brings a fresh
kernel to where an interrupted run was. `orphan_processes.py` makes sure that no process of an
earlier coordinator is left before anything starts.

Not here: reading events and folding them into a state, which is `journal/state`. Start reading at
`open_run.py`. Words: an attempt is *cut off* when its coordinator ends before it does; a program
*submits again* what it had submitted before the interruption.
"""
