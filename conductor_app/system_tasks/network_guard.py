"""Guard of the network addresses that tasks may connect to, and deadlines of exchanges.

This module has the rule: a name is resolved, each of its addresses is checked, and the connection is made to a checked
address. So the rule covers redirects, names that resolve differently the second time, and unusual spellings of
addresses. Adapters apply it where a library creates a socket, such as `guarded_requests.py` for requests and urllib3.
Each registers a test of itself, which runs when a process starts, because the adapters replace parts of the libraries
that a new version may no longer call.
"""

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol, Self, TypeVar

from ..settings import conf
from ..utils import process_state
from ..utils.process_state import Wiring
from .cancellation import current_cancellation

CURRENT = threading.local()
# The last 32 bits of such an address are the IPv4 address that a NAT64 gateway would connect to.
IPV6_TRANSLATION = IPv6Network("64:ff9b::/96")
# All allocated unicast addresses. The rest includes site-local ranges of earlier standards.
IPV6_UNICAST = IPv6Network("2000::/3")
# Addresses that the registries list as public, but that reach infrastructure: Azure's virtual host, relays of 6to4;
# and networks of protocols and for documentation, which versions of `ipaddress` know only in part. One cloud keeps
# credentials at 192.0.0.192.
NOT_PUBLIC: tuple[IPv4Network | IPv6Network, ...] = (
    IPv4Network("168.63.129.16/32"),
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("2001::/23"),
    IPv6Network("3fff::/20"),
)
# Each address may take a whole connection timeout, and a name server can return hundreds.
MAX_ADDRESSES = 4
PROBES = ("http://127.0.0.1:9/", "https://127.0.0.1:9/")
"""Addresses that no guard permits by default. A request that the guard refuses uses no network."""


class HasDescriptor(Protocol):
    """A socket, or a connection on one."""

    def fileno(self) -> int: ...


WatchedT = TypeVar("WatchedT", bound=HasDescriptor)
ConnectionT = TypeVar("ConnectionT")


class Deadline:
    """Shuts down every connection of one exchange when its time has passed, or its task is canceled.

    Timeouts of single reads do not suffice, because a server may send single bytes.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.has_passed = seconds, False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True
        self._cancellation = current_cancellation().stopping_by(self._pass)

    def __enter__(self) -> Self:
        CURRENT.deadline = self
        self._timer.start()
        self._cancellation.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.deadline = None
        self._cancellation.__exit__(None, None, None)
        self._timer.cancel()
        with self._lock:
            while self._sockets:
                self._sockets.pop().close()

    def watch(self, sock: HasDescriptor) -> None:
        """Watch a connection through a copy of its descriptor, because TLS and the response take over the original."""
        with self._lock:
            self._sockets.append(socket.socket(fileno=os.dup(sock.fileno())))
            if self.has_passed:
                shut_down_socket(self._sockets[-1])

    def _pass(self) -> None:
        with self._lock:
            self.has_passed = True
            for sock in self._sockets:
                shut_down_socket(sock)


def watch_socket(sock: WatchedT) -> WatchedT:
    """Register the socket with the deadline of this thread's exchange, and return it."""
    deadline = getattr(CURRENT, "deadline", None)
    if deadline:
        deadline.watch(sock)
    return sock


def shut_down_socket(sock: socket.socket) -> None:
    """Shut down the socket, which wakes the threads that read from it or write to it."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


class AddressRefused(Exception):
    """The address belongs to a network that tasks may not reach."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


class GuardIneffective(Exception):
    """The installed version of an HTTP library connects without asking the guard."""

    def __init__(self, *packages: str) -> None:
        versions = " and ".join(f"{package} {version(package)}" for package in packages)
        super().__init__(
            f"The network guard has no effect with {versions}, so no request is sent. "
            "Install the versions of requirements/server.lock."
        )


