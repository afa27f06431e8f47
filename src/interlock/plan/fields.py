"""Every key of the two files, in tables: what it can be, and what it says.

The readers, the JSON Schemas and the reference in docs/plan.md all stand on these tables.
"""

from __future__ import annotations

from typing import Final

from interlock.plan.kinds import Choice, Data, Flag, Percent, Text, Whole
from interlock.plan.model_kinds import Expression, Moment, PathPattern, PerTime, Span, Use
from interlock.plan.scope import Items, Prompt, Value
from interlock.plan.shapes import Either, Key, Later, Many, Named, Record, Shared, Slots

VARIABLE: Final = r"[A-Za-z_][A-Za-z0-9_]*"
NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
CODE: Final = r"[^\W\d][\w.]*:[^\W\d][\w.]*"
MODEL: Final = "write text, json or module:Type"

_WORKTREES = "git worktrees"
_BUDGETS = "budgets"
_MERGING = "worktrees and merging"
_WORKSPACE = Choice("shared", later={"worktree": _WORKTREES})
_GUARD = Choice("none", later={"audited": "guards", "enforced": "guards"})
_VARIABLES = Many(Text("write the name of a variable", VARIABLE))

SLOTS = Slots(
    Record(
        {
            "least": Key(Whole(1, 10_000), "the fewest slots (1)", ("min",)),
            "most": Key(Whole(1, 10_000), "the most slots (16)", ("max",)),
            "cpu": Key(Percent(), "fewer slots above this use of the processors, in percent (80)"),
            "memory": Key(Percent(), "fewer slots above this use of memory, in percent (80)"),
        },
        "`max_parallel`",
    )
)

GATE = Record(
    {
        "cpu": Key(Percent(), "use of the processors, in percent"),
        "memory": Key(Percent(), "use of memory, in percent"),
    },
    "a gate",
)

LIMIT = Record(
    {
        "requests": Key(PerTime(), "a rate: so many in any such time, `60/min`"),
        "tokens": Key(PerTime(), "a rate: so many tokens in any such time, `100k/min`"),
        "failures": Key(Whole(1), "a breaker: opens after so many failures in a row (3)"),
        "cool_down": Key(Span(), "a breaker: how long it stays open (30s)", ("cooldown",)),
        "budget": Key(Data(), "", later=_BUDGETS),
    },
    "a limit",
)

ERRORS = Record(
    {
        "auth_error": Key(Many(Expression()), "not logged in, a bad key: never tried again"),
        "rate_limited": Key(Many(Expression()), "too much asked for: tried again later"),
        "model_error": Key(Many(Expression()), "the model or its server failed: tried again"),
    },
    "`errors`",
)

AGENT = Record(
    {
        "preset": Key(
            Choice(
                "command",
                later=dict.fromkeys(
                    ("codex", "claude", "gemini", "opencode", "qwen", "aider"), "presets"
                ),
            ),
            "`command`, any program (the default with `command`)",
        ),
        "command": Key(
            Either(
                "write a list, the program first: [my-agent, --task, '{prompt}']",
                scalar=Text(),
                listed=Many(Text(blank=True), alone=False),
            ),
            "what to run: a list, the program first, or a line; `{prompt}` stands for the prompt",
            ("cmd", "argv", "run", "exec"),
        ),
        "python": Key(
            Text("write module:function", CODE), "a Python function: `module:function`", ("func",)
        ),
        "process": Key(Flag(), "a Python agent in a process of its own, which can be killed"),
        "description": Key(Text(), "for people"),
        "owns": Key(Many(PathPattern()), "what its tasks write that do not say it", ("paths",)),
        "instances": Key(Whole(1), "so many at once, at most", ("max_instances", "concurrency")),
        "workspace": Key(_WORKSPACE, "where it works: `shared`, the project folder"),
        "guard": Key(_GUARD, "how its claims are held to: `none`"),
        "limits": Key(Many(Text()), "names of `limits` that each of its tasks uses"),
        "uses": Key(Many(Use()), "resources that each of its tasks uses"),
        "env": Key(
            Named(Text("write text", blank=True), "variables and their values", VARIABLE),
            "variables it gets, with their values; no secrets",
            ("environment",),
        ),
        "pass_env": Key(_VARIABLES, "names of variables of yours that it gets to see"),
        "secrets": Key(_VARIABLES, "names of secrets that it gets to see"),
        "stdin": Key(Text(), "what it reads on standard input, such as `{prompt}`", ("input",)),
        "home": Key(Choice("user", "private"), "its HOME: yours (`user`), or one of its own"),
        "errors": Key(ERRORS, "regular expressions: a line of output that matches is a failure"),
        "check": Key(Text(), "a shell command that has to succeed after each of its tasks"),
        "timeout": Key(Span(), "how long one attempt may take"),
        "attempts": Key(Whole(1, 1000), "how often its tasks are tried, at most", ("retries",)),
        "backoff": Key(Span(zero=True), "how long to wait after the first failure (1s), then more"),
        "budget": Key(Data(), "", later=_BUDGETS),
        "model": Key(Data(), "", later="presets"),
    },
    "an agent",
)

