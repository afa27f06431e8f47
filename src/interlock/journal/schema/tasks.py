"""Tasks as the journal keeps them: an agent is a name, a task has a fingerprint.

Code is not stored. Whoever resumes a run submits the same tasks again, and the fingerprint says
whether they are the same.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from interlock.journal.agent_identity import agent_name
from interlock.journal.schema.identity import MODES, under_first_names
from interlock.journal.schema.names import RECORDS
from interlock.journal.schema.plain_json import as_json
from interlock.model.claim import Claim, Mode
from interlock.model.task import Task

if TYPE_CHECKING:
    from interlock.journal.schema.encoding import Walk

_TASK = RECORDS["task"]
_FIELDS = [
    (field, attribute, getattr(Task("default"), attribute))
    for field, attribute in zip(_TASK.fields, _TASK.attributes, strict=True)
]
_ATTRIBUTES = dict(zip(_TASK.fields, _TASK.attributes, strict=True))


def encode(walk: Walk, task: Task) -> Any:
    """What is not default; agents and types by their names; of arguments, what can be stored."""
    lenient, walk.lenient = walk.lenient, True
    of: dict[str, Any] = {}
    try:
        for name, attribute, default in _FIELDS:
            value = getattr(task, attribute)
            if value is default:
                continue
            if name == "claims":
                of[name] = [[each.resource, each.mode._value_, each.amount] for each in value]
            elif name == "agent" or name == "output":
                of[name] = agent_name(value)
            elif name == "after":
                of[name] = list(value)
            else:
                of[name] = walk.tree(value)
    finally:
        walk.lenient = lenient
    return {"$": _TASK.tag, "of": of}


def restored(of: dict[str, Any]) -> Task:
    """The task again, with the names of its agent and its output type in their places."""
    fields = {_ATTRIBUTES[field]: value for field, value in of.items()}
    if "claims" in of:
        fields[_ATTRIBUTES["claims"]] = [
            Claim(name, Mode(mode), amount) for name, mode, amount in of["claims"]
        ]
    return Task(**fields)


def work_of(of: dict[str, Any], settings: Any) -> list[Any]:
    """What makes a task the same work: its agent and its settings, prompt, arguments and claims."""
    return [
        of.get("agent"),
        settings,
        of.get("prompt"),
        of.get("args"),
        sorted(of["kwargs"].items()) if "kwargs" in of else None,
        sorted(map(_claimed, of["claims"])) if "claims" in of else None,
    ]


def _claimed(claim: list[Any]) -> list[Any]:
    """A claim, whether or not its name is that of a folder by now: the task may have made it."""
    resource, mode, amount = claim
    return [resource.rstrip("/") or resource, MODES.get(mode, mode), amount]


def fingerprint(work: list[Any]) -> str:
    """A short name for some work."""
    text = under_first_names(as_json(work))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
