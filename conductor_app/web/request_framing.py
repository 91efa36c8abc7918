"""Headers that a client sends more than once, where one value is expected.

In each request with a body, the Go SDK sends its default `Content-Type: application/json` after that of the call.
Gunicorn refuses that, whatever the values. `Host`, `Content-Length` and `Transfer-Encoding` stay refused: they decide
where a request ends and whom it is for, so a proxy that reads another one of them could be deceived.
"""

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
