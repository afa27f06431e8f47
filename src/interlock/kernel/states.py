"""The life of a task: which state may follow which.

                 +--> skipped
    blocked -----+
       |  a
       v   f            b                     c
    waiting <------> (claims, slot) ------> running ------> succeeded | failed | conflicted
       ^                                    |  ^  |
       |                 d                  |  |g |e
       +------------ retrying <-------------+  |  +-------> needs_you
                                               +---------------+

    a  the last dependency succeeded       e  asks a person
    b  all claims and a slot are granted   f  a dependency did not succeed: skipped
    c  the attempt ended                   g  the answer is there, and a slot
    d  an attempt failed or timed out and others are left; the backoff is over

From every state but the ends: cancelled, and timed_out (its deadline, or the run's).
"""

from __future__ import annotations

from interlock.model.outcome import State

_STOPPED = frozenset({State.CANCELLED, State.TIMED_OUT})

MAY_FOLLOW: dict[State | None, frozenset[State]] = {
    None: frozenset({State.BLOCKED, State.WAITING, State.SKIPPED}),
    State.BLOCKED: _STOPPED | {State.WAITING, State.SKIPPED},
    State.WAITING: _STOPPED | {State.RUNNING},
    State.RUNNING: _STOPPED
    | {State.RETRYING, State.NEEDS_YOU, State.SUCCEEDED, State.FAILED, State.CONFLICTED},
    State.NEEDS_YOU: _STOPPED
    | {State.RUNNING, State.RETRYING, State.SUCCEEDED, State.FAILED, State.CONFLICTED},
    State.RETRYING: _STOPPED | {State.WAITING},
} | {end: frozenset() for end in State if end.is_end}
