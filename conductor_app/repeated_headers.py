"""Headers that a client sends more than once, where one value is expected.

In each request with a body, the Go SDK sends its default `Content-Type: application/json` after that of the call.
Gunicorn refuses that, whatever the values. `Host`, `Content-Length` and `Transfer-Encoding` stay refused: they decide
where a request ends and whom it is for, so a proxy that reads another one of them could be deceived.
"""

from typing import Any

from gunicorn.http.errors import InvalidHeader
from gunicorn.http.message import Request

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


class ContradictoryHeader(InvalidHeader):
    """Raised when a header is repeated with another value."""

    def __str__(self) -> str:
        name = "-".join(part.capitalize() for part in self.hdr.split("-"))
        return f"The header {name} is sent more than once, with different values. Send it once."


class RequestOfClient(Request):
    """A request that may repeat a header with an equal value."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._single_values: dict[str, str] = {}
        super().__init__(*args, **kwargs)

    def _apply_header_policy(
        self, name: str, value: str, scheme_state: list[bool], seen: set[str], *rest: Any, from_trailer: bool = False
    ) -> Any:
        if name in SINGLE_VALUED and not from_trailer:
            first = self._single_values.setdefault(name, value)
            if first != value and not (name == "CONTENT-TYPE" and self._is_same_type(first, value)):
                raise ContradictoryHeader(name, req=self)
            if name in seen:
                return None
            seen.add(name)
            return (name, value)
        if name == "USER-AGENT":
            self._single_values[name] = value
        return super()._apply_header_policy(name, value, scheme_state, seen, *rest, from_trailer=from_trailer)

    def _is_same_type(self, first: str, value: str) -> bool:
        """Return True for the same content type with its media type in another case, and for the default of Go."""
        return _normalize_type(first) == _normalize_type(value) or self._is_default_of_go_sdk(first, value)

    def _is_default_of_go_sdk(self, first: str, value: str) -> bool:
        """Return True for the default content type after that of the call. Go sends the user agent before both."""
        user_agent = self._single_values.get("USER-AGENT", "")
        return user_agent.startswith(GO_USER_AGENT) and value == GO_DEFAULT_TYPE and first in GO_TYPES_OF_CALLS


def _normalize_type(value: str) -> tuple[str, str]:
    """Return the media type in lower case, and the parameters, such as a boundary, as they are."""
    media_type, _, parameters = value.partition(";")
    return media_type.strip().lower(), parameters.strip()
