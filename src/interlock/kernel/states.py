"""The lifecycle of a task: which state may follow which.

                f
      blocked -----> skipped
         | a
         v       b               c
      waiting -------> running ------> succeeded | failed | timed_out | conflicted
         ^              |  | ^
         |       d      |  | | g
         +-- retrying <-+  | +------+
                           +---> needs_you
                             e

    a  the last dependency succeeded       e  it asks a person
    b  all claims and a slot are granted   f  a dependency did not succeed
    c  the attempt ended, or its time did  g  the answer is there, and a slot
    d  an attempt failed or timed out and others are left; then the backoff is over

Every state but the final ones also leads to cancelled and, at a deadline, to timed_out. An attempt
may end while it waits for a person, so what may follow `running` may follow `needs_you`.
"""

from __future__ import annotations

from interlock.model.outcome import State

_STOPPED = frozenset({State.CANCELLED, State.TIMED_OUT})

MAY_FOLLOW: dict[State | None, frozenset[State]] = {
    # In a resumed run a task may still be between two attempts.
    None: frozenset({State.BLOCKED, State.WAITING, State.SKIPPED, State.RETRYING}),
    State.BLOCKED: _STOPPED | {State.WAITING, State.SKIPPED},
    State.WAITING: _STOPPED | {State.RUNNING},
    State.RUNNING: _STOPPED
    | {State.RETRYING, State.NEEDS_YOU, State.SUCCEEDED, State.FAILED, State.CONFLICTED},
    State.NEEDS_YOU: _STOPPED
    | {State.RUNNING, State.RETRYING, State.SUCCEEDED, State.FAILED, State.CONFLICTED},
    State.RETRYING: _STOPPED | {State.WAITING},
} | {end: frozenset() for end in State if end.is_end}

FIRST_STATES = frozenset(state.value for state in MAY_FOLLOW[None])
FOLLOWERS = {
    old.value: frozenset(state.value for state in states)
    for old, states in MAY_FOLLOW.items()
    if old is not None
}
"""The same by value: looking up a str is quicker than looking up an Enum."""
