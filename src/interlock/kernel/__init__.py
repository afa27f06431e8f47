"""The kernel: decides what starts, when it ends, and what follows. Pure.

What lives here: the claim table, admission, the order of starts, the lifecycle of tasks and
attempts, and the explanation of why a task waits. A stimulus and a time go in, instructions come
out. What does not: clocks, I/O, threads, randomness, logging. The same stimuli at the same times
give the same instructions.

Start reading at `kernel.handle`; then `run` (lifecycle), `admission` (what starts next), `places`
(what conflicts). `stimuli` and `instructions` are the whole interface.

    stimuli ──> kernel ──> run ────────> admission ──> table ──> places, meters
                  │         │  requests     │ overtaking          │
                  │         │  restore      │ order               └ shelves, lines: what waits there
                  │         │  deadlock     └ waiters: what waits and what is held
                  │         └ records, states, timers
                  ├ controls, external_holds: what people and earlier runs do
                  └ explain: why something waits

The argument in short
---------------------
- *No two conflicting attempts.* Two claims conflict exactly when one looks at a point that the
  other marks (`places`). A waiter is granted everything only when none of its looks finds a hold
  (`table`). A hold ends only when its attempt has exited, not when it was told to stop (`run`).
- *No waiter is lost.* A blocked waiter watches one obstacle, and whatever removes an obstacle lists
  the waiters that watch it (`admission`).
- *No deadlock.* A task that waits holds nothing. Only requests in mid-flight hold while they wait,
  and one that could never end is denied (`deadlock`).
- *No starvation.* A waiter that has been overtaken 2 x slots times is due, and no younger task that
  conflicts with it starts first (`overtaking`).
- *One outcome for each task.* `states` is the table of transitions, and final states lead nowhere.
- *The cost does not grow with the queue.* A release lists shelves and looks at no waiter; a start
  looks at a few (`admission` has the table).

Words
-----
stimulus      something that happened, as plain data
instruction   something the runtime has to do
turn          one call of `handle`; what became ready in one turn is equally old
entry         what the kernel keeps about a task
grant         what one attempt (or something outside the run) holds
place         a name, file, folder or pattern that has been claimed
point         a counter of readers and writers at a place; claims conflict at points
meter         a resource of which there is an amount: slots, capacities, rates
waiter        a task or a request that waits for claims, amounts or a slot
shelf         the waiters of one profile that one point blocks, best first
profile       waiters that need the same amounts; if one of them lacks an amount, all do
listed        said of a shelf with a waiter that might be able to start
parked        said of a waiter that is held back by a due waiter, not by what is held
line          the waiters at a point, oldest first; used to count overtaking
overtaking    a start that passes an older waiter which it conflicts with
due           overtaken so often that no younger conflicting waiter may start first
reservation   what a due waiter keeps others from taking
request       what a running attempt waits for in mid-flight: claims, a rate, tasks, a person
kin           an attempt and its ancestors; children may share what they hold
exempt        passes due waiters and reservations: requests, children, awaited tasks
zombie        an attempt that was told to stop and has not exited
external hold claims that an attempt of an earlier run in this process still holds
"""
