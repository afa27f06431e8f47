"""To talk to one agent, without a pool."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import (
    AgentError,
    ChatEngine,
    DuplicateId,
    EngineConfig,
    EngineError,
    InvalidOption,
    Message,
    SessionManager,
    ShuttingDown,
    TaskContext,
)
from interlock.testing.simulated_ports import simulated_ports
from tests.unit.patterns.groups import played
from tests.unit.patterns.pools import Cast, raising, resting, stuck


def manager(cast: Any = None, **options: Any) -> SessionManager:
    return SessionManager(agent_factory=cast or Cast(), ports=simulated_ports(), **options)


def test_a_conversation_is_remembered_and_the_agent_is_made_once() -> None:
    async def counts(ctx: TaskContext) -> str:
        return f"{ctx.prompt} after {len(ctx.session.messages)}"

    async def main() -> None:
        cast = Cast(a=counts)
        sessions = manager(cast)
        async with ChatEngine(sessions=sessions) as chat:
            session = await sessions.create_session("a", "chat", "m", "Be kind.")
            assert (session.session_id, session.session_type) == ("a-1", "chat")
            assert await chat.send_message("a-1", "one", "a") == "one after 0"
            assert await chat.send_message("a-1", "two", "a") == "two after 2"
            assert session.messages == (
                Message("user", "one"),
                Message("assistant", "one after 0"),
                Message("user", "two"),
                Message("assistant", "two after 2"),
            )
            assert cast.made == [{"agent_id": "a", "model": "m", "system_prompt": "Be kind."}]
            other = await sessions.create_session("a", model="large")
            assert other.session_id == "a-2"
            assert await chat.send_message("a-2", "three", "a") == "three after 0"
            assert [each["model"] for each in cast.made] == ["m", "large"]
            assert await sessions.list_sessions("a") == [session, other]
            assert await sessions.list_sessions("b") == []
            assert "a-1#2" in [each.task_id for each in sessions.runtime.outcomes]

    played(main)


def test_several_chats_may_share_the_sessions_of_one_manager_and_their_agents() -> None:
    async def main() -> None:
        cast = Cast(a=resting(1, "said"))
        sessions = manager(cast)
        async with sessions:
            one, other = ChatEngine(sessions=sessions), ChatEngine(sessions=sessions)
            await sessions.create_session("a")
            async with asyncio.TaskGroup() as both:
                for chat in (one, other, one):
                    both.create_task(chat.send_message("a-1", "go", "a"))
            assert len((await sessions.get_session("a-1")).messages) == 6
            assert (len(cast.made), cast.most) == (1, 1)

    played(main)


def test_messages_of_one_session_are_answered_one_at_a_time_and_others_at_once() -> None:
    async def main() -> None:
        cast = Cast(a=resting(1), b=resting(1))
        sessions = manager(cast)
        async with ChatEngine(sessions=sessions) as chat:
            for agent_id in "ab":
                await sessions.create_session(agent_id, session_id=agent_id)
            async with asyncio.TaskGroup() as all_at_once:
                for agent_id in "abab":
                    all_at_once.create_task(chat.send_message(agent_id, "go", agent_id))
            assert asyncio.get_running_loop().time() == 2
            assert (cast.most, cast.most_of["a"]) == (2, 1)
            assert len(cast.made) == 2

    played(main)


def test_a_failure_is_an_agent_error_that_names_the_agent() -> None:
    async def main() -> None:
        cast = Cast(a=raising(OSError("line busy")))
        sessions = manager(cast)
        async with ChatEngine(sessions=sessions) as chat:
            await sessions.create_session("a")
            with pytest.raises(AgentError, match="agent 'a': OSError: line busy") as caught:
                await chat.send_message("a-1", "go", "a")
            assert caught.value.agent_id == "a"
            assert isinstance(caught.value.__cause__, OSError)
            cast.does["a"] = resting(100)
            with pytest.raises(AgentError, match="no answer within 5 s"):
                await chat.send_message("a-1", "go", "a", timeout=5)
            with pytest.raises(AgentError, match="belongs to agent 'a', not 'b'"):
                await chat.send_message("a-1", "go", "b")
            with pytest.raises(AgentError, match="no session 'x'"):
                await chat.send_message("x", "go", "a")
            with pytest.raises(InvalidOption, match="content"):
                await chat.send_message("a-1", 3, "a")  # type: ignore[arg-type]
            assert (await sessions.get_session("a-1")).messages == ()
            with pytest.raises(DuplicateId):
                await sessions.create_session("a", session_id="a-1")

    played(main)


def test_whoever_stops_waiting_for_an_answer_cancels_it() -> None:
    async def main() -> None:
        cast = Cast(a=resting(100))
        sessions = manager(cast)
        async with ChatEngine(sessions=sessions) as chat:
            await sessions.create_session("a")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await chat.send_message("a-1", "go", "a")
            cast.does.clear()
            assert await chat.send_message("a-1", "go", "a") == "a: go"
            assert asyncio.get_running_loop().time() == 1

    played(main)


def test_without_an_agent_and_without_a_factory_the_error_says_what_to_pass() -> None:
    async def main() -> None:
        config = EngineConfig(agents={"a": {"agent": lambda: "here", "model": "m"}})
        sessions = SessionManager(config, ports=simulated_ports())
        async with ChatEngine(sessions=sessions) as chat:
            with pytest.raises(EngineError, match="agent_factory="):
                await sessions.create_session("b")
            session = await sessions.create_session("a")
            assert session.model == "m"
            assert await chat.send_message(session.session_id, "hi", "a") == "here"

    played(main)


def test_a_chat_that_was_shut_down_takes_no_messages_and_names_who_would_not_stop() -> None:
    async def main() -> None:
        sessions = manager(Cast(a=stuck))
        chat = ChatEngine(sessions=sessions)
        await sessions.create_session("a")
        asking = asyncio.create_task(chat.send_message("a-1", "go", "a"))
        await asyncio.sleep(1)
        assert await chat.shutdown(timeout=1) == ["a"]
        with pytest.raises(AgentError):
            await asking
        with pytest.raises(ShuttingDown):
            await chat.send_message("a-1", "go", "a")
        await asyncio.sleep(3600)

    played(main)


def test_a_chat_has_its_own_sessions_or_those_it_is_given() -> None:
    assert isinstance(ChatEngine(agent_factory=Cast()).sessions, SessionManager)
    with pytest.raises(InvalidOption, match="sessions="):
        ChatEngine(EngineConfig(), manager())


def test_a_message_without_a_session_starts_one_and_its_answer_has_a_content() -> None:
    async def main() -> None:
        sessions = manager(Cast(a=resting(1, "hello"), b=resting(1, {"text": "hi", "cost": 2})))
        async with ChatEngine(sessions=sessions) as chat:
            answer = await chat.send_message(None, "one", "a")
            assert answer == answer.get("content") == "hello"
            assert (answer.get("session_id"), answer.get("agent_id")) == ("a-1", "a")
            assert answer.get("other") is None
            assert answer.get("other", 5) == 5
            again = await chat.send_message(answer.get("session_id"), "two", "a")
            assert again.get("session_id") == "a-1"
            assert (await chat.send_message(None, "three", "a")).get("session_id") == "a-2"
            mapping = await chat.send_message(None, "four", "b")
            assert (mapping["text"], mapping["cost"]) == ("hi", 2)
            assert "hi" in mapping.get("content")
            assert mapping.get("session_id") == "b-1"

    played(main)


def test_the_parts_of_a_session_can_be_read_by_name() -> None:
    async def main() -> None:
        sessions = manager()
        async with sessions:
            session = await sessions.create_session("a", "chat", "large")
            assert session["id"] == session["session_id"] == session.session_id == "a-1"
            assert (session["agent_id"], session["model"]) == ("a", "large")
            assert session.get("system_prompt") is session.get("other") is None
            assert session["messages"] == ()
            with pytest.raises(KeyError, match="other"):
                session["other"]

    played(main)
