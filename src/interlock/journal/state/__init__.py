"""How a run stands, folded from its events: the one fold of the project.

`run_state.py` is the fold and `task_state.py` what it knows of each task. The journal fills its
table of tasks from it (`journal/event_rows.py`), a resume restores the kernel from it
(`runtime/recovery/`), and `run_fold.py` describes it as `run_facts.py` for views, the service and
the control socket. Everything here is pure: events in, state out. Nothing here writes to a journal
or decides anything. Start reading at `run_state.py`.
"""
