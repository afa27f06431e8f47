"""The names under which events and records are written, with their versions. One table for all.

A name is a promise: a journal outlives the classes of the program that wrote it. Nothing here
follows from a Python class, module or attribute, so all of those can be renamed without changing a
byte of a journal. A name that was released is never given to anything else.

How to change what is written:

* A record gets a field that has a default: add it to the end of its line. Old journals lack the
  field and are read with the default.
* A field changes its meaning, or goes: raise the version, and add a function to `upcasters.py` that
  makes the new form out of the one before.
* A class or an attribute is renamed: change the table that binds names to classes
  (`own_records.py` here, `runtime/recorded_types.py` for what the kernel is told and decides), or
  write `wire_name=attribute` for a field. Nothing else changes.

Version 1 is written as the bare name, a later one as `name/2`. The names of 0.1.0, which were those
of its classes, are in the last column. They are still read, and they are part of every fingerprint:
a task that was submitted then is recognised now.
"""

from __future__ import annotations

from typing import NamedTuple


class RecordSchema(NamedTuple):
    """How one type of record is written."""

    name: str
    version: int
    fields: tuple[str, ...]
    """The names of its fields on the wire, in order. An enum has none: its value is written."""
    attributes: tuple[str, ...]
    """The attributes that hold them, in the same order."""
    first_name: str
    """What 0.1.0 called it. A record that came later has its name here. It never changes."""

    @property
    def tag(self) -> str:
        """Name and version, as they are written today."""
        return tag_of(self.name, self.version)

    @property
    def tags(self) -> dict[str, int]:
        """Everything that it was ever called, with the version that this means."""
        numbered = {tag_of(self.name, each): each for each in range(1, self.version + 1)}
        return {self.first_name: 1, **numbered}


def tag_of(name: str, version: int) -> str:
    """A name and a version in one word."""
    return name if version == 1 else f"{name}/{version}"


def split_tag(tag: str) -> tuple[str, int]:
    """The name and the version that a word stands for; version 0 if that is no number."""
    name, slash, version = tag.partition("/")
    if not slash:
        return name, 1
    return name, int(version) if version.isdecimal() and len(version) < 10 else 0


def _record(name: str, version: int, fields: str, first_name: str) -> RecordSchema:
    pairs = [each.partition("=") for each in fields.split()]
    wire = tuple(name for name, _, _ in pairs)
    return RecordSchema(name, version, wire, tuple(a or w for w, _, a in pairs), first_name)


