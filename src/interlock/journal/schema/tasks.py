"""The JSON form of tasks, and their fingerprints.

Code is not stored: an agent is written as its name. The program of a resumed run submits the same
tasks again, and the fingerprint decides whether they are the same.
"""

from __future__ import annotations

import hashlib
import re
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
_TAG = _TASK.tag
_FIELDS = [
    (field, attribute, getattr(Task("default"), attribute))
    for field, attribute in zip(_TASK.fields, _TASK.attributes, strict=True)
]
_ATTRIBUTES = dict(zip(_TASK.fields, _TASK.attributes, strict=True))
_UNNAMED_GROUP = re.compile(r"slots of group-\d+")
"""The limit of a group without a name. Its number depends on the order in which groups begin."""


def encode(walk: Walk, task: Task) -> Any:
    """Write what is not default: agents and types by name, of arguments what can be stored."""
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
    return {"$": _TAG, "of": of}


def restored(of: dict[str, Any]) -> Task:
    """Read a task, with names in the places of its agent and its output type."""
    fields = {_ATTRIBUTES[field]: value for field, value in of.items()}
    if "claims" in of:
        fields[_ATTRIBUTES["claims"]] = [
            Claim(name, Mode(mode), amount) for name, mode, amount in of["claims"]
        ]
    return Task(**fields)


def work_of(of: dict[str, Any], settings: Any) -> list[Any]:
    """What identifies the work of a task: agent with settings, prompt, arguments and claims."""
    claims = [
        _claimed(each) for each in of.get("claims", ()) if not _UNNAMED_GROUP.fullmatch(each[0])
    ]
    return [
        of.get("agent"),
        settings,
        of.get("prompt"),
        of.get("args"),
        sorted(of["kwargs"].items()) if "kwargs" in of else None,
        sorted(claims) if claims else None,
    ]


def _claimed(claim: list[Any]) -> list[Any]:
    """A claim without a final slash: the task itself may have created the folder since."""
    resource, mode, amount = claim
    return [resource.rstrip("/") or resource, MODES.get(mode, mode), amount]


def fingerprint(work: list[Any]) -> str:
    """The fingerprint of some work."""
    text = under_first_names(as_json(work))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
