"""Running one attempt: the ports of agents, backends and workspaces, and what implements them.

    backend      the port: one attempt goes in, one ending comes out
    call_spec    how an agent is called, and which kind of backend runs it
    ending       how an attempt ended, before the kernel decides what follows
    callables/   coroutines on the event loop, blocking functions in threads
    processes/   functions in processes of their own; supervisors, containment, sweeping
    commands/    programs: their environment, output, log and verdict
    workspaces/  where attempts work: the port, and the shared project folder

Not here: deciding what starts (`kernel`) and recording it (`journal`). Start with `backend`.

Special words. *Gone*: nothing of an attempt runs any more; only then are its claims released.
*Supervisor*: a process of ours that watches one agent and ends everything the agent started.
*Containment*: how the processes of an agent are kept together. *Marks*: environment variables by
which the processes of a task are recognised without a supervisor.
"""