_RECORDS = (
    # -- tasks, claims, outcomes --------------------------------------------------------------
    _record(
        "task",
        2,
        "id agent prompt args kwargs claims after priority timeout deadline retry estimate key"
        " workspace guard output labels",
        "Task",
    ),
    _record("claim", 1, "resource mode amount", "Claim"),
    _record("mode", 2, "", "Mode"),
    _record("retry", 1, "attempts backoff max_backoff jitter", "Retry"),
    _record("template", 1, "parts", "Template"),
    _record("template_reference", 1, "task field path tasks", "Reference"),
    _record(
        "command_agent",
        1,
        "argv name stdin env pass_env errors check home",
        "interlock.model.command:Command",
    ),
    _record(
        "outcome",
        1,
        "task_id status result error attempts started_at ended_at duration usage changed_paths"
        " cause ended_by",
        "Outcome",
    ),
    _record("error", 1, "type message traceback retryable", "ErrorRecord"),
    _record("usage", 1, "tokens_in tokens_out cost", "Usage"),
    _record("state", 1, "", "State"),
    _record("event_kind", 2, "", "Kind"),
    _record("not_stored", 1, "kind path", "NotStored"),
    _record("awaited_result", 1, "task_id", "Awaited"),
    # -- limits -------------------------------------------------------------------------------
    _record("quota", 1, "amount window", "Quota"),
    _record("rate", 1, "requests tokens", "Rate"),
    _record("breaker", 1, "failures cool_down", "Breaker"),
    _record("load", 1, "cpu memory", "Load"),
    _record("gate", 1, "cpu memory", "Gate"),
    _record("auto_slots", 1, "least most cpu memory", "Auto"),
    _record("open_breaker", 1, "resource failures last since until", "OpenBreaker"),
    _record("closed_gate", 1, "load cpu memory since", "ClosedGate"),
    _record("loaded_machine", 1, "slots least most load cpu memory since", "LoadedMachine"),
    # -- what the kernel is told --------------------------------------------------------------
    _record("submit_together", 1, "size group fail_fast deadline parent token past", "Together"),
    _record("task_past", 1, "attempts started_at retry_at deadline_at error paused", "Past"),
    _record("attempt_ended", 1, "task_id token status error retry_after chance gone", "Ended"),
    _record("attempt_exited", 1, "task_id token", "Gone"),
    _record("cancel", 1, "task_id reason", "Cancel"),
    _record("cancel_group", 1, "group reason", "CancelGroup"),
    _record("extend", 1, "task_id token request claims", "Extend"),
    _record("take", 1, "task_id token request claims", "Take"),
    _record("used", 1, "task_id token request resource amount", "Used"),
    _record("await_tasks", 1, "task_id token request tasks", "AwaitTasks"),
    _record("ask", 1, "task_id token request question", "Ask"),
    _record("answer", 1, "task_id request answer", "Answer"),
    _record("withdraw", 1, "task_id token request", "Withdraw"),
    _record("set_capacity", 1, "resource capacity", "SetCapacity"),
    _record("throttle", 1, "resource level more because", "Throttle"),
    _record("define", 1, "resource capacity", "Define"),
    _record("set_rate", 1, "resource amount window", "SetRate"),
    _record("hold_rate", 1, "resource until", "HoldRate"),
    _record("occupy", 1, "name claims", "Occupy"),
    _record("vacate", 1, "name", "Vacate"),
    _record("recall", 1, "ends", "Recall"),
    _record("spend", 1, "resource amount at", "Spend"),
    _record("pause", 1, "task_id", "Pause"),
    _record("resume", 1, "task_id", "Unpause"),
    _record("prioritize", 1, "task_id priority", "Prioritize"),
    _record("tick", 1, "", "Tick"),
    _record("drain", 1, "", "Drain"),
    _record("shutdown", 1, "", "Shutdown"),
    # -- what the kernel decides --------------------------------------------------------------
    _record("start", 1, "task_id attempt token", "Start"),
    _record("stop", 1, "task_id token reason", "Stop"),
    _record("change", 1, "task_id state detail until", "Change"),
    _record("grant_wait", 1, "task_id token request claims grant", "Resume"),
    _record("deny_wait", 1, "task_id token request reason", "Deny"),
    _record("refuse", 2, "task_id token stimulus", "Refused"),
)

RECORDS: dict[str, RecordSchema] = {each.name: each for each in _RECORDS}
"""Every record that a journal can hold, by its name."""

EVENTS: dict[str, int] = {
    "run_started": 1,
    "run_ended": 1,
    "submitted": 1,
    "blocked": 1,
    "waiting": 1,
    "started": 1,
    "launched": 1,
    "retrying": 1,
    "needs_you": 1,
    "running": 1,
    "stop_requested": 1,
    "ended": 1,
    "attempt_exited": 1,
    "settled": 1,
    "granted": 1,
    "denied": 1,
    "refused": 1,
    "command": 1,
    "ticked": 1,
    "interrupted": 1,
    "reused": 1,
    "reported": 1,
    "logged": 1,
    "used": 1,
    "missed": 1,
}
"""Every kind of event, with the version that is written today."""

FIRST_EVENT_NAMES = {
    "asked": "command",
    "asked_to_stop": "stop_requested",
    "gone": "attempt_exited",
    "inherited": "reused",
}
"""What 0.1.0 called those events that have another name now."""
