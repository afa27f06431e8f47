"""Every key of the two files, in tables: what it can be, and what it says.

The readers, the JSON Schemas and the reference in docs/plan.md all stand on these tables.
"""

from __future__ import annotations

from typing import Final

from interlock.plan.composite_kinds import (
    DeferredKind,
    EitherKind,
    KeySpec,
    ListKind,
    MappingKind,
    RecordKind,
    ReferenceKind,
    SlotsKind,
)
from interlock.plan.model_kinds import (
    DurationKind,
    MomentKind,
    PathPatternKind,
    QuotaKind,
    RegexKind,
    ResourceKind,
)
from interlock.plan.scalar_kinds import (
    BooleanKind,
    ChoiceKind,
    DataKind,
    IntegerKind,
    PercentKind,
    TextKind,
)
from interlock.plan.variables import ItemsKind, PromptKind, VariableKind

VARIABLE: Final = r"[A-Za-z_][A-Za-z0-9_]*"
NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
CODE: Final = r"[^\W\d][\w.]*:[^\W\d][\w.]*"
MODEL: Final = "write text, json or module:Type"

_WORKTREES = "git worktrees"
_BUDGETS = "budgets"
_MERGING = "worktrees and merging"
_WORKSPACE = ChoiceKind("shared", later={"worktree": _WORKTREES})
_GUARD = ChoiceKind("none", later={"audited": "guards", "enforced": "guards"})
_VARIABLES = ListKind(TextKind("write the name of a variable", VARIABLE))

SLOTS = SlotsKind(
    RecordKind(
        {
            "least": KeySpec(IntegerKind(1, 10_000), "the fewest slots (1)", ("min",)),
            "most": KeySpec(IntegerKind(1, 10_000), "the most slots (16)", ("max",)),
            "cpu": KeySpec(
                PercentKind(), "fewer slots above this use of the processors, in percent (80)"
            ),
            "memory": KeySpec(
                PercentKind(), "fewer slots above this use of memory, in percent (80)"
            ),
        },
        "`max_parallel`",
    )
)

GATE = RecordKind(
    {
        "cpu": KeySpec(PercentKind(), "use of the processors, in percent"),
        "memory": KeySpec(PercentKind(), "use of memory, in percent"),
    },
    "a gate",
)

LIMIT = RecordKind(
    {
        "requests": KeySpec(QuotaKind(), "a rate: so many in any such time, `60/min`"),
        "tokens": KeySpec(QuotaKind(), "a rate: so many tokens in any such time, `100k/min`"),
        "failures": KeySpec(IntegerKind(1), "a breaker: opens after so many failures in a row (3)"),
        "cool_down": KeySpec(
            DurationKind(), "a breaker: how long it stays open (30s)", ("cooldown",)
        ),
        "budget": KeySpec(DataKind(), "", later=_BUDGETS),
    },
    "a limit",
)

ERRORS = RecordKind(
    {
        "auth_error": KeySpec(ListKind(RegexKind()), "not logged in, a bad key: never tried again"),
        "rate_limited": KeySpec(ListKind(RegexKind()), "too much asked for: tried again later"),
        "model_error": KeySpec(
            ListKind(RegexKind()), "the model or its server failed: tried again"
        ),
    },
    "`errors`",
)

