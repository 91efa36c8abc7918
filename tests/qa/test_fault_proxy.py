"""The proxy of the tests passes, cuts, refuses, holds back and slows down connections."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from time import monotonic

import pytest

from qa.faults.proxy import Proxy, ProxyThread


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Return a proxy to a server that returns what it receives."""
    listener = socket.create_server(("127.0.0.1", 0))
    Thread(target=echo_forever, args=(listener,), daemon=True).start()
    thread = ProxyThread()
    yield thread.open(listener.getsockname()[1])
    thread.close()
    listener.close()


def echo_forever(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def echo(connection: socket.socket) -> None:
    with connection, suppress(ConnectionError):
        while data := connection.recv(100):
            connection.sendall(data)


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=5)


def exchange(connection: socket.socket) -> bytes:
    connection.sendall(b"ping")
    return connection.recv(100)


def test_a_healthy_proxy_passes_data(proxy):
    with connect(proxy) as connection:
        assert exchange(connection) == b"ping"


def test_a_cut_resets_connections_and_accepts_new_ones(proxy):
    connection = connect(proxy)
    exchange(connection)
    proxy.cut()

    with pytest.raises(ConnectionResetError):
        connection.recv(100)
    assert exchange(connect(proxy)) == b"ping"


def test_refused_connections_are_reset_until_the_proxy_is_healed(proxy):
    proxy.refuse()
    with pytest.raises(ConnectionResetError):
        exchange(connect(proxy))
    proxy.heal()

    assert exchange(connect(proxy)) == b"ping"


def test_data_that_was_held_back_arrives_when_the_proxy_is_healed(proxy):
    connection = connect(proxy)
    exchange(connection)
    proxy.hold_back()
    connection.sendall(b"late")
    connection.settimeout(0.1)
    with pytest.raises(TimeoutError):
        connection.recv(100)
    connection.settimeout(5)
    proxy.heal()

    assert connection.recv(100) == b"late"


def test_a_slow_proxy_delays_each_chunk(proxy):
    connection = connect(proxy)
    proxy.slow_down(0.05)
    began_at = monotonic()
    exchange(connection)

    assert monotonic() - began_at >= 0.1
