"""What goes into the journal comes out as the same; what cannot is refused by name."""

from __future__ import annotations

import functools
import json
import math
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, Field, PrivateAttr, SecretStr

from interlock import Claim, ErrorRecord, Outcome, Retry, State, Task, Usage, read, uses, write
from interlock.errors import NotStorable
from interlock.journal.schema.codec import MAX_DEPTH, Codec
from interlock.journal.schema.own_records import Awaited, NotStored
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.runtime.recorded_types import RECORDED_TYPES

CODEC = Codec(RECORDED_TYPES)


class Colour(Enum):
    RED = "#f00"
    BLUE = "#00f"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: float
    y: float = 0.0
    seen: list[str] = field(default_factory=list)
    norm: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.norm = math.hypot(self.x, self.y)


@dataclass(frozen=True, slots=True)
class Report:
    title: str
    colour: Colour
    points: tuple[Point, ...] = ()


class Pair(NamedTuple):
    left: Any
    right: Any


class Permission(Flag):
    READ = 1
    WRITE = 2


@dataclass
class Scaled:
    factor: InitVar[int]
    value: int = 0

    def __post_init__(self, factor: int) -> None:
        self.value *= factor


@dataclass
class Base:
    a: int


class Derived(Base):
    def __init__(self, a: int) -> None:
        super().__init__(a)
        self.b = [a]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Derived) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]


class Table(dict[str, int]):
    pass


class Name(str):
    __slots__ = ()


def back(value: Any) -> Any:
    return CODEC.loads(CODEC.dumps(value))


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right or left != left)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1,
        2**80,
        10**3999,
        1.5,
        -0.0,
        "",
        "text",
        "\x00 \n \u2028 ß 😀",
        "\ud83d",
        [],
        {},
        [1, [2, {"a": None}]],
        (1, (2,), ()),
        {1, 2, 3},
        frozenset({"a"}),
        {1: "a", "1": "b", None: 0, (1, 2): 3, 1.5: 4},
        {"$": "not ours", "of": 3},
        {"$": "tuple", "of": [1]},
        {"x": {"$": 1}},
        b"\x00\xff",
        bytearray(b"abc"),
        datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        datetime(2026, 1, 2),
        date(2026, 1, 2),
        time(1, 2, 3),
        timedelta(days=-1, microseconds=7),
        Decimal("1.10"),
        Fraction(1, 3),
        UUID(int=7),
        Path("a/b c"),
        PurePosixPath("/x"),
        PureWindowsPath("C:/x"),
        math.inf,
        -math.inf,
        math.nan,
        Colour.RED,
        Level.LOW,
        Point(3.0, 4.0, ["a"]),
        Report("r", Colour.BLUE, (Point(1.0),)),
        Pair(1, (2,)),
        Permission.READ | Permission.WRITE,
        Permission(0),
        Scaled(7, 2),
        Derived(3),
        deque([1, (2,)], maxlen=5),
        OrderedDict(b=1, a=2),
        Counter("aab"),
        defaultdict(list, {1: [2]}),
        defaultdict(None, a=1),
        State.FAILED,
        Usage(1, 2, 0.5),
        ErrorRecord("ValueError", "no", "trace", False),
        Retry(attempts=5, backoff=2),
        write("src/"),
        do.Start("a", 1, 2),
        do.Change("a", State.WAITING, "x"),
        s.Ended("a", 1, State.FAILED, ErrorRecord("E", "m"), 1.0, 0.25, False),
        s.Extend("a", 1, 2, (read("x"), uses("gpu", 2))),
    ],
    ids=lambda value: repr(value)[:40].replace("\x00", ""),
)
def test_a_value_comes_back_as_itself(value: Any) -> None:
    assert same(back(value), value)


everything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.datetimes(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.just("$") | st.integers(), inner)
    ),
    max_leaves=20,
)


@given(everything)
def test_whatever_is_made_of_plain_data_comes_back_as_itself(value: Any) -> None:
    text = CODEC.dumps(value)
    assert same(CODEC.loads(text), value)
    json.loads(text.encode("utf-8"), parse_constant=pytest.fail)  # strict JSON, in UTF-8


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Name("x"), "x"),
        (Table(a=1), {"a": 1}),
    ],
)
def test_what_is_little_more_than_plain_data_is_stored_as_that(value: Any, stored: Any) -> None:
    assert same(back(value), stored)


