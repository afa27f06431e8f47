"""Sections of the reference on JSON: the names that programs rely on.

The names are taken from the code. A name without a description here, or a description of a name
that does not exist, is an error when the page is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.model.event import Event, Kind
from interlock.model.outcome import State
from interlock.model.progress import Progress
from interlock.model.why import REASONS, Explanation
from interlock.views.cli.doctor import Finding
from interlock.views.cli.facts_json import progress_json, run_json, task_json
from interlock.views.cli.why_json import explanation_json
from interlock.views.terminal.event_lines import event_json
from tools.reference_facts import table

_RUN = {
    "run_id": "the id of the run",
    "plan": "the plan file, or the number of prompts",
    "at": "the time of these facts",
    "started_at, ended_at": "`ended_at` is null while the run is open",
    "duration": "so far",
    "active": "whether a process is carrying it out",
    "paused, draining": "whether it starts nothing for now, or nothing more",
    "slots": "maximum number of concurrent attempts",
    "last_event": "the number of the last event that is included",
    "progress": "tasks by state",
    "one_by_one": "how long the tasks would have taken one after another",
    "saved": "the difference between `one_by_one` and `duration`",
    "cost, tokens": "usage as reported by all attempts",
    "tasks": "each task, in the order of the plan",
}

_TASK = {
    "id": "its id",
    "state, since": f"{', '.join(f'`{state}`' for state in State)}; and since when",
    "agent, prompt": "the prompt may be shortened",
    "claims": "as in `writes src/**`, `reads docs/`, `uses gpu`",
    "after": "ids of its dependencies",
    "priority": "the highest goes first",
    "attempt, attempts": "the number of the current or last attempt, from 1, and the maximum",
    "submitted_at, started_at, ended_at": "`started_at` is that of its last attempt",
    "duration": "from its first start to its end, without the time it waited for a person",
    "estimate": "expected duration of an attempt",
    "fraction, message": "its last progress report",
    "tokens, cost": "usage as reported by its attempts",
    "error, error_type": "why it did not succeed",
    "cause": "what it was skipped or cancelled for",
    "ended_by": "the deadline that ended it: `task_deadline`, `run_deadline`; empty if none did",
    "retry_of": "the task that it repeats, after `interlock retry`",
    "question": "the question it asks you",
    "stopping": "whether it was told to stop, or has ended, and has not exited",
    "output": "its result as text, shortened",
    "log": "the log file of its last attempt",
}

_PROGRESS = {
    ", ".join(State): "the number of tasks in this state",
    "zombies": "attempts that were told to stop and have not exited",
    "ended, total": "sums over the states",
}

_WHY = {
    "task_id": "the task",
    "state": "its state",
    "at": "this moment",
    "since": "since when it has been in that state",
    "reasons": "all reasons, each with its `kind`, a sentence as `text`, and the fields below",
    "clears_at": "when the last reason is expected to be gone; null if that is unknown",
    "suggestions": "what you could do, as texts",
    "error, error_type": "why it did not succeed, if it has ended",
    "cause": "what it was skipped or cancelled for",
    "log": "the log file of its last attempt, if there is one",
}

_EVENT = {
    "number": "from 1, without gaps; `--since` takes it",
    "at": "when it happened",
    "kind": f"{', '.join(f'`{kind}`' for kind in Kind)} ([what they mean](library.md#events))",
    "task_id": "empty if it is about the run",
    "data": "depends on the kind",
}

_FINDING = {
    "what": "what was checked",
    "fine": "whether the check passed",
    "said": "what was found",
    "help": "what to do about it",
}

_OTHERS = {
    "run --dry-run, check, graph": "`plan`; `tasks`, each with `id`, `agent`, `prompt`, `claims`, "
    "`after`, `priority`, `timeout` and `attempts`; `conflicts`, each with `one`, `other` and "
    "`about`; from `check` also `warnings`",
    "check PATTERN PATTERN": "`patterns`, `conflict`, `witness`",
    "multi-run": "a list: `agent`, `status`, `result`, `error`",
    "agents": "a list: `name`, `kind`, `runs`, `installed`, `owns`, `instances`, `uses`, "
    "`timeout`, `attempts`, `workspace`, `guard`, `description`",
    "cancel": "`cancelled`, the ids",
    "retry": "`submitted`: for each old id the new one",
    "pause, resume": "`paused` or `resumed`",
    "prioritize": "`task`, `priority`",
    "answer": "`task`, `answer`",
    "version": "`version`, `python`",
}


def names_in_json() -> Iterator[str]:
    """The sections, one after another."""
    yield (
        "## JSON\n\nOne document, in ASCII, under names that do not change. Times are seconds "
        "since 1970, "
        "durations are\nseconds.\n"
    )
    run = RunFacts("", 0.0, 0.0)
    yield "### status --json, run --json\n"
    yield table(_checked(_RUN, run_json(run)))
    yield "Each of `tasks`:\n"
    yield table(_checked(_TASK, task_json(TaskFacts("", State.WAITING, 0.0))))
    yield "`progress`:\n"
    yield table(_checked(_PROGRESS, progress_json(Progress())))
    yield "### why --json\n\nTimes are seconds since the run began.\n"
    explanation = Explanation("", State.WAITING, 0.0, (), None, (), 0.0)
    yield table(_checked(_WHY, explanation_json(explanation)))
    yield "| `kind` of a reason | | its fields |\n|---|---|---|"
    for reason in REASONS:
        named = ", ".join(f"`{each.name}`" for each in fields(reason))
        yield f"| `{reason.kind}` | {(reason.__doc__ or '').splitlines()[0]} | {named} |"
    yield "\n### events --json\n\nOne object per line.\n"
    event = Event(1, 0.0, Kind.LOGGED, "", None)
    yield table(_checked(_EVENT, event_json(event)))
    yield "### doctor --json\n\nA list.\n"
    yield table(_checked(_FINDING, Finding._fields))
    yield "### Other commands with --json\n"
    yield table(_OTHERS, "| | its names |")


def _checked(words: Mapping[str, str], names: Iterable[str]) -> Mapping[str, str]:
    """The descriptions, if they are about exactly these names."""
    told = [name for row in words for name in row.split(", ")]
    difference = set(told).symmetric_difference(names)
    if difference:
        raise ValueError(f"the reference and the program differ in: {', '.join(difference)}")
    return words
