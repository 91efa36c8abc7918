"""Guard of the network addresses that tasks may connect to.

It checks where the socket is created, so that redirects, names that resolve differently the second time, and unusual
spellings of addresses are covered.
"""

import socket
from functools import lru_cache
from http.cookiejar import DefaultCookiePolicy
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError

from conductor_app.workers.socket_deadline import watch_socket

# The last 32 bits of such an address are an IPv4 address that a translator on the way would connect to.
IPV6_TRANSLATION = IPv6Network("64:ff9b::/96")
# All allocated unicast addresses; the rest includes ranges that earlier standards reserved for one site.
IPV6_UNICAST = IPv6Network("2000::/3")
# Each may take a whole connection timeout, and a name server can list hundreds.
MAX_ADDRESSES = 4


class AddressRefused(Exception):
    """The address belongs to a network that tasks may not reach."""

    def __init__(self, address):
        super().__init__(address)
        self.address = address


class Guard:
    """Lets connections pass to public addresses, and to the networks that the operator has allowed."""

    def __init__(self, allowed_networks):
        """`allowed_networks`: a function that returns networks such as "10.0.0.0/8", called for each connection."""
        self._allowed_networks = allowed_networks

    def permits(self, address):
        """Return True if a task may connect to this numeric address."""
        address = embedded_ipv4(ip_address(address))
        return is_public(address) or any(
            address in network for network in parse_networks(tuple(self._allowed_networks()))
        )

    def permitted_addresses(self, host, port):
        """Return the permitted addresses of a host in the resolver's order.

        Raises:
            AddressRefused: when there is none.
        """
        found = [info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        permitted = [address for address in dict.fromkeys(found) if self.permits(address)]
        if not permitted:
            raise AddressRefused(found[0])
        return permitted

    def require_permitted_peer(self, sock):
        """Check the address of a connected socket.

        Raises:
            AddressRefused: when it is not permitted
            the socket is closed before a byte was sent.
        """
        peer = sock.getpeername()[0]
        if self.permits(peer):
            return sock
        sock.close()
        raise AddressRefused(peer)


def embedded_ipv4(address):
    """Return the IPv4 address inside an IPv6 address, or None."""
    if not isinstance(address, IPv6Address):
        return address
    if address in IPV6_TRANSLATION:
        return ip_address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address):
    """Return True for a public unicast address."""
    if isinstance(address, IPv6Address):
        return address.is_global and address in IPV6_UNICAST
    return address.is_global and not address.is_multicast and not address.is_reserved


@lru_cache(maxsize=16)
def parse_networks(networks):
    """Return the networks in the settings."""
    return tuple(ip_network(network, strict=False) for network in networks)


class GuardedSession(requests.Session):
    """One thread's connections. It keeps no cookies between tasks and obeys no environment variables."""

    def __init__(self, guard):
        super().__init__()
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        for scheme in ("http://", "https://"):
            self.mount(scheme, GuardedAdapter(guard))

    def get_redirect_target(self, resp):
        """Return None: requests would read the whole body of a redirect, even when told not to follow it."""


class GuardedAdapter(HTTPAdapter):
    """requests' transport over connections that the guard has seen."""

    def __init__(self, guard):
        self._pools = guarded_pools(guard)
        super().__init__()

    def init_poolmanager(self, connections, maxsize, block=False, **options):
        self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools


class GuardedConnection:
    """Checks of every connection of a task before it opens, for all schemes."""

    guard: Guard

    def _new_conn(self):
        host = self._dns_host
        try:
            addresses = self.guard.permitted_addresses(host, self.port)
            return watch_socket(self.guard.require_permitted_peer(self._connect_to_any(addresses)))
        except (socket.gaierror, UnicodeError) as error:
            raise NameResolutionError(host, self, error) from error
        finally:
            self._dns_host = host

    def _connect_to_any(self, addresses):
        for address in addresses[:MAX_ADDRESSES]:
            # Only for the socket: the host header and the certificate are about the name, put back afterwards.
            self._dns_host = address
            try:
                return super()._new_conn()
            except ConnectTimeoutError as error:
                failure = error
        raise failure

    def request(self, *args, **options):
        """Send a request. A kept connection gets the deadline of this exchange."""
        if self.sock is not None:
            watch_socket(self.sock)
        return super().request(*args, **options)


def guarded_pools(guard):
    """Return urllib3's pool classes by scheme, with connections that this guard checks."""
    return {
        "http": guard_pool(HTTPConnectionPool, HTTPConnection, guard),
        "https": guard_pool(HTTPSConnectionPool, HTTPSConnection, guard),
    }


def guard_pool(pool, connection, guard):
    """Return a pool class with connections that this guard checks."""
    guarded_connection = type(
        "GuardedConnection" + connection.__name__, (GuardedConnection, connection), {"guard": guard}
    )
    return type("GuardedConnection" + pool.__name__, (pool,), {"ConnectionCls": guarded_connection})
