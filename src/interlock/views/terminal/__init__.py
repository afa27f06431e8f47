"""What a terminal shows of a run.

`live_view` draws `frame` after `frame` on a `screen`; `line_view` prints lines where there is no
terminal to draw in; `watchers` chooses between them. `status`, `summary` and `explanation` are
printed once. All text of agents and files passes through `safe_text`, and everything is fitted to
cells by `cells`. Nothing here reads a journal.

Start reading at `frame.py`. A *row* is a line for one task, the *footer* the last lines of the live
view.
"""