AGENT = RecordKind(
    {
        "preset": KeySpec(
            ChoiceKind(
                "command",
                later=dict.fromkeys(
                    ("codex", "claude", "gemini", "opencode", "qwen", "aider"), "presets"
                ),
            ),
            "`command`, any program (the default with `command`)",
        ),
        "command": KeySpec(
            EitherKind(
                "write a list, the program first: [my-agent, --task, '{prompt}']",
                scalar=TextKind(),
                listed=ListKind(TextKind(blank=True), alone=False),
            ),
            "what to run: a list, the program first, or a line; `{prompt}` stands for the prompt",
            ("cmd", "argv", "run", "exec"),
        ),
        "python": KeySpec(
            TextKind("write module:function", CODE),
            "a Python function: `module:function`",
            ("func",),
        ),
        "process": KeySpec(
            BooleanKind(), "a Python agent in a process of its own, which can be killed"
        ),
        "description": KeySpec(TextKind(), "for people"),
        "owns": KeySpec(
            ListKind(PathPatternKind()), "what its tasks write that do not say it", ("paths",)
        ),
        "instances": KeySpec(
            IntegerKind(1), "so many at once, at most", ("max_instances", "concurrency")
        ),
        "workspace": KeySpec(_WORKSPACE, "where it works: `shared`, the project folder"),
        "guard": KeySpec(_GUARD, "how its claims are held to: `none`"),
        "limits": KeySpec(ListKind(TextKind()), "names of `limits` that each of its tasks uses"),
        "uses": KeySpec(ListKind(ResourceKind()), "resources that each of its tasks uses"),
        "env": KeySpec(
            MappingKind(TextKind("write text", blank=True), "variables and their values", VARIABLE),
            "variables it gets, with their values; no secrets",
            ("environment",),
        ),
        "pass_env": KeySpec(_VARIABLES, "names of variables of yours that it gets to see"),
        "secrets": KeySpec(_VARIABLES, "names of secrets that it gets to see"),
        "stdin": KeySpec(
            TextKind(), "what it reads on standard input, such as `{prompt}`", ("input",)
        ),
        "home": KeySpec(
            ChoiceKind("user", "private"), "its HOME: yours (`user`), or one of its own"
        ),
        "errors": KeySpec(
            ERRORS, "regular expressions: a line of output that matches is a failure"
        ),
        "check": KeySpec(TextKind(), "a shell command that has to succeed after each of its tasks"),
        "timeout": KeySpec(DurationKind(), "how long one attempt may take"),
        "attempts": KeySpec(
            IntegerKind(1, 1000), "how often its tasks are tried, at most", ("retries",)
        ),
        "backoff": KeySpec(
            DurationKind(zero=True), "how long to wait after the first failure (1s), then more"
        ),
        "budget": KeySpec(DataKind(), "", later=_BUDGETS),
        "model": KeySpec(DataKind(), "", later="presets"),
    },
    "an agent",
)

TASK: Final[dict[str, KeySpec]] = {
    "agent": KeySpec(
        TextKind(), "who does it: one of the agents of the project", ("worker", "assignee")
    ),
    "prompt": KeySpec(
        PromptKind(), "what to do", ("text", "task", "message", "description", "input")
    ),
    "prompt_file": KeySpec(TextKind(), "a file that holds the prompt, relative to the plan"),
    "with": KeySpec(
        MappingKind(DataKind(), "arguments", r"[^\W\d]\w*"),
        "keyword arguments for a Python agent",
        ("args", "kwargs", "arguments", "params"),
    ),
    "writes": KeySpec(
        ListKind(PathPatternKind()),
        "paths it changes, nobody else at that time",
        ("files", "write"),
    ),
    "reads": KeySpec(ListKind(PathPatternKind()), "paths it needs to stay as they are", ("read",)),
    "uses": KeySpec(
        ListKind(ResourceKind()),
        "resources: `gpu`, `memory_mb=2048`, `db:staging!` (alone)",
        ("use",),
    ),
    "after": KeySpec(
        ListKind(TextKind()),
        "tasks that have to succeed first",
        ("needs", "depends_on", "dependencies", "depends", "requires"),
    ),
    "priority": KeySpec(
        TextKind("write a whole number or a name"), "a number or a name; higher is first"
    ),
    "timeout": KeySpec(DurationKind(), "how long one attempt may take"),
    "deadline": KeySpec(MomentKind(), "how long all of it may take from the start, or until when"),
    "attempts": KeySpec(
        IntegerKind(1, 1000), "how often to try, at most (1)", ("retries", "retry", "tries")
    ),
    "backoff": KeySpec(
        DurationKind(zero=True), "how long to wait after the first failure (1s), then more"
    ),
    "estimate": KeySpec(
        DurationKind(), "how long it will take; improves the order of starts", ("duration",)
    ),
    "workspace": KeySpec(_WORKSPACE, "where it works: `shared`, the project folder"),
    "guard": KeySpec(_GUARD, "how its claims are held to: `none`"),
    "check": KeySpec(
        TextKind(), "a shell command that has to succeed after a program", ("verify", "test")
    ),
    "output": KeySpec(
        TextKind(MODEL, rf"text|json|{CODE}"),
        "what its result has to be: text, json or module:Type",
    ),
    "ask": KeySpec(
        PromptKind(), "a question you have to answer before it starts", ("confirm", "approve")
    ),
    "labels": KeySpec(
        MappingKind(TextKind("write text", blank=True), "labels"),
        "names with texts, for you",
        ("tags",),
    ),
    "for_each": KeySpec(
        DeferredKind(ItemsKind()),
        "a list, or a variable that is one: a task for each",
        ("foreach", "matrix"),
    ),
    "budget": KeySpec(DataKind(), "", later=_BUDGETS),
    "extra": KeySpec(DataKind(), "", later=_MERGING),
    "back_to": KeySpec(DataKind(), "", later="conversations that go on"),
    "on_conflict": KeySpec(DataKind(), "", later=_MERGING),
    "session": KeySpec(DataKind(), "", later="conversations that go on"),
}
_DEFAULT_KEYS = (
    *("agent", "priority", "timeout", "deadline", "attempts", "backoff", "estimate", "workspace"),
    *("guard", "check", "output", "reads", "uses", "labels", "budget", "extra", "on_conflict"),
)
DEFAULTS = RecordKind({name: TASK[name] for name in _DEFAULT_KEYS}, "`defaults`")
NAMED_TASK = RecordKind(TASK, "a task", instead={"id": "its key is its id; leave this out"})
LISTED_TASK = RecordKind(
    {"id": KeySpec(TextKind(), "its name", ("name", "task_id")), **TASK}, "a task"
)

