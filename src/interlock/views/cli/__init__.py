"""The command line: commands, their output and their JSON.

`main` is the entry point, `app` knows which commands there are, and `commands/` has them, one file
per group. `last_run` reads the last run of the project from its journal; `plan_conflicts` and
`graph_*` are about plans, `doctor` and `init_files` about setting up. The `*_json` modules define
what `--json` prints. What a terminal shows is drawn in `views/terminal`.

Start reading at `app.py`, then `commands/run.py`.
"""
