"""What a simulated loop refuses: everything outside the program, which no seed decides.

The timing of a thread, a process, a socket or a signal cannot be replayed, so a single one makes a
run irreproducible. The runtime keeps them behind ports, and a simulation models the ports.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, NoReturn


class NotInSimulation(RuntimeError):
    """Code under test bypassed its ports and asked for something real."""

    def __init__(self, reached_for: str, why: str) -> None:
        self.reached_for = reached_for
        super().__init__(f"{reached_for} is not in the simulation: {why}")


def belongs_behind_a_port(what: str) -> str:
    """Why the simulation has no such thing."""
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
    """Typed as Any, because a refusal replaces methods of every signature."""
    return _Refusal(what)


class SealedLoop(asyncio.AbstractEventLoop):
    """The part of an event loop that deals with the operating system; all of it is refused."""

    def __init__(self) -> None:
        # Recorded, because code under test may catch what is raised here: a runtime turns whatever
        # an agent raises into an outcome, and would report NotInSimulation as an ordinary failure.
        self.reached_for: list[str] = []

    def refuse(self, reached_for: str, why: str) -> NoReturn:
        """Raise NotInSimulation, and record it."""
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
