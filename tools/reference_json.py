"""Names in JSON that programs rely on, for the reference.

They are taken from the code: what has no words here, or words for what is not there, is an error
when the page is written.
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
    "run_id": "the name of the run",
    "plan": "the plan file, or how many texts there were",
    "at": "the moment all of this is about",
    "started_at, ended_at": "`ended_at` is null while the run is open",
    "duration": "so far",
    "active": "whether somebody carries it out at this moment",
    "paused, draining": "whether it starts nothing: for now, or any more",
    "slots": "attempts that may run at once",
    "last_event": "the number of the last event that is in this",
    "progress": "tasks by state",
    "one_by_one": "how long it would have taken one after another",
    "saved": "the difference",
    "cost, tokens": "what all attempts say they used",
    "tasks": "each task, in the order of the plan",
}

_TASK = {
    "id": "its id",
    "state, since": f"{', '.join(f'`{state}`' for state in State)}; and since when",
    "agent, prompt": "who does what; the prompt may be shortened",
    "claims": "as in `writes src/**`, `reads docs/`, `uses gpu`",
    "after": "ids of the tasks that have to succeed first",
    "priority": "higher goes first",
    "attempt, attempts": "which one runs or ran last (from 1), and how many are allowed",
    "submitted_at, started_at, ended_at": "`started_at` is that of its last attempt",
    "duration": "from its first start to its end, without waiting for people",
    "estimate": "how long an attempt is thought to take",
    "fraction, message": "what it last said of itself",
    "tokens, cost": "what its attempts say they used",
    "error, error_type": "why it did not succeed",
    "cause": "because of what it was skipped or cancelled",
    "ended_by": "the deadline that ended it: `task_deadline`, `run_deadline`; empty if none did",
    "retry_of": "the task that it does again, after `interlock retry`",
    "question": "what it asks you",
    "stopping": "it was told to stop, or has ended, and something of it still runs",
    "output": "its result as text, shortened",
    "log": "the file with what its last attempt printed",
}

_PROGRESS = {
    ", ".join(State): "so many tasks are in this state",
    "zombies": "attempts that were told to stop and are not gone",
    "ended, total": "sums over the states",
}

_WHY = {
    "task_id": "the task",
    "state": "its state",
    "at": "this moment",
    "since": "since when it is in that state",
    "reasons": "all of them: `kind`, the sentence as `text`, and the fields below",
    "clears_at": "when it could start if nothing else happens; null if nobody knows",
    "suggestions": "what could be done, as texts",
    "error, error_type": "why it did not succeed, if it has ended",
    "cause": "because of what it was skipped or cancelled",
    "log": "where the output of its last attempt is, if it is kept",
}

_EVENT = {
    "number": "from 1, without gaps; `--since` takes it",
    "at": "when it happened",
    "kind": f"{', '.join(f'`{kind}`' for kind in Kind)} ([what they mean](library.md#events))",
    "task_id": "empty where it is about the run",
    "data": "depends on the kind",
}

_FINDING = {
    "what": "what was looked at",
    "fine": "whether it is as it should be",
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
        "## JSON\n\nOne document, in ASCII, under names that stay. Times are seconds since 1970, "
        "lengths of time are\nseconds.\n"
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
    yield "\n### events --json\n\nOne object a line.\n"
    event = Event(1, 0.0, Kind.LOGGED, "", None)
    yield table(_checked(_EVENT, event_json(event)))
    yield "### doctor --json\n\nA list.\n"
    yield table(_checked(_FINDING, Finding._fields))
    yield "### Other commands with --json\n"
    yield table(_OTHERS, "| | its names |")


def _checked(words: Mapping[str, str], names: Iterable[str]) -> Mapping[str, str]:
    """The words, if they are about just these names."""
    told = [name for row in words for name in row.split(", ")]
    difference = set(told).symmetric_difference(names)
    if difference:
        raise ValueError(f"the reference and the program differ in: {', '.join(difference)}")
    return words
