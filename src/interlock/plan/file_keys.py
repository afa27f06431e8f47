"""Every key of project and plan files, in tables: the kind of its value, and what it means.

The readers, the JSON Schemas (`tools/plan_schemas.py`) and the reference in docs/plan.md are all
made from these tables.
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
TASKS: Final = ("a list of tasks", "use a list of tasks, or a mapping from ids to tasks")

_WORKTREES = "git worktrees"
_BUDGETS = "budgets"
_MERGING = "worktrees and merging"
_WORKSPACE = ChoiceKind("shared", later={"worktree": _WORKTREES})
_GUARD = ChoiceKind("none", later={"audited": "guards", "enforced": "guards"})
_VARIABLES = ListKind(TextKind("the name of a variable", "use letters, digits and _", VARIABLE))

SLOTS = SlotsKind(
    RecordKind(
        {
            "least": KeySpec(IntegerKind(1, 10_000), "the minimum number of slots (1)", ("min",)),
            "most": KeySpec(IntegerKind(1, 10_000), "the maximum number of slots (16)", ("max",)),
            "cpu": KeySpec(PercentKind(), "fewer slots above this CPU use, in percent (80)"),
            "memory": KeySpec(PercentKind(), "fewer slots above this memory use, in percent (80)"),
        },
        "`max_parallel`",
    )
)

GATE = RecordKind(
    {
        "cpu": KeySpec(PercentKind(), "CPU use, in percent"),
        "memory": KeySpec(PercentKind(), "memory use, in percent"),
    },
    "a gate",
)

LIMIT = RecordKind(
    {
        "requests": KeySpec(
            QuotaKind(), "a rate: the number of requests in any window of time, `60/min`"
        ),
        "tokens": KeySpec(
            QuotaKind(), "a rate: the number of tokens in any window of time, `100k/min`"
        ),
        "failures": KeySpec(
            IntegerKind(1), "a breaker: opens after this many consecutive failures (3)"
        ),
        "cool_down": KeySpec(
            DurationKind(), "a breaker: how long it stays open (30s)", ("cooldown",)
        ),
        "budget": KeySpec(DataKind(), "", later=_BUDGETS),
    },
    "a limit",
)

ERRORS = RecordKind(
    {
        "auth_error": KeySpec(ListKind(RegexKind()), "not logged in, invalid key: not retried"),
        "rate_limited": KeySpec(ListKind(RegexKind()), "too many requests: retried later"),
        "model_error": KeySpec(ListKind(RegexKind()), "the model or its server failed: retried"),
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
            "`command`: any program (the default with `command`)",
        ),
        "command": KeySpec(
            EitherKind(
                "a command",
                "use a list, the program first: [my-agent, --task, '{prompt}']",
                scalar=TextKind(),
                listed=ListKind(TextKind(blank=True), alone=False),
            ),
            "what to run: a list, the program first, or a command line; `{prompt}` is the prompt",
            ("cmd", "argv", "run", "exec"),
        ),
        "python": KeySpec(
            TextKind("a Python function", "use module:function", CODE),
            "a Python function: `module:function`",
            ("func",),
        ),
        "process": KeySpec(
            BooleanKind(), "run a Python agent in its own process, which can be killed"
        ),
        "description": KeySpec(TextKind(), "a description, for people"),
        "owns": KeySpec(
            ListKind(PathPatternKind()), "what its tasks write if they have no `writes`", ("paths",)
        ),
        "instances": KeySpec(
            IntegerKind(1),
            "the maximum number of its tasks that run at once",
            ("max_instances", "concurrency"),
        ),
        "workspace": KeySpec(_WORKSPACE, "where it works: `shared`, the project folder"),
        "guard": KeySpec(_GUARD, "how its claims are enforced: `none`"),
        "limits": KeySpec(ListKind(TextKind()), "names of `limits` that each of its tasks uses"),
        "uses": KeySpec(ListKind(ResourceKind()), "resources that each of its tasks uses"),
        "env": KeySpec(
            MappingKind(TextKind(blank=True), "variables and their values", VARIABLE),
            "environment variables with their values; no secrets",
            ("environment",),
        ),
        "pass_env": KeySpec(_VARIABLES, "names of your environment variables that it is given"),
        "secrets": KeySpec(_VARIABLES, "names of secrets that it is given"),
        "stdin": KeySpec(TextKind(), "its standard input, such as `{prompt}`", ("input",)),
        "home": KeySpec(
            ChoiceKind("user", "private"), "its HOME: yours (`user`) or its own (`private`)"
        ),
        "errors": KeySpec(
            ERRORS, "regular expressions: a line of output that matches is a failure"
        ),
        "check": KeySpec(TextKind(), "a shell command that must succeed after each of its tasks"),
        "timeout": KeySpec(DurationKind(), "the time limit of one attempt"),
        "attempts": KeySpec(
            IntegerKind(1, 1000), "the maximum number of attempts of its tasks", ("retries",)
        ),
        "backoff": KeySpec(
            DurationKind(zero=True), "the wait after the first failure (1s); it doubles each time"
        ),
        "budget": KeySpec(DataKind(), "", later=_BUDGETS),
        "model": KeySpec(DataKind(), "", later="presets"),
    },
    "an agent",
)

TASK: Final[dict[str, KeySpec]] = {
    "agent": KeySpec(TextKind(), "one of the agents of the project", ("worker", "assignee")),
    "prompt": KeySpec(
        PromptKind(), "what to do", ("text", "task", "message", "description", "input")
    ),
    "prompt_file": KeySpec(TextKind(), "a file with the prompt, relative to the plan"),
    "with": KeySpec(
        MappingKind(DataKind(), "arguments", r"[^\W\d]\w*"),
        "keyword arguments for a Python agent",
        ("args", "kwargs", "arguments", "params"),
    ),
    "writes": KeySpec(
        ListKind(PathPatternKind()),
        "paths it changes; no other task touches them meanwhile",
        ("files", "write"),
    ),
    "reads": KeySpec(
        ListKind(PathPatternKind()), "paths that must not change while it runs", ("read",)
    ),
    "uses": KeySpec(
        ListKind(ResourceKind()),
        "resources: `gpu`, `memory_mb=2048`, `db:staging!` (exclusively)",
        ("use",),
    ),
    "after": KeySpec(
        ListKind(TextKind()),
        "tasks that must succeed first",
        ("needs", "depends_on", "dependencies", "depends", "requires"),
    ),
    "priority": KeySpec(
        TextKind("a priority", "use a whole number or a name"),
        "a number or a name; higher starts first",
    ),
    "timeout": KeySpec(DurationKind(), "the time limit of one attempt"),
    "deadline": KeySpec(
        MomentKind(), "the time limit of all attempts from submission: a duration, or a time"
    ),
    "attempts": KeySpec(
        IntegerKind(1, 1000), "the maximum number of attempts (1)", ("retries", "retry", "tries")
    ),
    "backoff": KeySpec(
        DurationKind(zero=True), "the wait after the first failure (1s); it doubles each time"
    ),
    "estimate": KeySpec(
        DurationKind(), "the expected duration; it improves the order of starts", ("duration",)
    ),
    "workspace": KeySpec(_WORKSPACE, "where it works: `shared`, the project folder"),
    "guard": KeySpec(_GUARD, "how its claims are enforced: `none`"),
    "check": KeySpec(
        TextKind(), "a shell command that must succeed after a program", ("verify", "test")
    ),
    "output": KeySpec(
        TextKind("an output type", "use text, json or module:Type", rf"text|json|{CODE}"),
        "the type of its result: text, json or module:Type",
    ),
    "ask": KeySpec(
        PromptKind(), "a question that you answer before it starts", ("confirm", "approve")
    ),
    "labels": KeySpec(
        MappingKind(TextKind(blank=True), "labels"),
        "names with text, for your own use",
        ("tags",),
    ),
    "for_each": KeySpec(
        DeferredKind(ItemsKind()),
        "a list, or a variable that is a list: one task for each item",
        ("foreach", "matrix"),
    ),
    "budget": KeySpec(DataKind(), "", later=_BUDGETS),
    "extra": KeySpec(DataKind(), "", later=_MERGING),
    "back_to": KeySpec(DataKind(), "", later="continued conversations"),
    "on_conflict": KeySpec(DataKind(), "", later=_MERGING),
    "session": KeySpec(DataKind(), "", later="continued conversations"),
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
        "agents": KeySpec(MappingKind(AGENT, "agents", NAME), "the agents", ("agent",)),
        "max_parallel": KeySpec(
            SLOTS, "the maximum number of concurrent tasks: a number, `auto`, or bounds for `auto`"
        ),
        "capacity": KeySpec(
            MappingKind(IntegerKind(0, 10**15), "resources"), "the capacity of resources"
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
        "env_file": KeySpec(
            TextKind(), "the file with secrets that are not in the environment (`.env`)"
        ),
        "gate": KeySpec(GATE, "above this load nothing starts, unless nothing runs"),
        "grace": KeySpec(
            DurationKind(zero=True), "how long to wait for tasks that were told to stop (30s)"
        ),
        "defaults": KeySpec(DEFAULTS, "defaults for tasks"),
        "budget": KeySpec(DataKind(), "", later=_BUDGETS),
        "budgets": KeySpec(DataKind(), "", later=_BUDGETS),
        "check": KeySpec(DataKind(), "", later="merging"),
    },
    "a project file",
    open=True,
)

PLAN = RecordKind(
    {
        "name": KeySpec(TextKind(), "its name (default: the name of the file)"),
        "description": KeySpec(TextKind(), "a description, for people"),
        "defaults": KeySpec(DeferredKind(DEFAULTS), "defaults for tasks"),
        "variables": KeySpec(
            MappingKind(VariableKind(), "variables", r"[A-Za-z_][A-Za-z0-9_-]*"),
            "text and lists for `{{name}}`; `--set` sets or overrides them",
            ("vars", "params", "inputs"),
        ),
        "tasks": KeySpec(
            DeferredKind(
                EitherKind(
                    *TASKS,
                    listed=ListKind(ReferenceKind("listed_task"), alone=False),
                    keyed=MappingKind(ReferenceKind("task"), "tasks"),
                )
            ),
            "a list of tasks, or a mapping from ids to tasks; text alone is a prompt",
            ("steps", "jobs"),
        ),
        "max_parallel": KeySpec(SLOTS, "the maximum number of concurrent tasks of this plan"),
        "fail_fast": KeySpec(BooleanKind(), "whether the first failure stops everything (false)"),
        "deadline": KeySpec(DurationKind(), "the time limit of the whole plan", ("timeout",)),
        "budget": KeySpec(DataKind(), "", later=_BUDGETS),
    },
    "a plan",
    open=True,
)
