"""Headers that a client sends more than once, where one value is expected.

The Go SDK sends `Content-Type: application/json` twice in each request with a body. Gunicorn refuses that, whatever the
values. `Host`, `Content-Length` and `Transfer-Encoding` stay refused: they decide where a request ends and whom it is
for, so a proxy that reads another one of them could be deceived.
"""

from typing import Any

from gunicorn.http.errors import InvalidHeader
from gunicorn.http.message import Request

SINGLE_VALUED = ("CONTENT-TYPE", "AUTHORIZATION", "X-AUTHORIZATION")
"""Headers that count once if their values are equal, and are refused if they differ."""


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
            if self._single_values.setdefault(name, value) != value:
                raise ContradictoryHeader(name, req=self)
            if name in seen:
                return None
            seen.add(name)
            return (name, value)
        return super()._apply_header_policy(name, value, scheme_state, seen, *rest, from_trailer=from_trailer)
