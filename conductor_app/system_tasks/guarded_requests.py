"""The network guard for requests and urllib3: sessions that connect only to permitted addresses."""

import socket
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError

from .network_guard import Guard, require_refusal, watch_socket


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
            return self.guard.connect(host, self.port, self._connect_to, _itself, (ConnectTimeoutError,))
        except (socket.gaierror, UnicodeError) as error:
            raise NameResolutionError(host, self, socket.gaierror(str(error))) from error
        finally:
            self._dns_host = host

    def _connect_to(self, address: str) -> socket.socket:
        # Only for the socket. The Host header and the certificate need the name, which `_new_conn` restores.
        self._dns_host = address
        return super()._new_conn()

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


def _itself(sock: socket.socket) -> socket.socket:
    return sock


@cache
def require_effective_guard() -> None:
    """Check once per process that requests and urllib3 ask the guard before they connect."""
    with GuardedSession(Guard(tuple)) as session:
        require_refusal(lambda address: session.get(address, timeout=1), "requests", "urllib3")
