"""Decide from the first bytes of an HTTP/1.1 request whether a thread can handle it without waiting for its client."""

import re
from enum import Enum

BUFFER_BYTES = 32 * 1024
"""The size up to which a request is received before a thread handles it, in bytes."""

CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,19})[ \t]*\r\n", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*chunked", re.IGNORECASE)
EXPECT = re.compile(rb"\r\nexpect:", re.IGNORECASE)
HEAD_END, LAST_CHUNK = b"\r\n\r\n", b"\r\n0\r\n\r\n"
ABSOLUTE_TARGET = re.compile(r"[a-z]+://[^/]*/?", re.IGNORECASE)
PROBES = re.compile(rb"(GET|HEAD) /(health|actuator/health)\b")


class RequestState(Enum):
    """How much of a request has been received."""

    INCOMPLETE = "incomplete"
    COMPLETE = "complete"
    """Its handling does not wait for the client. An invalid request is complete too: the parser rejects it."""
    LARGE = "large"
    """The body is larger than the buffer, or the client waits for permission to send it."""


def request_state(received: bytes | bytearray) -> RequestState:
    """Return the state of the request that begins with these bytes."""
    head_end = received.find(HEAD_END)
    if head_end < 0:
        return RequestState.INCOMPLETE if len(received) < BUFFER_BYTES else RequestState.COMPLETE
    head = bytes(received[: head_end + 2])
    body_start = head_end + len(HEAD_END)
    length = CONTENT_LENGTH.search(head)
    is_chunked = CHUNKED.search(head)
    if not is_chunked and (length is None or int(length[1]) == 0):
        return RequestState.COMPLETE
    if is_chunked:
        is_complete = received.find(LAST_CHUNK, head_end + 2) >= 0
    else:
        is_complete = length is not None and len(received) - body_start >= int(length[1])
    if is_complete:
        return RequestState.COMPLETE
    is_larger = length is not None and body_start + int(length[1]) > BUFFER_BYTES
    if is_larger or len(received) >= BUFFER_BYTES or EXPECT.search(head):
        return RequestState.LARGE
    return RequestState.INCOMPLETE


def is_probe(received: bytes | bytearray) -> bool:
    """Return True for a health check."""
    return PROBES.match(received) is not None


def request_target(received: bytes | bytearray) -> str:
    """Return the target in the first line of a request, as far as it can be read, without scheme and host."""
    words = bytes(received[:BUFFER_BYTES]).lstrip(b"\r\n").partition(b"\r\n")[0].split(b" ")
    target = words[1].decode("latin-1") if len(words) > 1 else ""
    return ABSOLUTE_TARGET.sub("/", target, count=1)
