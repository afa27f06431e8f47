"""Where attempts work: the port, and the workspaces that implement it.

`port` says what the runtime asks of a workspace: *prepare* it before the agent starts, *audit* it
once nothing of the agent runs any more, *release* it. `shared` is the project folder itself, which
all attempts work in; claims keep them apart.

Not here: what an attempt keeps beside its workspace (log, TMPDIR, prompt), which is
`commands/attempt_folder`, and what claims mean on disk, which is `runtime/claim_paths`. Start with
`port`; the runtime's side of it is `runtime/attempts`.
"""
