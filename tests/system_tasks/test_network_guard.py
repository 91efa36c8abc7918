"""Addresses that a task may connect to, and protection against misbehaving servers."""

import socket
import threading
from contextlib import contextmanager

import pytest

from conductor_app.system_tasks.http import Http, HttpLimits
from conductor_app.system_tasks.network_guard import AddressRefused, Deadline, Guard, watch_socket

NOT_PUBLIC = {
    "loopback": "127.0.0.1",
    "the far end of loopback": "127.255.255.254",
    "private 10/8": "10.1.2.3",
    "private 172.16/12": "172.31.255.255",
    "private 192.168/16": "192.168.0.1",
    "link-local, where clouds keep credentials": "169.254.169.254",
    "shared by carriers": "100.64.0.1",
    "unspecified": "0.0.0.0",
    "this network": "0.1.2.3",
    "multicast": "224.0.0.1",
    "public-looking multicast": "239.255.255.250",
    "broadcast": "255.255.255.255",
    "reserved": "240.0.0.1",
    "documentation": "192.0.2.1",
    "benchmarking": "198.18.0.1",
    "IPv6 loopback": "::1",
    "IPv6 unspecified": "::",
    "IPv6 link-local": "fe80::1",
    "IPv6 link-local with its interface": "fe80::1%lo",
    "IPv6 site-local": "fec0::1",
    "IPv6 unique local": "fd00::1",
    "IPv6 multicast": "ff02::1",
    "IPv6 multicast of the whole world": "ff0e::1",
    "IPv6 documentation": "2001:db8::1",
    "loopback mapped into IPv6": "::ffff:127.0.0.1",
    "private mapped into IPv6": "::ffff:10.0.0.1",
    "loopback behind 6to4": "2002:7f00:1::",
    "private behind a translator": "64:ff9b::10.0.0.1",
    "metadata behind a translator": "64:ff9b::a9fe:a9fe",
    "metadata of AWS in IPv6": "fd00:ec2::254",
    "credentials of containers of AWS": "169.254.170.2",
    "metadata of Google in IPv6": "fd20:ce::254",
    "metadata of Alibaba": "100.100.100.200",
    "metadata of Oracle": "192.0.0.192",
    "Azure's virtual host": "168.63.129.16",
    "protocols of IETF": "192.0.0.9",
    "protocols of IETF in IPv6": "2001:1::1",
    "identifiers of hosts": "2001:20::1",
    "identifiers of drones": "2001:30::1",
    "discarded": "100::1",
    "a translator of the local network": "64:ff9b:1::1",
    "segments of routers": "5f00::1",
    "relays of 6to4": "192.88.99.1",
    "IPv6 documentation of RFC 9637": "3fff::1",
    "Teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
}
PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")
SPELLINGS_OF_LOOPBACK = ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "::ffff:127.0.0.1")


def guard(*allowed):
    return Guard(lambda: allowed)


