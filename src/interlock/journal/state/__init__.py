"""What the events of a run amount to: the state of a run and of its tasks, folded from its journal.

Here live the records that views, the service and the control socket read (`run_facts`) and the fold
that makes them (`run_fold`). Nothing here writes to a journal, and nothing here decides anything.
Start reading at `run_facts.py`.
"""