@pytest.mark.parametrize(
    ("value", "path", "kind"),
    [
        (object(), "result", "object"),
        ({"rows": [1, {"c": sys}]}, "result.rows[1].c", "module"),
        ({"a b": (1, print)}, "result['a b'][1]", "builtin_function_or_method"),
        (Point(1.0, 2.0, [open]), "result.seen[0]", "builtin_function_or_method"),  # type: ignore[list-item]
        (Pair(1, iter(())), "result.right", "tuple_iterator"),
        (ValueError("x"), "result", "ValueError"),
    ],
)
def test_what_cannot_be_stored_is_named_with_its_place(value: Any, path: str, kind: str) -> None:
    with pytest.raises(NotStorable) as caught:
        CODEC.dumps(value, "result")
    assert (caught.value.path, caught.value.kind) == (path, kind)
    assert path in str(caught.value)


def test_a_number_that_python_would_not_read_again_is_refused() -> None:
    with pytest.raises(NotStorable, match=r"numbers\[0\] is a number of more than"):
        CODEC.dumps([10**5000], "numbers")


def test_a_list_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotStorable, match="contains itself"):
        CODEC.dumps(value)
    assert isinstance(CODEC.loads(CODEC.dumps_leniently(value)), NotStored)


def test_nesting_is_stored_up_to_its_limit() -> None:
    value: Any = 0
    for _ in range(MAX_DEPTH):
        value = (value,)
    assert back(value) == value
    with pytest.raises(NotStorable, match="deep"):
        CODEC.dumps([value])


def test_leniently_the_type_stands_in_the_place_of_what_cannot_be_stored() -> None:
    found = CODEC.loads(CODEC.dumps_leniently({"a": 1, "b": [open, (object(),)]}))
    assert found == {
        "a": 1,
        "b": [NotStored("builtin_function_or_method"), (NotStored("object"),)],
    }


def test_a_class_that_is_not_loaded_leaves_its_plain_data() -> None:
    text = CODEC.dumps(Report("r", Colour.RED)).replace(__name__, "somewhere.else")
    assert CODEC.loads(text) == {"title": "r", "colour": "RED", "points": ()}
    assert "somewhere.else" not in sys.modules


def test_a_class_that_has_changed_leaves_its_plain_data() -> None:
    text = CODEC.dumps(Point(1.0)).replace('"x"', '"abscissa"')
    assert CODEC.loads(text)["abscissa"] == 1.0


def test_a_journal_cannot_call_what_is_no_data() -> None:
    for name in ("os:system", "builtins:eval", "subprocess:Popen", "sys:modules", ":", "os:"):
        text = json.dumps({"$": name, "of": {"args": "echo"}})
        assert CODEC.loads(text) == {"args": "echo"}


def test_a_record_of_a_later_version_stays_plain_data() -> None:
    assert CODEC.loads('{"$":"Usage","of":{"tokens_in":1,"joules":3}}') == {
        "tokens_in": 1,
        "joules": 3,
    }


def test_an_outcome_comes_back_without_its_live_exception() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    outcome: Outcome[None] = Outcome(
        "a",
        State.FAILED,
        None,
        ErrorRecord("ValueError", "no"),
        2,
        at,
        at,
        1.5,
        Usage(1),
        ("x.py",),
        "because",
        ValueError("no"),
    )
    found = back(outcome)
    assert found == outcome
    assert found.exception is None


def test_a_result_that_cannot_be_stored_leaves_an_outcome_that_says_so() -> None:
    found = back(Outcome("a", State.SUCCEEDED, {"n": 1, "c": open}))
    assert found.status is State.SUCCEEDED
    assert found.result == NotStored("builtin_function_or_method", "result.c")


class Handle:
    """As the runtime has it: stands for a task."""

    task_id = "first"


def test_a_task_comes_back_with_its_agent_by_name() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    task = Task(
        "a",
        test_nesting_is_stored_up_to_its_limit,
        prompt="do it",
        args=(1, object(), Handle()),
        kwargs={"x": (1,)},
        claims=(write("src/"), uses("gpu", 2), uses("db", exclusive=True)),
        after=("b",),
        priority=3,
        timeout=5,
        deadline=at,
        retry=Retry(attempts=4),
        estimate="2m",
        key="k",
        output=Report,
        labels={"a": "b"},
    )
    name = f"{__name__}:test_nesting_is_stored_up_to_its_limit"
    assert back(task) == task.replace(
        agent=name,
        args=(1, NotStored("object"), Awaited("first")),
        output=f"{__name__}:Report",
    )


def fingerprint(*args: Any, **options: Any) -> str:
    return CODEC.task(Task(*args, **options))[1]


def test_a_fingerprint_is_about_the_work_and_nothing_else() -> None:
    first = fingerprint("a", sorted, args=([3, 1],), writes="x", reads="y", priority=1)
    again = fingerprint("b", sorted, args=([3, 1],), reads="y", writes="x", timeout=3, key="k")
    assert first == again


