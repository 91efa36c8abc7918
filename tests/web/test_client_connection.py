"""Detection of clients that disconnect while they wait for a reply."""

import socket

import pytest
from django.test import RequestFactory

from conductor_app.web.waiting_requests import SOCKET_KEY, disconnect_check


@pytest.fixture(params=[None, 30], ids=["blocking", "with a timeout"])
def ends(request):
    """Return both ends of a connection: the server's, with or without a timeout, and the client's."""
    ours, theirs = socket.socketpair()
    ours.settimeout(request.param)
    yield ours, theirs
    ours.close()
    theirs.close()


def asked(ours):
    return disconnect_check(RequestFactory().get("/", **{SOCKET_KEY: ours}))


def test_a_silent_client_is_connected(ends):
    assert not asked(ends[0])()


def test_a_client_that_has_closed_the_connection_has_hung_up(ends):
    has_left = asked(ends[0])
    ends[1].close()

    assert has_left()


def test_data_that_a_waiting_client_sends_is_not_consumed(ends):
    ours, theirs = ends
    theirs.sendall(b"GET / HTTP/1.1\r\n")

    assert not asked(ours)()
    assert ours.recv(3) == b"GET"


def test_a_connection_that_is_broken_has_hung_up(ends):
    has_left = asked(ends[0])
    ends[0].close()

    assert has_left()


def test_without_a_socket_the_client_counts_as_connected():
    assert not disconnect_check(RequestFactory().get("/"))()
