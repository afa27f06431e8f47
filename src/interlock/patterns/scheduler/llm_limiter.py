"""`LLMLimiter`: so many calls a second, whoever makes them."""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from interlock.errors import AttemptOver, InterlockError, InvalidOption, WouldBlockTheLoop
from interlock.model.duration import Duration, seconds, span
from interlock.model.limits import Quota
from interlock.patterns.scheduler.llm_answers import retry_after, tokens_used
from interlock.runtime.context import TaskContext, current
from interlock.runtime.limits.allowance import Allowance
from interlock.runtime.limits.quota_queue import QuotaWaiter
from interlock.runtime.own_thread import in_own_thread

P = ParamSpec("P")
T = TypeVar("T")

_WORTH_TELLING = 1.0
"""Seconds that a task has to wait for its turn before the record of its run says so."""


class LLMLimiter:
    """A rate limit that all agents of a process share: on event loops, in threads, or both.

        limiter = LLMLimiter(max_rps=3)
        answer = await limiter.call(client.create, model="m", messages=[...])
        answer = limiter.call_sync(client.create, model="m", messages=[...])   # in a thread

    Calls go through one at a time, `1 / max_rps` seconds apart, in the order in which they were
    asked for; with `burst`, so many at once and then none until the rate allows. Models have quotas
    of their own: at most `requests_per_minute` and `tokens_per_minute` in any 60 seconds. A call
    goes to the model that it names as `model=`; `of(model, tokens=)` says it, and how many tokens
    it will use. If an answer or an error asks to come back later (Retry-After), nobody calls
    that model before.

    It limits how often calls begin, not how many run. Blocking functions run in threads of their
    own when they are awaited. (`clock` is for simulations.)
    """

    def __init__(
        self,
        max_rps: float | None = 3.0,
        *,
        burst: int = 1,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._quotas = _per_minute(requests_per_minute, tokens_per_minute)
        self._allowance = Allowance(_pace(max_rps, burst), clock)

    # -- calling ----------------------------------------------------------------------------

    @overload
    async def call(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def call(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def call(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, blocking or async, as soon as the rate allows; on an event loop."""
        return await self._call(None, 1, fn, args, kwargs)

    @overload
    def call_sync(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    def call_sync(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def call_sync(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """The same for code that is not async: waits, and calls it, on this thread."""
        return self._call_sync(None, 1, fn, args, kwargs)

    def of(self, model: str = "", *, tokens: int = 1) -> ModelCalls:
        """`call` and `call_sync` for a model, by calls that will use about so many tokens.

        What an answer says it has really used (`usage`) counts instead, once it is there.
        """
        if not isinstance(model, str):
            raise InvalidOption(f"a model is named by text, not by {model!r}")
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise InvalidOption(f"tokens is {tokens!r}; it must be a whole number, 1 or more")
        return ModelCalls(self, model, tokens)

    async def _call(
        self,
        model: str | None,
        tokens: int,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        lane, context = self._lane(model, kwargs), _context()
        ask = await self._allowance.take(lane, tokens)
        try:
            if _is_async(fn):
                result = await fn(*args, **kwargs)
            else:
                result = await in_own_thread(partial(fn, *args, **kwargs), f"call-{lane or 'llm'}")
                if inspect.isawaitable(result):
                    result = await result
        except BaseException as error:
            self._obey(lane, error)
            raise
        finally:
            _tell(context, lane, ask)
        return self._answered(ask, lane, result)

    def _call_sync(
        self,
        model: str | None,
        tokens: int,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        _refuse_on_a_loop()
        lane, context = self._lane(model, kwargs), _context()
        go_on = bool if context is None else context.check_open
        ask = self._allowance.take_blocking(lane, tokens, go_on)
        try:
            result = fn(*args, **kwargs)
            if inspect.isawaitable(result):
                result = asyncio.run(_awaited(result))
        except BaseException as error:
            self._obey(lane, error)
            raise
        finally:
            _tell(context, lane, ask)
        return self._answered(ask, lane, result)

    def _lane(self, model: str | None, kwargs: dict[str, Any]) -> str:
        named = kwargs.get("model") if model is None else model
        lane = named if isinstance(named, str) else ""
        self._allowance.open_lane(lane, *self._quotas)
        return lane

    def _answered(self, ask: QuotaWaiter, lane: str, result: T) -> T:
        used = tokens_used(result)
        if used is not None:
            self._allowance.settle(ask, used)
        self._obey(lane, result)
        return result

    def _obey(self, lane: str, answer: Any) -> None:
        wait = retry_after(answer)
        if wait:
            self._allowance.hold(lane, wait)

    # -- steering and looking ---------------------------------------------------------------

    def set_limit(
        self,
        model: str,
        *,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        """Give a model other quotas than the rest, at any time; what was used up stays so."""
        quotas = _per_minute(requests_per_minute, tokens_per_minute)
        self._allowance.change_lane(model, *quotas)

    def hold(self, duration: Duration, model: str = "") -> None:
        """Let no call to a model through for some time, as a Retry-After asks for."""
        self._allowance.open_lane(model, *self._quotas)
        self._allowance.hold(model, seconds(duration))

    def waiting(self) -> dict[str, int]:
        """How many calls wait, by model."""
        return self._allowance.waiting()

    def why(self, model: str = "") -> str:
        """What the next call to a model has to wait for; empty if it need not wait."""
        self._allowance.open_lane(model, *self._quotas)
        return "\n".join(self._allowance.why(model))

    def close(self) -> None:
        """Let no more calls through: those that wait raise ShuttingDown. What runs goes on."""
        self._allowance.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class ModelCalls:
    """Calls to one model, through the limiter that made this."""

    def __init__(self, limiter: LLMLimiter, model: str, tokens: int) -> None:
        self._limiter = limiter
        self._about = model, tokens

    @overload
    async def call(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def call(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def call(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As `LLMLimiter.call`."""
        return await self._limiter._call(*self._about, fn, args, kwargs)

    @overload
    def call_sync(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    def call_sync(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def call_sync(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As `LLMLimiter.call_sync`."""
        return self._limiter._call_sync(*self._about, fn, args, kwargs)


def _pace(max_rps: float | None, burst: int) -> dict[str, Quota]:
    """Quotas that together keep to a rate: `burst` at once, and no second with more than it."""
    if isinstance(burst, bool) or not isinstance(burst, int) or burst < 1:
        raise InvalidOption(f"burst is {burst!r}; it must be a whole number, 1 or more")
    if max_rps is None:
        return {}
    if isinstance(max_rps, bool) or not isinstance(max_rps, (int, float)):
        raise InvalidOption(f"max_rps is {max_rps!r}; it is a number of calls per second")
    if not 0 < max_rps < math.inf:
        raise InvalidOption(f"max_rps is {max_rps!r}; it must be above 0, and finite")
    pace = {"max_rps": Quota(burst, burst / max_rps)}
    if 1 < burst < max_rps:
        pace["max_rps (1 s)"] = Quota(math.ceil(max_rps), 1.0)
    return pace


def _per_minute(requests: int | None, tokens: int | None) -> tuple[Quota | None, Quota | None]:
    return (
        None if requests is None else Quota(requests, 60.0),
        None if tokens is None else Quota(tokens, 60.0),
    )


def _is_async(fn: Any) -> bool:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(
        getattr(fn, "__call__", None)  # noqa: B004 - an object may have an async __call__
    )


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WouldBlockTheLoop("this thread runs an event loop: write `await limiter.call(...)`")


def _context() -> TaskContext | None:
    """The attempt that this is called in, if any; raises if it may have no more effects."""
    try:
        context = current()
    except AttemptOver:
        return None
    context.check_open()
    return context


def _tell(context: TaskContext | None, lane: str, ask: QuotaWaiter) -> None:
    """Have the record of a run say that a task had to wait here."""
    waited = ask.went - ask.since
    if context is not None and waited >= _WORTH_TELLING:
        with suppress(InterlockError):  # meanwhile its time may have been up
            context.log(f"waited {span(waited)} for its turn to call {lane or 'a model'}")
