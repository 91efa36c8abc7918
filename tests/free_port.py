"""Ports for servers of tests."""

import socket
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

LOWEST = 20_000
RANGE_OF_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")
DEFAULT_END = 32_768


def free_port() -> int:
    """Return a port on which nothing listens.

    The system gives none of these ports to a connection, or to a server that leaves the choice to the system. Another
    test could take such a port before the server listens on it.
    """
    while True:
        port = SystemRandom().randrange(LOWEST, _end())
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def _end() -> int:
    """Return the first port that the system gives to connections."""
    with suppress(OSError):
        first = int(RANGE_OF_CONNECTIONS.read_text().split()[0])
        return first if first > LOWEST else DEFAULT_END
    return DEFAULT_END
