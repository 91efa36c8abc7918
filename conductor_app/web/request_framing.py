"""The first bytes of an HTTP/1.1 request: whether a thread can handle it at once, and headers that are sent twice.

In each request with a body, the Go SDK sends its default `Content-Type: application/json` after that of the call.
Gunicorn refuses that, whatever the values. `Host`, `Content-Length` and `Transfer-Encoding` stay refused: they decide
where a request ends and whom it is for, so a proxy that reads another one of them could be deceived.
"""

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


SINGLE_VALUED = ("CONTENT-TYPE", "AUTHORIZATION", "X-AUTHORIZATION")
"""Headers that count once if their values are equal, and are refused if they differ."""

GO_USER_AGENT, GO_DEFAULT_TYPE = "Go-http-client/", "application/json"
GO_TYPES_OF_CALLS = (
    "application/json; charset=utf-8",
    "text/plain",
    "text/plain; charset=utf-8",
    "application/octet-stream",
)
"""Content types that the Go SDK sends before its default: of signals, variables, texts and uploads. They count."""


class ContradictoryHeader(Exception):
    """Raised when a header is repeated with another value."""

    def __init__(self, name: str) -> None:
        title = "-".join(part.capitalize() for part in name.split("-"))
        super().__init__(f"The header {title} is sent more than once, with different values. Send it once.")


class SingleValues:
    """The values of one request's headers that count once. Names are in upper case."""

    __slots__ = ("_values", "user_agent")

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self.user_agent = ""

    def add(self, name: str, value: str) -> bool:
        """Add a header of the request. Returns True for the first value, which counts.

        Raises:
            ContradictoryHeader: when it is repeated with another value.
        """
        first = self._values.get(name)
        if first is None:
            self._values[name] = value
            return True
        if first != value and not (name == "CONTENT-TYPE" and self._is_same_type(first, value)):
            raise ContradictoryHeader(name)
        return False

    def _is_same_type(self, first: str, value: str) -> bool:
        """Return True for the same content type with its media type in another case, and for the default of Go."""
        return _normalize_type(first) == _normalize_type(value) or self._is_default_of_go_sdk(first, value)

    def _is_default_of_go_sdk(self, first: str, value: str) -> bool:
        """Return True for the default content type after that of the call. Go sends the user agent before both."""
        return self.user_agent.startswith(GO_USER_AGENT) and value == GO_DEFAULT_TYPE and first in GO_TYPES_OF_CALLS


def _normalize_type(value: str) -> tuple[str, str]:
    """Return the media type in lower case, and the parameters, such as a boundary, as they are."""
    media_type, _, parameters = value.partition(";")
    return media_type.strip().lower(), parameters.strip()
