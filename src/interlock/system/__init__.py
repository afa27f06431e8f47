"""What Interlock asks of the operating system about files and processes.

`file_locks` locks files and folders (flock) and describes the process that holds a lock.
`reader_writer_lock` is a lock of many readers or one writer for threads and processes.
`lease` gives a name to one process at a time.
`process_identity` names a process for good: its pid, its start time and the boot of its system.
`process_table` lists the processes that run now, with parent and group (Linux).

Not here: starting, containing and ending processes, which is `execution/processes`. Start reading
with `file_locks`. Every module works without Linux and says what it cannot tell there.

`process_table` is imported by the supervisor of every process agent, and each start waits for
that: it imports `os` and nothing else.
"""
