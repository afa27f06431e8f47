"""The process that carries out a run of a project.

`project_folder` knows what is where in a project, `folder_lock` keeps a second run out of it,
`journal_watch` ends a run whose journal was deleted, `run_request` is what a run was asked to do,
`resuming` finds the run to continue. `coordinator` puts them together: it carries out one run. How
a run is shown is not known here: the command hands in a watcher. The control socket is not here
either: it belongs to every durable run and lives in `runtime/control`.

Start reading at `coordinator.py`. *Coordinator* means the object, and the process, that carries out
a run.
"""
