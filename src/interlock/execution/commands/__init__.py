"""Programs as agents (`interlock.command()`): what they are given, and what their output means.

Start with `command_attempt`, which takes one program from its start to its verdict. `launch` starts
its supervisor in the strongest containment that the system allows; `command_child` is the first
code of that process. `environment` makes its variables, `attempt_folder` its log, TMPDIR and prompt
file. `plain_output`, `output` and `log_file` take in what it prints. `verdict` decides what its
exit code and its output mean. `removal` deletes its temporary folder, whatever is in it.

Not here: supervision itself, which is `processes`.
"""