@pytest.mark.parametrize(
    "changed",
    [
        {"agent": list},
        {"prompt": "more"},
        {"args": ([3, 2],)},
        {"kwargs": {"reverse": True}},
        {"claims": (write("z"),)},
        {"agent": functools.partial(sorted, reverse=True)},
        {"agent": Point(1.0)},
    ],
    ids=str,
)
def test_changed_work_has_another_fingerprint(changed: dict[str, Any]) -> None:
    task = Task("a", sorted, args=([3, 1],), claims=(Claim("x", write("x").mode),))
    assert CODEC.task(task)[1] != CODEC.task(task.replace(**changed))[1]


def test_an_agent_with_other_settings_is_another_agent() -> None:
    assert fingerprint("a", functools.partial(max, 1)) != fingerprint(
        "a", functools.partial(max, 2)
    )
    assert fingerprint("a", Point(1.0)) != fingerprint("a", Point(2.0))
    assert fingerprint("a", Point(1.0)) == fingerprint("a", Point(1.0))


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    code = (
        "from interlock.journal.schema.codec import Codec; from interlock import Task;"
        "print(Codec().task(Task('a', sorted, args=({'x', 'y', 'z', 1}, object()),"
        " kwargs={'b': 1, 'a': 2}, writes=['q', 'p']))[1])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_arguments_that_contain_themselves_do_not_keep_a_task_from_being_written() -> None:
    loop: list[Any] = []
    loop.append(loop)
    text, same = CODEC.task(Task("a", sorted, args=(loop,)))
    assert CODEC.loads(text).id == "a"
    assert same


class Aliased(BaseModel):
    user_name: str = Field(alias="userName")


class Hiding(BaseModel):
    a: int
    note: str = Field("default", exclude=True)


class Inner(BaseModel):
    n: int

    @functools.cached_property
    def twice(self) -> int:
        return 2 * self.n


class More(Inner):
    extra: int = 0


class Outer(BaseModel):
    inner: Inner
    when: datetime | None = None
    anything: Any = None


class Open(BaseModel, extra="allow"):
    a: int = 0
    _private: int = PrivateAttr(default=0)


class Link(BaseModel):
    url: AnyUrl
    user_name: str = Field("", alias="userName")


class HiddenLink(Link):
    note: str = Field("default", exclude=True)


class Credentials(BaseModel):
    token: SecretStr


def secretive() -> Open:
    value = Open(a=1, b=(2,))  # type: ignore[call-arg]
    value._private = 3
    return value


@pytest.mark.parametrize(
    "value",
    [
        Aliased(userName="u"),
        Hiding(a=1, note="important"),
        Outer(inner=More(n=1, extra=5), when=datetime(2026, 1, 1, tzinfo=UTC)),
        Outer(inner=Inner(n=1), anything={1: (2, {3})}),
        secretive(),
        Link(url=AnyUrl("https://example.org/"), userName="u"),
    ],
    ids=repr,
)
def test_a_pydantic_model_comes_back_as_itself(value: BaseModel) -> None:
    (found,) = back([value])
    assert type(found) is type(value)
    assert found == value
    assert found.model_fields_set == value.model_fields_set
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        Credentials(token=SecretStr("x")),
        HiddenLink(url=AnyUrl("https://example.org/"), userName="u", note="important"),
        defaultdict(lambda: 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_come_back_as_something_else_is_refused(value: Any) -> None:
    with pytest.raises(NotStorable):
        CODEC.dumps(value)
    assert CODEC.dumps_leniently(value)


def test_what_a_model_has_worked_out_and_kept_is_no_part_of_it() -> None:
    value = Inner(n=2)
    assert value.twice == 4
    assert back(value).twice == 4


def test_plain_data_that_was_given_attributes_is_refused() -> None:
    table = Table(a=1)
    table.title = "t"  # type: ignore[attr-defined]
    with pytest.raises(NotStorable, match="Table"):
        CODEC.dumps(table)


@dataclass
class HalfMade:
    x: int
    y: int = field(init=False)


class Unwilling:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"not configured: {name}")


def test_what_cannot_be_read_is_not_storable() -> None:
    with pytest.raises(NotStorable, match=r"result\[0\] is a .*HalfMade that cannot be read"):
        CODEC.dumps([HalfMade(1)], "result")
    with pytest.raises(NotStorable, match="Unwilling"):
        CODEC.dumps(Unwilling(), "result")


def test_leniently_something_stands_in_for_what_cannot_be_read() -> None:
    found = CODEC.loads(CODEC.dumps_leniently([HalfMade(1), Unwilling(), 3]))
    assert found == [
        NotStored(f"{__name__}:HalfMade"),
        NotStored(f"{__name__}:Unwilling"),
        3,
    ]
