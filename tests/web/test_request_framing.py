"""The state of a request by its first bytes."""

import pytest

from conductor_app.web.request_framing import BUFFER_BYTES, RequestState, is_probe, request_state

HEAD = b"POST /api/tasks HTTP/1.1\r\nHost: a\r\n"
INCOMPLETE, COMPLETE, LARGE = RequestState.INCOMPLETE, RequestState.COMPLETE, RequestState.LARGE
CASES = {
    "nothing": (b"", INCOMPLETE),
    "half a head": (HEAD, INCOMPLETE),
    "a head without a body": (HEAD + b"\r\n", COMPLETE),
    "an empty body": (HEAD + b"Content-Length: 0\r\n\r\n", COMPLETE),
    "half a body": (HEAD + b"content-length: 4\r\n\r\n{}", INCOMPLETE),
    "a body": (HEAD + b"CONTENT-LENGTH:4\r\n\r\n{  }", COMPLETE),
    "a body and the next request": (HEAD + b"Content-Length: 2\r\n\r\n{}GET", COMPLETE),
    "a large body": (HEAD + b"Content-Length: 1000000\r\n\r\n{", LARGE),
    "a client that waits for permission": (HEAD + b"Content-Length: 4\r\nExpect: 100-continue\r\n\r\n", LARGE),
    "chunks without an end": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", INCOMPLETE),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", COMPLETE),
    "no chunks": (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", COMPLETE),
    "many chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 10_000, LARGE),
    "an endless head, which the parser rejects": (b"x" * BUFFER_BYTES, COMPLETE),
    "a length that is no number, which the parser rejects": (HEAD + b"Content-Length: x\r\n\r\n", COMPLETE),
}


@pytest.mark.parametrize("case", CASES)
def test_the_state_of_a_request(case):
    received, expected = CASES[case]

    assert request_state(received) is expected


def test_health_checks_are_recognized():
    assert is_probe(b"GET /health HTTP/1.1\r\n\r\n")
    assert is_probe(b"GET /health/live HTTP/1.1\r\n\r\n")
    assert not is_probe(b"GET /healthy HTTP/1.1\r\n\r\n")
    assert not is_probe(b"POST /api/workflow HTTP/1.1\r\n\r\n")
