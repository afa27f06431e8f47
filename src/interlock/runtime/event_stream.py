"""The events of a run, on their way into the journal and out to those that follow the run."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from interlock.errors import UsageError
from interlock.journal.port import Journal
from interlock.model.event import Event
from interlock.runtime.log import Log
from interlock.runtime.turn import Turn

Listener = Callable[[Event], None]


class EventStream:
    """Numbers the events of a run, journals them turn by turn, and publishes them afterwards.

    Nothing is published before it is in the journal: a follower never sees an event that a crash
    could take back.
    """

    def __init__(self, journal: Journal, log: Log, epoch: float) -> None:
        self.loop = asyncio.get_running_loop()
        self._journal = journal
        self._log = log
        self._epoch = epoch
        self.turn = Turn(journal.last + 1, epoch)
        """The events of the current turn, which are not in the journal yet."""
        self._listeners: list[Listener] = []
        self._followers: list[asyncio.Future[None]] = []
        # Weak: an abandoned follower must not keep events in memory.
        self._follow: weakref.WeakSet[_Follower] = weakref.WeakSet()
        self.committed = journal.last
        """The number of the last event that is in the journal for good."""
        self.finished = False
        """Whether nothing more will happen that a follower would wait for."""
        self.closed = False

    def take(self) -> Turn:
        """End the current turn and begin the next; returns the one that ended."""
        turn = self.turn
        self.turn = Turn(turn.last + 1, self._epoch)
        return turn

    def append(self, events: Sequence[Event]) -> Awaitable[None] | None:
        """Journal the events of one turn; None if they are in the journal already."""
        return self._journal.append(events)

    def mark_durable(self, turn: Turn) -> None:
        """The events of a turn are in the journal for good."""
        self.committed = turn.last

    def publish(self, events: Sequence[Event]) -> None:
        """Pass events that are in the journal to the log, the listeners and the followers."""
        if self._log.is_on():
            self._log.write(events)
        # A copy, because a listener may end itself, or add another, while it is called.
        for listener in tuple(self._listeners):
            for event in events:
                try:
                    listener(event)
                except (Exception, asyncio.CancelledError, SystemExit) as error:  # noqa: BLE001
                    # A listener must not hurt the run. KeyboardInterrupt is for the program.
                    self._log.listener_failed(listener, error)
        self._wake()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every event from now on; returns a function that ends this."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def follow(self, since: int) -> AsyncIterator[Event]:
        """The events after a number, including those to come; ends when the run does."""
        follower = _Follower(self, self._journal, since)
        if not self.closed:
            self._follow.add(follower)
        return follower

    def finish(self) -> None:
        """Nothing more will happen: let followers end."""
        self.finished = True
        self._wake()

    def close(self) -> None:
        """Nothing more will happen, and the journal is about to be closed.

        Followers read the rest into memory, because they may be slower than the end of the run.
        """
        for follower in self._follow:
            follower.read_on(None)
        self.closed = True
        self.finish()

    def _wake(self) -> None:
        if self._followers:
            followers, self._followers = self._followers, []
            for follower in followers:
                if not follower.done():
                    follower.set_result(None)

    async def news(self) -> None:
        """Wait until something is published."""
        wakeup: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers.append(wakeup)
        await wakeup


class _Follower(AsyncIterator[Event]):
    """Reads events from the journal.

    It is an iterator, not a generator: it holds nothing that has to be cleaned up when it is left.
    """

    def __init__(self, events: EventStream, journal: Journal, since: int) -> None:
        self._events = events
        self._journal = journal
        self._since = since
        self._ahead: deque[Event] = deque()

    async def __anext__(self) -> Event:
        if asyncio.get_running_loop() is not self._events.loop:
            raise UsageError("follow events on the event loop of the Runtime; others use listen()")
        while not self._ahead:
            self.read_on(1000)
            if not self._ahead:
                if self._events.finished:
                    raise StopAsyncIteration
                await self._events.news()
        return self._ahead.popleft()

    def read_on(self, most: int | None) -> None:
        """Take more events from the journal; None: all."""
        while found := self._journal.since(self._since, most or 1000):
            self._ahead.extend(found)
            self._since = found[-1].number
            if most is not None:
                return
