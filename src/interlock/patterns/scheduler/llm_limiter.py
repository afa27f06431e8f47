"""`LLMLimiter`: one rate limit for all calls to models, from event loops and threads."""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar, overload

from interlock.errors import AttemptOver, InterlockError, InvalidOption, WouldBlockTheLoop
from interlock.model.duration import Duration, seconds, span
from interlock.model.limits import Quota
from interlock.runtime.context import TaskContext, current
from interlock.runtime.limits.allowance import Allowance
from interlock.runtime.limits.llm_answers import retry_after, tokens_used
from interlock.runtime.limits.quota_queue import QuotaWaiter
from interlock.runtime.own_thread import in_own_thread

P = ParamSpec("P")
T = TypeVar("T")

_LOGGED_WAIT = 1.0
"""Seconds of waiting from which on the log of the task mentions it."""


class _LimitedCalls:
    """`call` and `call_sync` through a limiter."""

    def _target(self) -> tuple[LLMLimiter, str | None, int]:
        """The limiter, the model (None: named by the call) and the tokens of each call."""
        raise NotImplementedError

    @overload
    async def call(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def call(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def call(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, blocking or async, as soon as the rate allows; on an event loop."""
        limiter, model, tokens = self._target()
        model = kwargs.get("model") if model is None else model
        return await limiter._call(model, tokens, partial(fn, *args, **kwargs))

    @overload
    def call_sync(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    def call_sync(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def call_sync(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """The same for blocking code: waits and calls on this thread."""
        limiter, model, tokens = self._target()
        model = kwargs.get("model") if model is None else model
        return limiter._call_sync(model, tokens, partial(fn, *args, **kwargs))


class LLMLimiter(_LimitedCalls):
    """A rate limit that all agents of a process share: on event loops, in threads, or both.

        limiter = LLMLimiter(max_rps=3)
        answer = await limiter.call(client.create, model="m", messages=[...])
        answer = limiter.call_sync(client.create, model="m", messages=[...])   # in a thread

    Calls start one at a time, `1 / max_rps` seconds apart, in the order in which they were made.
    With `burst`, that many may start at once. Each model also has quotas of its own: at most
    `requests_per_minute` and `tokens_per_minute` in any 60 seconds. A call belongs to the model
    that it names as `model=`; `of(model, tokens=)` states the model and the expected tokens. If an
    answer or an error carries a Retry-After, no call to that model starts before then.

    It limits how often calls start, not how many run. A blocking function that is awaited runs in
    a thread of its own. (`clock` is for simulations.)
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

    def _target(self) -> tuple[LLMLimiter, str | None, int]:
        return self, None, 1

    def of(self, model: str = "", *, tokens: int = 1) -> ModelCalls:
        """Return `call` and `call_sync` for one model, with the tokens that a call will use.

        Once an answer reports its `usage`, the tokens that were really used count instead.
        """
        if not isinstance(model, str):
            raise InvalidOption(f"a model is named by text, not by {model!r}")
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise InvalidOption(f"tokens is {tokens!r}; it must be a whole number, 1 or more")
        return ModelCalls(self, model, tokens)

    async def _call(self, model: Any, tokens: int, call: partial[Any]) -> Any:
        name, context = self._open_queue(model), _open_context()
        waiter = await self._allowance.take(name, tokens)
        try:
            if _is_async(call):
                result = await call()
            else:
                result = await in_own_thread(call, f"call-{name or 'llm'}")
                if inspect.isawaitable(result):
                    result = await result
        except BaseException as error:
            self._obey_retry_after(name, error)
            raise
        finally:
            _log_long_wait(name, waiter, context)
        return self._settle(waiter, name, result)

    def _call_sync(self, model: Any, tokens: int, call: partial[Any]) -> Any:
        _refuse_on_a_loop()
        name, context = self._open_queue(model), _open_context()
        check = bool if context is None else context.check_open
        waiter = self._allowance.take_blocking(name, tokens, check)
        try:
            result = call()
            if inspect.isawaitable(result):
                result = asyncio.run(_await(result))
        except BaseException as error:
            self._obey_retry_after(name, error)
            raise
        finally:
            _log_long_wait(name, waiter, context)
        return self._settle(waiter, name, result)

    def _open_queue(self, model: Any) -> str:
        name = model if isinstance(model, str) else ""
        self._allowance.open_queue(name, *self._quotas)
        return name

    def _settle(self, waiter: QuotaWaiter, model: str, result: T) -> T:
        used = tokens_used(result)
        if used is not None:
            self._allowance.settle(waiter, used)
        self._obey_retry_after(model, result)
        return result

    def _obey_retry_after(self, model: str, answer: Any) -> None:
        wait = retry_after(answer)
        if wait:
            self._allowance.hold(model, wait)

    # -- steering and looking ---------------------------------------------------------------

    def set_limit(
        self,
        model: str,
        *,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        """Give a model quotas of its own, at any time; what has been used still counts."""
        quotas = _per_minute(requests_per_minute, tokens_per_minute)
        self._allowance.change_queue(model, *quotas)

    def hold(self, duration: Duration, model: str = "") -> None:
        """Start no call to a model for some time, as after a Retry-After."""
        self._allowance.open_queue(model, *self._quotas)
        self._allowance.hold(model, seconds(duration))

    def waiting(self) -> dict[str, int]:
        """Return the number of waiting calls by model."""
        return self._allowance.waiting()

    def why(self, model: str = "") -> str:
        """Explain why the next call to a model has to wait; empty if it does not."""
        self._allowance.open_queue(model, *self._quotas)
        return "\n".join(self._allowance.why(model))

    def close(self) -> None:
        """Start no more calls: waiting ones raise ShuttingDown. Running calls continue."""
        self._allowance.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class ModelCalls(_LimitedCalls):
    """Calls to one model, through the limiter that made this."""

    def __init__(self, limiter: LLMLimiter, model: str, tokens: int) -> None:
        self._limiter, self._model, self._tokens = limiter, model, tokens

    def _target(self) -> tuple[LLMLimiter, str | None, int]:
        return self._limiter, self._model, self._tokens


def _pace(max_rps: float | None, burst: int) -> dict[str, Quota]:
    """Return quotas that together enforce a rate: `burst` at once, never more in any second."""
    if isinstance(burst, bool) or not isinstance(burst, int) or burst < 1:
        raise InvalidOption(f"burst is {burst!r}; it must be a whole number, 1 or more")
    if max_rps is None:
        return {}
    if isinstance(max_rps, bool) or not isinstance(max_rps, (int, float)):
        raise InvalidOption(f"max_rps is {max_rps!r}; it must be a number of calls per second")
    if not 0 < max_rps < math.inf:
        raise InvalidOption(f"max_rps is {max_rps!r}; it must be above 0 and finite")
    pace = {"max_rps": Quota(burst, burst / max_rps)}
    if 1 < burst < max_rps:
        pace["max_rps (1 s)"] = Quota(math.ceil(max_rps), 1.0)
    return pace


def _per_minute(requests: int | None, tokens: int | None) -> tuple[Quota | None, Quota | None]:
    return (
        None if requests is None else Quota(requests, 60.0),
        None if tokens is None else Quota(tokens, 60.0),
    )


def _log_long_wait(model: str, waiter: QuotaWaiter, context: TaskContext | None) -> None:
    """Log a long wait in the task's own log, if the call comes from a task."""
    if context is None:
        return
    waited = waiter.went - waiter.since
    if waited >= _LOGGED_WAIT:
        with suppress(InterlockError):  # the attempt may have ended meanwhile
            context.log(f"waited {span(waited)} for its turn to call {model or 'a model'}")


def _is_async(fn: Any) -> bool:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(
        getattr(fn, "__call__", None)  # noqa: B004 - an object may have an async __call__
    )


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WouldBlockTheLoop("this thread runs an event loop: write `await limiter.call(...)`")


def _open_context() -> TaskContext | None:
    """Return the context of the calling attempt, if any; raise if the attempt has ended."""
    try:
        context = current()
    except AttemptOver:
        return None
    context.check_open()
    return context
