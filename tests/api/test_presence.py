"""A server can tell whether a client that waits for its answer is still there."""

import socket

import pytest
from django.test import RequestFactory

from conductor_app.api.disconnect_check import SOCKET_KEY, disconnect_check


@pytest.fixture
def ends():
    """A connection: the server's end, and the client's."""
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def asked(ours):
    return disconnect_check(RequestFactory().get("/", **{SOCKET_KEY: ours}))


def test_a_client_that_says_nothing_is_there(ends):
    assert not asked(ends[0])()


def test_a_client_that_has_closed_the_connection_has_hung_up(ends):
    has_left = asked(ends[0])
    ends[1].close()

    assert has_left()


def test_what_a_client_sends_meanwhile_is_left_to_whoever_reads_it(ends):
    ours, theirs = ends
    theirs.sendall(b"GET / HTTP/1.1\r\n")

    assert not asked(ours)()
    assert ours.recv(3) == b"GET"


def test_a_connection_that_is_broken_has_hung_up(ends):
    has_left = asked(ends[0])
    ends[0].close()

    assert has_left()


def test_where_no_connection_is_shown_the_client_is_believed_to_be_there():
    assert not disconnect_check(RequestFactory().get("/"))()
