"""Parse the request in the input of an HTTP task."""

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from requests.structures import CaseInsensitiveDict

from conductor_app.core.expressions import quote_value

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
DEFAULT_TIMEOUT = 3000
# Headers of the transport. If tasks could set them, they could smuggle a second request into the connection.
TRANSPORT_HEADERS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
PRIVATE_HEADERS = frozenset(("authorization", "cookie", "proxy-authorization"))
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class InvalidHttpRequest(Exception):
    """The input of the task does not describe a valid request."""


@dataclass(frozen=True)
class Request:
    """The request of an HTTP task."""

    method: str
    uri: str
    headers: CaseInsensitiveDict
    body: bytes | None
    timeouts: tuple[float, float]
    is_async: bool

    def __str__(self) -> str:
        return f"{self.method} {redact_uri(self.uri)}"

    def redirect_to(self, status: int, location: str) -> "Request":
        """Return the request that follows a redirect. Another origin gets no credentials.

        Raises:
            InvalidHttpRequest: when the target is not an HTTP address.
        """
        uri, headers = urljoin(self.uri, location), self.headers.copy()
        if not is_http_uri(uri):
            raise InvalidHttpRequest("the server redirected to an address that does not begin with http:// or https://")
        if origin_of(uri) != origin_of(self.uri):
            headers = drop_headers(headers, PRIVATE_HEADERS)
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            method = "HEAD" if self.method == "HEAD" else "GET"
            return replace(self, uri=uri, headers=drop_headers(headers, ("content-type",)), method=method, body=None)
        return replace(self, uri=uri, headers=headers)


def parse_request(inputs: dict[str, Any]) -> Request:
    """Return the request in a task's input: under `http_request`, or the input itself.

    Raises:
        InvalidHttpRequest: when it is invalid.
    """
    fields = inputs.get("http_request")
    fields = inputs if fields is None else fields
    if not isinstance(fields, dict):
        raise InvalidHttpRequest("http_request must be an object")
    headers = parse_headers(fields)
    return Request(
        method=parse_method(fields),
        uri=parse_uri(fields),
        headers=headers,
        body=encode_body(fields, headers.get("content-type", "")),
        timeouts=(parse_timeout(fields, "connectionTimeOut"), parse_timeout(fields, "readTimeOut")),
        is_async=any(str(each.get("asyncComplete")).lower() == "true" for each in (fields, inputs)),
    )


def parse_method(fields: dict[str, Any]) -> str:
    """Return the method. It is required.

    Raises:
        InvalidHttpRequest: when it is missing or unknown.
    """
    method = fields.get("method")
    if not method:
        raise InvalidHttpRequest("method is missing")
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise InvalidHttpRequest(f"method must be one of {', '.join(METHODS)}")
    return method.upper()


def parse_uri(fields: dict[str, Any]) -> str:
    """Return the absolute address.

    Raises:
        InvalidHttpRequest: when it is missing or invalid.
    """
    uri = fields.get("uri")
    if not uri:
        raise InvalidHttpRequest("uri is missing")
    if not isinstance(uri, str) or not is_http_uri(uri.strip()):
        raise InvalidHttpRequest("uri must begin with http:// or https:// and name a host")
    return uri.strip()


def parse_headers(fields: dict[str, Any]) -> CaseInsensitiveDict:
    """Return all headers. Those of the task take precedence over `accept` and `contentType`.

    Raises:
        InvalidHttpRequest: when `headers` is not an object, or a header is invalid.
    """
    headers_in_input = fields.get("headers") or {}
    if not isinstance(headers_in_input, dict):
        raise InvalidHttpRequest("headers must be an object")
    json_type = "application/json"
    headers = CaseInsensitiveDict({"Accept": fields.get("accept") or json_type})
    headers["Content-Type"] = fields.get("contentType") or json_type
    headers.update({name: value for name, value in headers_in_input.items() if value is not None})
    return CaseInsensitiveDict(
        {
            validate_header_name(name): validate_header_value(name, value)
            for name, value in drop_headers(headers, TRANSPORT_HEADERS).items()
        }
    )


def validate_header_name(name: str) -> str:
    """Return the name of a header.

    Raises:
        InvalidHttpRequest: when it is invalid.
    """
    if not HEADER_NAME.fullmatch(name):
        raise InvalidHttpRequest(f"{quote_value(name)} is not a valid header name")
    return name


def validate_header_value(name: str, value: Any) -> str:
    """Return the value of a header as text. Line breaks are refused, because they would start another header.

    Raises:
        InvalidHttpRequest: when it is invalid.
    """
    text = ", ".join(header_texts(value))
    if not HEADER_VALUE.fullmatch(text):
        raise InvalidHttpRequest(
            f"the value of header {name} contains a line break, a control character or a character outside Latin-1"
        )
    return text.strip()


def header_texts(value: Any) -> list[str]:
    """Return a value, or each value of a list, as text. Booleans are written as in JSON: true, not True."""
    values = value if isinstance(value, list) else [value]
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def encode_body(fields: dict[str, Any], content_type: str) -> bytes | None:
    """Return the body as bytes: text unchanged, otherwise a form or JSON, depending on the content type.

    Raises:
        InvalidHttpRequest: when it cannot be encoded.
    """
    body = fields.get("body")
    if body is None:
        return None
    if isinstance(body, dict) and content_type.lower().startswith("application/x-www-form-urlencoded"):
        return urlencode({name: header_texts(value) for name, value in body.items()}, True, errors="replace").encode()
    try:
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidHttpRequest("body cannot be converted to JSON") from None
    return text.encode("utf-8", "replace")


def parse_timeout(fields: dict[str, Any], name: str) -> float:
    """Return a timeout in seconds from a field in milliseconds. 0 means only the total limit.

    Raises:
        InvalidHttpRequest: when it is not a number.
    """
    value = fields.get(name)
    try:
        milliseconds = DEFAULT_TIMEOUT if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        milliseconds = math.nan
    if not 0 <= milliseconds < math.inf:
        raise InvalidHttpRequest(f"{name} must be a number of milliseconds")
    return milliseconds / 1000


def redact_uri(uri: str) -> str:
    """Return an address without its confidential parts: user, password, query and fragment."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_http_uri(uri: str) -> bool:
    """Return True if this is an absolute HTTP or HTTPS address."""
    try:
        parts = urlsplit(uri)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def origin_of(uri: str) -> tuple[str, str | None, int]:
    """Return the origin of an address: scheme, host and port."""
    parts = urlsplit(uri)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme]


def drop_headers(headers: Mapping[str, Any], names: Collection[str]) -> CaseInsensitiveDict:
    """Return the headers without those with these names."""
    return CaseInsensitiveDict({name: value for name, value in headers.items() if str(name).lower() not in names})
