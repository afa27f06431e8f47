"""What a simulated loop refuses: the outside world, which no seed decides.

A thread, a process, a socket or a signal answers when it likes, so one of them is enough to make a
run that cannot be replayed. The runtime keeps them behind ports, and a simulation models the port.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, NoReturn


class NotInSimulation(RuntimeError):
    """Code under test reached past its ports, for something that only the real world has."""

    def __init__(self, reached_for: str, why: str) -> None:
        self.reached_for = reached_for
        super().__init__(f"{reached_for} is not in the simulation: {why}")


def belongs_behind_a_port(what: str) -> str:
    """Why there is no such thing."""
    return f"{what} belongs behind a port, and the simulation models the port"


class _Refusal:
    """A method of the loop that raises when it is called, not only when it is awaited."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, loop: SealedLoop, owner: type) -> Any:
        return partial(self._refuse, loop)

    def _refuse(self, loop: SealedLoop, *_args: object, **_options: object) -> NoReturn:
        loop.refuse(f"loop.{self._name}()", belongs_behind_a_port(self._what))


def _refusal(what: str) -> Any:
    """Any, because a refusal stands in for methods of every signature."""
    return _Refusal(what)


class SealedLoop(asyncio.AbstractEventLoop):
    """The half of an event loop that deals with the world, every bit of it refused."""

    def __init__(self) -> None:
        # Kept because code under test may well catch what is raised here: a runtime has to live
        # with whatever an agent raises, and would report its NotInSimulation as a mere failure.
        self.reached_for: list[str] = []

    def refuse(self, reached_for: str, why: str) -> NoReturn:
        """Raise, and remember it."""
        self.reached_for.append(reached_for)
        raise NotInSimulation(reached_for, why)

    run_in_executor = _refusal("a thread")
    set_default_executor = _refusal("a thread")

    getaddrinfo = _refusal("a name server")
    getnameinfo = _refusal("a name server")

    create_connection = _refusal("a socket")
    create_server = _refusal("a socket")
    create_unix_connection = _refusal("a socket")
    create_unix_server = _refusal("a socket")
    create_datagram_endpoint = _refusal("a socket")
    connect_accepted_socket = _refusal("a socket")
    start_tls = _refusal("a socket")
    sendfile = _refusal("a socket")
    sock_recv = _refusal("a socket")
    sock_recv_into = _refusal("a socket")
    sock_recvfrom = _refusal("a socket")
    sock_recvfrom_into = _refusal("a socket")
    sock_sendall = _refusal("a socket")
    sock_sendto = _refusal("a socket")
    sock_sendfile = _refusal("a socket")
    sock_connect = _refusal("a socket")
    sock_accept = _refusal("a socket")

    connect_read_pipe = _refusal("a pipe")
    connect_write_pipe = _refusal("a pipe")

    add_reader = _refusal("a file descriptor")
    remove_reader = _refusal("a file descriptor")
    add_writer = _refusal("a file descriptor")
    remove_writer = _refusal("a file descriptor")

    subprocess_exec = _refusal("a process")
    subprocess_shell = _refusal("a process")

    add_signal_handler = _refusal("a signal")
    remove_signal_handler = _refusal("a signal")
