"""What people and programs see of a run: the command line and the terminal.

Views read: the facts of a run come from its journal (`journal/state`), and an active run
is asked through its control socket (`runtime/control`). Views decide nothing and write nothing
back, except the request of a user.

`cli/` has the commands, `terminal/` what they draw; `forecast` estimates how long a run will take.
Start reading at `cli/app.py`.
"""