PROJECT = RecordKind(
    {
        "agents": KeySpec(MappingKind(AGENT, "agents", NAME), "who can do the work", ("agent",)),
        "max_parallel": KeySpec(SLOTS, "how many tasks at once: a number, `auto`, or its bounds"),
        "capacity": KeySpec(
            MappingKind(IntegerKind(0, 10**15), "resources"), "how much there is of a resource"
        ),
        "limits": KeySpec(MappingKind(LIMIT, "limits"), "rates and breakers that tasks share"),
        "priorities": KeySpec(
            MappingKind(IntegerKind(), "priorities", r"[^\W\d][\w-]*"),
            "names for priorities; `low` is -10, `normal` 0, `high` 10",
        ),
        "protected": KeySpec(
            ListKind(PathPatternKind()), "paths that no task may claim for writing"
        ),
        "secrets": KeySpec(_VARIABLES, "names of variables whose values are secret"),
        "env_file": KeySpec(TextKind(), "where secrets are besides the environment (`.env`)"),
        "gate": KeySpec(GATE, "above this load of the machine nothing starts, unless nothing runs"),
        "grace": KeySpec(
            DurationKind(zero=True), "how long what was told to stop is waited for (30s)"
        ),
        "defaults": KeySpec(DEFAULTS, "what tasks are that do not say otherwise"),
        "budget": KeySpec(DataKind(), "", later=_BUDGETS),
        "budgets": KeySpec(DataKind(), "", later=_BUDGETS),
        "check": KeySpec(DataKind(), "", later="merging"),
    },
    "a project file",
    open=True,
)

PLAN = RecordKind(
    {
        "name": KeySpec(TextKind(), "what it is called (the name of the file)"),
        "description": KeySpec(TextKind(), "for people"),
        "defaults": KeySpec(DeferredKind(DEFAULTS), "what tasks are that do not say otherwise"),
        "variables": KeySpec(
            MappingKind(VariableKind(), "variables", r"[A-Za-z_][A-Za-z0-9_-]*"),
            "texts and lists for `{{name}}`; `--set` changes them, and gives a value where none is",
            ("vars", "params", "inputs"),
        ),
        "tasks": KeySpec(
            DeferredKind(
                EitherKind(
                    "write a list of tasks, or a mapping from ids to tasks",
                    listed=ListKind(ReferenceKind("listed_task"), alone=False),
                    keyed=MappingKind(ReferenceKind("task"), "tasks"),
                )
            ),
            "the tasks: a list, or a mapping from ids to tasks; a text alone is a prompt",
            ("steps", "jobs"),
        ),
        "max_parallel": KeySpec(SLOTS, "how many tasks at once, in this plan"),
        "fail_fast": KeySpec(BooleanKind(), "whether the first failure stops everything (false)"),
        "deadline": KeySpec(DurationKind(), "how long the whole plan may take", ("timeout",)),
        "budget": KeySpec(DataKind(), "", later=_BUDGETS),
    },
    "a plan",
    open=True,
)
