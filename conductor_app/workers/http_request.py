"""The request that a task's input describes."""

import json
import math
import re
from dataclasses import dataclass, replace
from urllib.parse import urlencode, urljoin, urlsplit

from requests.structures import CaseInsensitiveDict

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
DEFAULT_TIMEOUT = 3000
# Headers of the transport. Set by a task, they could smuggle a second request behind the first.
TRANSPORT_HEADERS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
PRIVATE_HEADERS = frozenset(("authorization", "cookie", "proxy-authorization"))
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class InvalidHttpRequest(Exception):
    """The task's input does not describe a request."""


@dataclass(frozen=True)
class Request:
    """One request as the task's input describes it."""

    method: str
    uri: str
    headers: CaseInsensitiveDict
    body: bytes | None
    timeouts: tuple[float, float]
    is_async: bool

    def __str__(self):
        return f"{self.method} {redact_uri(self.uri)}"

    def redirect_to(self, status, location):
        """Return the request that follows a redirect. Another origin gets no credentials.

        Raises:
            InvalidHttpRequest: when the target is no http address.
        """
        uri, headers = urljoin(self.uri, location), self.headers.copy()
        if not is_http_uri(uri):
            raise InvalidHttpRequest("the server redirected to something that is not http")
        if origin_of(uri) != origin_of(self.uri):
            headers = drop_headers(headers, PRIVATE_HEADERS)
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            method = "HEAD" if self.method == "HEAD" else "GET"
            return replace(self, uri=uri, headers=drop_headers(headers, ("content-type",)), method=method, body=None)
        return replace(self, uri=uri, headers=headers)


def parse_request(inputs):
    """Return the request in a task's input: under `http_request`, or the input itself.

    Raises:
        InvalidHttpRequest: when it is invalid.
    """
    given = inputs.get("http_request")
    given = inputs if given is None else given
    if not isinstance(given, dict):
        raise InvalidHttpRequest("http_request must be an object")
    headers = parse_headers(given)
    return Request(
        method=parse_method(given),
        uri=parse_uri(given),
        headers=headers,
        body=encode_body(given, headers.get("content-type", "")),
        timeouts=(parse_timeout(given, "connectionTimeOut"), parse_timeout(given, "readTimeOut")),
        is_async=any(str(each.get("asyncComplete")).lower() == "true" for each in (given, inputs)),
    )


def parse_method(given):
    """Return the method, which has no default.

    Raises:
        InvalidHttpRequest: when it is missing or unknown.
    """
    method = given.get("method")
    if not method:
        raise InvalidHttpRequest("the input has no method")
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise InvalidHttpRequest(f"method must be one of {', '.join(METHODS)}")
    return method.upper()


def parse_uri(given):
    """Return the absolute address.

    Raises:
        InvalidHttpRequest: when it is missing or invalid.
    """
    uri = given.get("uri")
    if not uri:
        raise InvalidHttpRequest("the input has no uri")
    if not isinstance(uri, str) or not is_http_uri(uri.strip()):
        raise InvalidHttpRequest("uri must begin with http:// or https:// and name a host")
    return uri.strip()


def parse_headers(given):
    """Return all headers. Those of the task take precedence over `accept` and `contentType`.

    Raises:
        InvalidHttpRequest: when they are no object.
    """
    named = given.get("headers") or {}
    if not isinstance(named, dict):
        raise InvalidHttpRequest("headers must be an object")
    json_type = "application/json"
    headers = CaseInsensitiveDict({"Accept": given.get("accept") or json_type})
    headers["Content-Type"] = given.get("contentType") or json_type
    headers.update({name: value for name, value in named.items() if value is not None})
    return CaseInsensitiveDict(
        {
            validate_header_name(name): validate_header_value(name, value)
            for name, value in drop_headers(headers, TRANSPORT_HEADERS).items()
        }
    )


def validate_header_name(name):
    """Return the name of a header.

    Raises:
        InvalidHttpRequest: when it is invalid.
    """
    if not HEADER_NAME.fullmatch(name):
        raise InvalidHttpRequest(f"{name[:100]!r} is not a header's name")
    return name


def validate_header_value(name, value):
    """Return the value of a header as text. Line breaks would start another header and are refused.

    Raises:
        InvalidHttpRequest: when it is invalid.
    """
    text = ", ".join(header_texts(value))
    if not HEADER_VALUE.fullmatch(text):
        raise InvalidHttpRequest(
            f"the value of header {name} contains a line break, a control character or a character outside Latin-1"
        )
    return text.strip()


def header_texts(value):
    """Yield a value, or each value of a list, as text for other systems: true, not True."""
    values = value if isinstance(value, list) else [value]
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def encode_body(given, content_type):
    """Return the body as bytes: text as it is, a form if the content type requires it, JSON otherwise.

    Raises:
        InvalidHttpRequest: when it cannot be encoded.
    """
    body = given.get("body")
    if body is None:
        return None
    if isinstance(body, dict) and content_type.lower().startswith("application/x-www-form-urlencoded"):
        return urlencode({name: header_texts(value) for name, value in body.items()}, True, errors="replace").encode()
    try:
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidHttpRequest("body cannot be written as JSON") from None
    return text.encode("utf-8", "replace")


def parse_timeout(given, name):
    """Return a timeout in milliseconds; 0 means only the total limit.

    Raises:
        InvalidHttpRequest: when it is no number.
    """
    value = given.get(name)
    try:
        milliseconds = DEFAULT_TIMEOUT if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        milliseconds = math.nan
    if not 0 <= milliseconds < math.inf:
        raise InvalidHttpRequest(f"{name} must be a number of milliseconds")
    return milliseconds / 1000


def redact_uri(uri):
    """Return an address without its confidential parts: user, password, query and fragment."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_http_uri(uri):
    """Return True for an absolute http address."""
    try:
        parts = urlsplit(uri)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def origin_of(uri):
    """Return the origin of an address."""
    parts = urlsplit(uri)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme]


def drop_headers(headers, names):
    """Return the headers whose names are not among these."""
    return CaseInsensitiveDict({name: value for name, value in headers.items() if str(name).lower() not in names})