def require_refusal(send: Callable[[str], object], *packages: str) -> None:
    """Check that a library asks the guard before it connects.

    `send`: sends a request to an address with a guard that permits no network. `packages`: the library and what it
    uses, for the error.

    Raises:
        GuardIneffective: when a request to a forbidden address is not refused.
    """
    for address in PROBES:
        try:
            send(address)
        except AddressRefused:
            continue
        except Exception as error:
            raise GuardIneffective(*packages) from error
        raise GuardIneffective(*packages)


_self_tests: Wiring[tuple[Callable[[], None], ...]] = process_state.wiring(())


def register_self_test(test: Callable[[], None]) -> None:
    """Let each process of the server run a test of an adapter when it starts.

    `test`: raises GuardIneffective when the library of the adapter connects without asking the guard.
    """
    _self_tests.value = (*_self_tests.value, test)


def require_network_guards() -> None:
    """Check that each HTTP library asks the guard before it connects. Otherwise, end the process.

    Raises:
        SystemExit: when a library connects without asking. The message names its version.
    """
    try:
        for test in _self_tests.value:
            test()
    except GuardIneffective as error:
        sys.exit(f"conductor-app: {error}")


class Guard:
    """Permits connections to public addresses, and to the networks that the operator allows."""

    def __init__(self, allowed_networks: Callable[[], Sequence[str]]) -> None:
        """`allowed_networks`: returns networks such as "10.0.0.0/8". It is called for each connection."""
        self._allowed_networks = allowed_networks

    def permits(self, address: str) -> bool:
        """Return True if a task may connect to this numeric address."""
        target = embedded_ipv4(ip_address(address))
        return is_public(target) or any(
            target in network for network in parse_networks(tuple(self._allowed_networks()))
        )

    def permitted_addresses(self, host: str, port: int) -> list[str]:
        """Return the permitted addresses of a host in the resolver's order.

        Raises:
            AddressRefused: when no address is permitted.
        """
        resolved = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        permitted = [address for address in dict.fromkeys(resolved) if self.permits(address)]
        if not permitted:
            raise AddressRefused(resolved[0])
        return permitted

    def connect(
        self,
        host: str,
        port: int,
        open_connection: Callable[[str], ConnectionT],
        socket_of: Callable[[ConnectionT], socket.socket],
        failures: tuple[type[Exception], ...],
    ) -> ConnectionT:
        """Return a connection to the first permitted address of a host that accepts it.

        `open_connection`: connects to one numeric address. `failures`: its errors, after which the next one is tried.

        Raises:
            AddressRefused: when no address is permitted, or the peer is another one.
            OSError: when the name cannot be resolved.
        """
        *others, last = self.permitted_addresses(host, port)[:MAX_ADDRESSES]
        for address in others:
            with contextlib.suppress(*failures):
                return self._checked(open_connection(address), socket_of)
        return self._checked(open_connection(last), socket_of)

    def _checked(self, connection: ConnectionT, socket_of: Callable[[ConnectionT], socket.socket]) -> ConnectionT:
        watch_socket(self.require_permitted_peer(socket_of(connection)))
        return connection

    def require_permitted_peer(self, sock: socket.socket) -> socket.socket:
        """Check the peer of a connected socket, and return the socket.

        Raises:
            AddressRefused: when the peer is not permitted. The socket is closed before a byte is sent.
        """
        peer = sock.getpeername()[0]
        if self.permits(peer):
            return sock
        sock.close()
        raise AddressRefused(peer)


def embedded_ipv4(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address inside an IPv6 address, or the address itself if it contains none."""
    if not isinstance(address, IPv6Address):
        return address
    if address in IPV6_TRANSLATION:
        return ip_address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address: IPv4Address | IPv6Address) -> bool:
    if any(address in network for network in NOT_PUBLIC):
        return False
    if isinstance(address, IPv6Address):
        return address.is_global and address in IPV6_UNICAST
    return address.is_global and not address.is_multicast and not address.is_reserved


@lru_cache(maxsize=16)
def parse_networks(networks: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return configured networks as values, cached."""
    return tuple(ip_network(network, strict=False) for network in networks)


def configured_guard() -> Guard:
    """Return the guard of this server's settings."""
    return Guard(lambda: conf.http_task_allowed_networks)