TASK: Final[dict[str, Key]] = {
    "agent": Key(Text(), "who does it: one of the agents of the project", ("worker", "assignee")),
    "prompt": Key(Prompt(), "what to do", ("text", "task", "message", "description", "input")),
    "prompt_file": Key(Text(), "a file that holds the prompt, relative to the plan"),
    "with": Key(
        Named(Data(), "arguments", r"[^\W\d]\w*"),
        "keyword arguments for a Python agent",
        ("args", "kwargs", "arguments", "params"),
    ),
    "writes": Key(
        Many(PathPattern()), "paths it changes, nobody else at that time", ("files", "write")
    ),
    "reads": Key(Many(PathPattern()), "paths it needs to stay as they are", ("read",)),
    "uses": Key(Many(Use()), "resources: `gpu`, `memory_mb=2048`, `db:staging!` (alone)", ("use",)),
    "after": Key(
        Many(Text()),
        "tasks that have to succeed first",
        ("needs", "depends_on", "dependencies", "depends", "requires"),
    ),
    "priority": Key(Text("write a whole number or a name"), "a number or a name; higher is first"),
    "timeout": Key(Span(), "how long one attempt may take"),
    "deadline": Key(Moment(), "how long all of it may take from the start, or until when"),
    "attempts": Key(Whole(1, 1000), "how often to try, at most (1)", ("retries", "retry", "tries")),
    "backoff": Key(Span(zero=True), "how long to wait after the first failure (1s), then more"),
    "estimate": Key(Span(), "how long it will take; improves the order of starts", ("duration",)),
    "workspace": Key(_WORKSPACE, "where it works: `shared`, the project folder"),
    "guard": Key(_GUARD, "how its claims are held to: `none`"),
    "check": Key(Text(), "a shell command that has to succeed after a program", ("verify", "test")),
    "output": Key(
        Text(MODEL, rf"text|json|{CODE}"), "what its result has to be: text, json or module:Type"
    ),
    "ask": Key(Prompt(), "a question you have to answer before it starts", ("confirm", "approve")),
    "labels": Key(
        Named(Text("write text", blank=True), "labels"), "names with texts, for you", ("tags",)
    ),
    "for_each": Key(
        Later(Items()), "a list, or a variable that is one: a task for each", ("foreach", "matrix")
    ),
    "budget": Key(Data(), "", later=_BUDGETS),
    "extra": Key(Data(), "", later=_MERGING),
    "back_to": Key(Data(), "", later="conversations that go on"),
    "on_conflict": Key(Data(), "", later=_MERGING),
    "session": Key(Data(), "", later="conversations that go on"),
}
_DEFAULT_KEYS = (
    *("agent", "priority", "timeout", "deadline", "attempts", "backoff", "estimate", "workspace"),
    *("guard", "check", "output", "reads", "uses", "labels", "budget", "extra", "on_conflict"),
)
DEFAULTS = Record({name: TASK[name] for name in _DEFAULT_KEYS}, "`defaults`")
NAMED_TASK = Record(TASK, "a task", instead={"id": "its key is its id; leave this out"})
LISTED_TASK = Record({"id": Key(Text(), "its name", ("name", "task_id")), **TASK}, "a task")

PROJECT = Record(
    {
        "agents": Key(Named(AGENT, "agents", NAME), "who can do the work", ("agent",)),
        "max_parallel": Key(SLOTS, "how many tasks at once: a number, `auto`, or its bounds"),
        "capacity": Key(Named(Whole(0, 10**15), "resources"), "how much there is of a resource"),
        "limits": Key(Named(LIMIT, "limits"), "rates and breakers that tasks share"),
        "priorities": Key(
            Named(Whole(), "priorities", r"[^\W\d][\w-]*"),
            "names for priorities; `low` is -10, `normal` 0, `high` 10",
        ),
        "protected": Key(Many(PathPattern()), "paths that no task may claim for writing"),
        "secrets": Key(_VARIABLES, "names of variables whose values are secret"),
        "env_file": Key(Text(), "where secrets are besides the environment (`.env`)"),
        "gate": Key(GATE, "above this load of the machine nothing starts, unless nothing runs"),
        "grace": Key(Span(zero=True), "how long what was told to stop is waited for (30s)"),
        "defaults": Key(DEFAULTS, "what tasks are that do not say otherwise"),
        "budget": Key(Data(), "", later=_BUDGETS),
        "budgets": Key(Data(), "", later=_BUDGETS),
        "check": Key(Data(), "", later="merging"),
    },
    "a project file",
    open=True,
)

PLAN = Record(
    {
        "name": Key(Text(), "what it is called (the name of the file)"),
        "description": Key(Text(), "for people"),
        "defaults": Key(Later(DEFAULTS), "what tasks are that do not say otherwise"),
        "variables": Key(
            Named(Value(), "variables", r"[A-Za-z_][A-Za-z0-9_-]*"),
            "texts and lists for `{{name}}`; `--set` changes them, and gives a value where none is",
            ("vars", "params", "inputs"),
        ),
        "tasks": Key(
            Later(
                Either(
                    "write a list of tasks, or a mapping from ids to tasks",
                    listed=Many(Shared("listed_task"), alone=False),
                    keyed=Named(Shared("task"), "tasks"),
                )
            ),
            "the tasks: a list, or a mapping from ids to tasks; a text alone is a prompt",
            ("steps", "jobs"),
        ),
        "max_parallel": Key(SLOTS, "how many tasks at once, in this plan"),
        "fail_fast": Key(Flag(), "whether the first failure stops everything (false)"),
        "deadline": Key(Span(), "how long the whole plan may take", ("timeout",)),
        "budget": Key(Data(), "", later=_BUDGETS),
    },
    "a plan",
    open=True,
)
