"""A task that has been checked and can be submitted from any thread."""

from __future__ import annotations

from typing import NamedTuple

from interlock.execution.call_spec import CallSpec
from interlock.model.task import Task


class Prepared(NamedTuple):
    """A checked task, as the kernel takes it, and how its agent is called."""

    task: Task
    call_spec: CallSpec