@pytest.mark.parametrize("address", NOT_PUBLIC.values(), ids=NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(address):
    assert not guard().permits(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_permitted(address):
    assert guard().permits(address)


def test_an_allowed_network_is_permitted_and_its_neighbour_is_not():
    ours = guard("10.1.0.0/16", "fd00:1::/32")

    assert [ours.permits(address) for address in ("10.1.2.3", "fd00:1::5", "::ffff:10.1.2.3")] == [True] * 3
    assert [ours.permits(address) for address in ("10.2.0.1", "fd00:2::5", "127.0.0.1")] == [False] * 3


@pytest.mark.parametrize("host", SPELLINGS_OF_LOOPBACK)
def test_every_spelling_of_a_forbidden_address_is_refused_before_anyone_connects(host):
    with pytest.raises(AddressRefused):
        guard().permitted_addresses(host, 80)


def test_only_permitted_addresses_of_a_host_are_tried(monkeypatch):
    answers = [(2, 1, 6, "", (address, 80)) for address in ("10.0.0.1", "1.1.1.1", "127.0.0.1", "1.1.1.1", "8.8.8.8")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: answers)

    assert guard().permitted_addresses("mixed.example", 80) == ["1.1.1.1", "8.8.8.8"]


def test_a_connection_that_reached_a_forbidden_peer_all_the_same_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        sock = socket.create_connection(server.getsockname())

        with pytest.raises(AddressRefused, match=r"127\.0\.0\.1"):
            guard().require_permitted_peer(sock)

        assert sock.fileno() == -1
        accepted, _ = server.accept()
        with accepted:
            assert accepted.recv(1) == b""


def test_a_deadline_interrupts_a_blocked_read():
    near, far = socket.socketpair()

    with near, far, Deadline(0.05) as deadline:
        assert watch_socket(near).recv(1) == b""

    assert deadline.has_passed


def test_a_met_deadline_does_not_affect_the_connection():
    near, far = socket.socketpair()

    with near, far:
        with Deadline(0.05) as deadline:
            watch_socket(near)
        deadline._timer.join()
        far.sendall(b"x")

        assert near.recv(1) == b"x"


def test_a_connection_made_after_the_deadline_is_of_no_use():
    near, far = socket.socketpair()

    with near, far, Deadline(0) as deadline:
        deadline._timer.join()

        assert watch_socket(near).recv(1) == b""


def test_a_deadline_is_no_business_of_other_threads():
    near, far = socket.socketpair()

    with near, far, Deadline(0.05) as deadline:
        other = threading.Thread(target=watch_socket, args=(near,))
        other.start()
        other.join()
        deadline._timer.join()
        far.sendall(b"x")

        assert near.recv(1) == b"x"


@contextmanager
def raw_server(talk):
    """Return a function that starts a server with the behavior `talk` and returns its address."""
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve():
        sock, _ = listener.accept()
        with sock, listener:
            sock.recv(65536)
            talk(sock, over)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join(2)


def drip(head, drop=b"x"):
    """Send the head at once, then a chunk every few milliseconds until the client disconnects."""

    def talk(sock, over):
        sock.sendall(head)
        while not over.wait(0.01):
            try:
                sock.sendall(drop)
            except OSError:
                return

    return talk


def reason_of(uri, total_seconds=60, **rest):
    """Return the reason for the failed request as displayed."""
    http = Http(lambda: HttpLimits(("127.0.0.0/8",), total_seconds))
    outcome = http.perform({"uri": uri, "method": "GET", **rest})
    assert outcome.status == "FAILED"
    return outcome.reason


DRIPPING = {
    "in its headers": b"HTTP/1.1 200 OK\r\nX-A: ",
    "in a body without a length": b"HTTP/1.1 200 OK\r\n\r\n",
    "in a body of a length": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
    "in its status line": b"HTTP/1.1 200 ",
}


@pytest.mark.parametrize("head", DRIPPING.values(), ids=DRIPPING)
def test_a_server_that_drips_does_not_outlive_the_total_limit(head):
    with raw_server(drip(head)) as address:
        reason = reason_of(f"http://{address}/?a=secret", total_seconds=0.2)

    assert reason == f"Failed to invoke HTTP task due to: the exchange took longer than 0.2 s (GET http://{address}/)"


def test_a_server_that_drips_its_tls_handshake_does_not_outlive_the_total_limit():
    with raw_server(drip(b"\x16\x03\x03\x40\x00", b"\x02")) as address:
        assert "longer than 0.2 s" in reason_of(f"https://{address}/", total_seconds=0.2, readTimeOut=0)


def test_a_silent_server_fails_after_the_read_timeout():
    with raw_server(lambda _, over: over.wait()) as address:
        assert "sent no data within readTimeOut" in reason_of(f"http://{address}/", readTimeOut="50")


BROKEN_OFF = {
    "nothing": b"",
    "no http": b"nonsense\r\n\r\n",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
}


@pytest.mark.parametrize("said", BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_a_truncated_response_fails_with_a_clear_reason(said):
    with raw_server(lambda sock, _: sock.sendall(said)) as address:
        assert "the connection was closed" in reason_of(f"http://{address}/")


def test_a_server_without_tls_fails_with_a_clear_reason():
    with raw_server(lambda sock, _: sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as address:
        assert "TLS failed" in reason_of(f"https://{address}/")


def test_a_refused_connection_fails_with_a_clear_reason():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"

    assert reason_of(f"http://{address}/").endswith(f"due to: Connection refused (GET http://{address}/)")


def test_an_unknown_host_name_fails_with_a_clear_reason():
    assert "name cannot be resolved" in reason_of("http://nobody.invalid/")
