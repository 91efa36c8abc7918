"""Guard of the network addresses that tasks may connect to, and deadlines of exchanges.

It checks addresses when a socket is created. So it covers redirects, names that resolve differently the second time,
and unusual spellings of addresses.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from http.cookiejar import DefaultCookiePolicy
from importlib.metadata import version
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Protocol, Self, TypeVar

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError

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


class Deadline:
    """Shuts down every connection of one exchange when its time has passed.

    Timeouts of single reads do not suffice, because a server may send single bytes.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.has_passed = seconds, False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        CURRENT.deadline = self
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.deadline = None
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
    """Return True for a public unicast address."""
    if any(address in network for network in NOT_PUBLIC):
        return False
    if isinstance(address, IPv6Address):
        return address.is_global and address in IPV6_UNICAST
    return address.is_global and not address.is_multicast and not address.is_reserved


@lru_cache(maxsize=16)
def parse_networks(networks: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return configured networks as values, cached."""
    return tuple(ip_network(network, strict=False) for network in networks)


class GuardedSession(requests.Session):
    """The connections of one thread. It keeps no cookies between tasks and ignores environment variables."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        for scheme in ("http://", "https://"):
            self.mount(scheme, GuardedAdapter(guard))

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return None. Otherwise requests would read the whole body of a redirect, even with allow_redirects=False."""


class GuardedAdapter(HTTPAdapter):
    """Transport adapter of requests, with connections that the guard checks."""

    def __init__(self, guard: Guard) -> None:
        self._pools = guarded_pools(guard)
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:
        self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools


class GuardedConnection(HTTPConnection):
    """Mixin for connections of all schemes that checks the address before it connects."""

    guard: Guard
    _dns_host: str

    def _new_conn(self) -> socket.socket:
        host = self._dns_host
        try:
            addresses = self.guard.permitted_addresses(host, self.port)
            return watch_socket(self.guard.require_permitted_peer(self._connect_to_any(addresses)))
        except (socket.gaierror, UnicodeError) as error:
            raise NameResolutionError(host, self, socket.gaierror(str(error))) from error
        finally:
            self._dns_host = host

    def _connect_to_any(self, addresses: list[str]) -> socket.socket:
        for address in addresses[:MAX_ADDRESSES]:
            # Only for the socket. The Host header and the certificate need the name, which `_new_conn` restores.
            self._dns_host = address
            try:
                return super()._new_conn()
            except ConnectTimeoutError as error:
                failure = error
        raise failure

    def request(self, *args: Any, **options: Any) -> None:
        """Send a request. A reused connection gets the deadline of this exchange."""
        if self.sock is not None:
            watch_socket(self.sock)
        super().request(*args, **options)


def guarded_pools(guard: Guard) -> dict[str, type[HTTPConnectionPool]]:
    """Return urllib3's pool classes by scheme, with connections that this guard checks."""
    return {
        "http": guard_pool(HTTPConnectionPool, HTTPConnection, guard),
        "https": guard_pool(HTTPSConnectionPool, HTTPSConnection, guard),
    }


def guard_pool(
    pool: type[HTTPConnectionPool], connection: type[HTTPConnection], guard: Guard
) -> type[HTTPConnectionPool]:
    """Return a pool class with connections that this guard checks."""
    guarded_connection = type(
        "GuardedConnection" + connection.__name__, (GuardedConnection, connection), {"guard": guard}
    )
    return type("GuardedConnection" + pool.__name__, (pool,), {"ConnectionCls": guarded_connection})


@cache
def require_effective_guard() -> None:
    """Check once per process that requests and urllib3 ask the guard before they connect.

    The guard overrides private parts of urllib3, which a new version may no longer call.

    Raises:
        GuardIneffective: when a request to a forbidden address is not refused.
    """
    for address in PROBES:
        with GuardedSession(Guard(tuple)) as session:
            try:
                session.get(address, timeout=1)
            except AddressRefused:
                continue
            except Exception as error:
                raise GuardIneffective("requests", "urllib3") from error
        raise GuardIneffective("requests", "urllib3")
