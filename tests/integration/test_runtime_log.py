"""The structured log, as the handlers of the standard library see it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Kind, Retry, Runtime, TaskContext
from interlock.model.redaction import Redaction
from interlock.runtime.log import JsonFormatter, Log, TextFormatter

LOGGER = logging.getLogger("interlock")


@pytest.fixture
def written() -> Iterator[io.BytesIO]:
    """What a handler with the JSON formatter writes, down to DEBUG."""
    yield from _handled(JsonFormatter())


@pytest.fixture
def printed() -> Iterator[io.BytesIO]:
    """The same as text."""
    yield from _handled(TextFormatter())


def _handled(formatter: logging.Formatter) -> Iterator[io.BytesIO]:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    level = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    yield raw
    LOGGER.setLevel(level)
    LOGGER.removeHandler(handler)


def lines(written: io.BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().decode().split("\n") if line]


def of(written: io.BytesIO, event: str) -> list[dict[str, Any]]:
    return [line for line in lines(written) if line["event"] == event]


def fails() -> None:
    raise OSError("no such luck")


async def waits_for_ever() -> None:
    await asyncio.Event().wait()


async def test_the_message_is_the_event_and_the_rest_are_fields(written: io.BytesIO) -> None:
    async with Runtime() as rt:
        await rt.submit(lambda: 1, id="a", writes="src/")
    first, *_, last = lines(written)
    assert (first["event"], last["event"]) == ("run_started", "run_ended")
    assert all(line["run"] == rt.run_id for line in lines(written))
    assert {line["event"] for line in lines(written)} <= {str(kind) for kind in Kind}
    [submitted] = of(written, "submitted")
    assert (submitted["task"], submitted["claims"]) == ("a", "write src/")
    [started] = of(written, "started")
    assert (started["task"], started["attempt"]) == ("a", 1)
    [settled] = of(written, "settled")
    assert (settled["status"], settled["attempts"]) == ("succeeded", 1)
    assert settled["duration"] > 0


async def test_levels_say_what_matters(written: io.BytesIO) -> None:
    async with Runtime() as rt:
        await rt.submit(lambda: 1, id="good")
        await rt.submit(fails, id="bad", retry=Retry(attempts=2, backoff=0))
        await rt.submit(waits_for_ever, id="late", timeout=0.01)
        await rt.submit(print, id="skipped", after="bad")
    levels = {line["task"]: line["level"] for line in of(written, "settled")}
    assert levels == {"good": "info", "bad": "error", "late": "warning", "skipped": "info"}
    assert [line["level"] for line in of(written, "retrying")] == ["warning"]
    assert {line["level"] for line in of(written, "stop_requested")} == {"warning"}
    for kind in ("run_started", "submitted", "started", "run_ended"):
        assert {line["level"] for line in of(written, kind)} == {"info"}
    assert {line["level"] for line in of(written, "waiting") + of(written, "ended")} == {"debug"}


async def test_prompts_arguments_and_results_are_not_in_it(written: io.BytesIO) -> None:
    async def agent(ctx: TaskContext, password: str, *, token: str) -> str:
        await ctx.ask("May I, secret-question?")
        ctx.usage(cost=1.0)
        return "secret-result"

    async with Runtime() as rt:
        handle = rt.submit(
            agent,
            "secret-argument",
            prompt="secret-prompt",
            kwargs={"token": "secret-token"},
            labels={"team": "secret-label"},
        )
        async for event in rt.events():
            if event.kind is Kind.NEEDS_YOU:
                break
        rt.answer(handle, "secret-answer")
        assert (await handle).result == "secret-result"
    assert b"settled" in written.getvalue()
    text = written.getvalue().decode()
    for secret in ("argument", "prompt", "token", "label", "result", "answer"):
        assert f"secret-{secret}" not in text


async def test_what_agents_say_is_in_it(written: io.BytesIO) -> None:
    async def agent(ctx: TaskContext) -> None:
        ctx.log("line one")
        ctx.report(0.5, "half way")

    async with Runtime() as rt:
        await rt.submit(agent)
    [logged] = of(written, "logged")
    assert (logged["line"], logged["level"]) == ("line one", "info")
    [reported] = of(written, "reported")
    assert (reported["fraction"], reported["message"]) == (0.5, "half way")


async def test_one_line_is_one_line_whatever_agents_say(
    written: io.BytesIO, printed: io.BytesIO
) -> None:
    async def agent(ctx: TaskContext) -> None:
        ctx.log("two\nlines\r\n\x1b[2Jand a cleared screen \u2028 \x9b")
        raise OSError("also\ntwo lines")

    async with Runtime() as rt:
        await rt.submit(agent, id="a b")
    said = printed.getvalue().decode()
    assert len(said.splitlines()) == len(lines(written))
    assert "\x1b" not in said
    assert "\x9b" not in said
    assert "INFO submitted run=" in said
    assert 'task="a b"' in said
    [settled] = [line for line in said.splitlines() if " settled " in line]
    assert settled.endswith('reason="OSError: also\\ntwo lines"')


async def test_names_that_are_no_utf_8_can_be_logged(
    written: io.BytesIO, printed: io.BytesIO
) -> None:
    name = os.fsdecode(b"caf\xe9")
    async with Runtime() as rt:
        await rt.submit(lambda: 1, writes=name)
    assert of(written, "submitted")[0]["claims"] == f"write {name}"
    assert b"caf\\udce9" in printed.getvalue()


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, KeyboardInterrupt])
async def test_what_a_callback_raises_is_logged_and_the_run_and_the_other_callbacks_go_on(
    written: io.BytesIO, error: type[BaseException]
) -> None:
    told: list[BaseException | None] = []

    def callback(trouble: BaseException | None) -> None:
        raise error("in a callback")

    async with Runtime() as rt:
        handle = rt.submit(abs, -1, id="first")
        handle.when_settled(callback)
        handle.when_settled(told.append)
        assert (await handle).result == 1
        handle.when_settled(callback)  # it is over already
        assert (await rt.submit(abs, -2)).result == 2
    assert told == [None]
    failures = of(written, "callback_failed")
    assert [each["task"] for each in failures] == ["first", "first"]
    assert failures[0]["callback"].endswith("callback")
    assert f"{error.__name__}: in a callback" in failures[0]["traceback"]
    assert not of(written, "run_broken")


async def test_a_listener_that_raises_is_logged_and_goes_on(written: io.BytesIO) -> None:
    heard = []

    def listener(event: object) -> None:
        heard.append(event)
        raise ZeroDivisionError("in a listener")

    async with Runtime() as rt:
        stop = rt.listen(listener)
        assert (await rt.submit(lambda: 1)).succeeded
        stop()
        before = len(heard)
        assert (await rt.submit(lambda: 1)).succeeded
    assert before == len(heard) > 1
    failures = of(written, "listener_failed")
    assert len(failures) == len(heard)
    assert failures[0]["level"] == "error"
    assert "ZeroDivisionError: in a listener" in failures[0]["traceback"]


class Raises(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise ZeroDivisionError("in a log handler")


async def test_a_log_handler_that_raises_does_not_hurt_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler = Raises()
    LOGGER.addHandler(handler)
    try:
        async with Runtime() as rt:
            assert (await rt.submit(fails)).reason == "OSError: no such luck"
    finally:
        LOGGER.removeHandler(handler)
    assert "ZeroDivisionError: in a log handler" in capsys.readouterr().err


async def test_nothing_is_logged_below_the_level_that_is_asked_for(written: io.BytesIO) -> None:
    LOGGER.setLevel(logging.ERROR)
    async with Runtime() as rt:
        await rt.submit(lambda: 1)
        await rt.submit(fails)
    assert [line["event"] for line in lines(written)] == ["settled"]


def test_fields_that_a_system_adds_are_shown_in_both_formats(
    written: io.BytesIO, printed: io.BytesIO
) -> None:
    LOGGER.warning("cron_missed", extra={"job": "nightly build", "due": 7, "event": "kept"})
    (line,) = lines(written)
    assert (line["event"], line["level"]) == ("cron_missed", "warning")
    assert (line["job"], line["due"]) == ("nightly build", 7)
    assert set(line) == {"at", "level", "event", "job", "due"}
    text = printed.getvalue().decode()
    assert text.endswith('WARNING cron_missed job="nightly build" due=7 event=kept\n')


_UNCONFIGURED = """
import asyncio
from interlock import AgentPool, ShutdownManager, Task, run

def fails(ctx):
    raise OSError("no such luck")

async def main():
    async with AgentPool(agent_factory=lambda entry: fails) as pool:
        await pool.spawn_agents([{"agent_id": "a"}])
        await pool.run_parallel_tasks([{"agent_id": "a", "prompt": "x"}])
    manager = ShutdownManager()
    manager.register_cleanup(lambda: 1 / 0)
    await manager.initiate_shutdown()

run([Task("a", fails)])
asyncio.run(main())
"""


def test_nothing_is_printed_when_logging_is_not_configured(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _UNCONFIGURED],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_handler_that_discards_everything_costs_no_events() -> None:
    log = Log("r", Redaction(()))
    handlers, LOGGER.handlers = LOGGER.handlers, [logging.NullHandler()]
    propagate, LOGGER.propagate = LOGGER.propagate, False
    try:
        assert not log.is_on()
        LOGGER.addHandler(logging.StreamHandler(io.StringIO()))
        assert log.is_on()
    finally:
        LOGGER.handlers, LOGGER.propagate = handlers, propagate
