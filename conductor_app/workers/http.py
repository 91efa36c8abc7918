"""HTTP tasks: one request to another system, and its answer as the task's output."""

import json
import math
import os
import re
import ssl
import threading
from contextlib import closing
from dataclasses import dataclass, replace
from email.message import Message
from http.client import HTTPException
from urllib.parse import urlencode, urljoin, urlsplit

import requests
from requests.structures import CaseInsensitiveDict
from urllib3 import exceptions as broken

from conductor_app.workers.guard import AddressRefused, Deadline, Guard, Session
from conductor_app.workers.worker import Outcome, Worker

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
REDIRECTS = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 5
DEFAULT_TIMEOUT = 3000
CHUNK = 1 << 16
LONGEST_EXCERPT = 1000
TOO_LATE = "the exchange took longer than {:g} s"
FAILURE = "Failed to invoke HTTP task due to:"
# What the transport says of itself. Said by a task, it could hide a second request behind the first.
TRANSPORT_HEADERS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
PRIVATE_HEADERS = frozenset(("authorization", "cookie", "proxy-authorization"))
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# Codecs that Python calls encodings and that take quadratic time or make strings nobody can write down again.
NOT_CHARSETS = frozenset(("idna", "punycode", "raw_unicode_escape", "unicode_escape", "utf_7"))


@dataclass(frozen=True)
class Limits:
    """What the operator allows to HTTP tasks."""

    allowed_networks: tuple[str, ...] = ()
    total_seconds: float = 60
    max_bytes: int = 10 << 20


def configured():
    """The limits in this server's settings."""
    from conductor_app import conf

    return Limits(conf.http_task_allowed_networks, conf.http_task_total_seconds, conf.http_task_max_bytes)


class BadRequest(Exception):
    """The task's input does not describe a request."""


class NoAnswer(Exception):
    """The exchange ended without an answer that can be the task's output."""


class Http(Worker):
    """Makes the request that the input describes, unless the guard refuses the address."""

    type = "HTTP"

    def __init__(self, limits=configured):
        self._limits, self._thread = limits, threading.local()
        self._guard = Guard(lambda: limits().allowed_networks)

    def perform(self, inputs):
        """The answer as `response`; every failure is an outcome that a person can read."""
        try:
            request = requested(inputs)
        except BadRequest as error:
            return failed(str(error))
        limits = self._limits()
        with Deadline(limits.total_seconds) as deadline:
            try:
                return self._exchange(request, limits, deadline).outcome
            except AddressRefused as refusal:
                return refused(request, refusal)
            except (NoAnswer, HTTPException, broken.HTTPError, requests.RequestException, OSError, ValueError) as error:
                said = TOO_LATE.format(limits.total_seconds) if deadline.has_passed else cause(error)
                return failed(f"{said} ({request})")

    def _exchange(self, request, limits, deadline):
        for _ in range(MOST_REDIRECTS + 1):
            with closing(self._sent(request, limits.total_seconds)) as response:
                location = response.headers.get("location")
                if response.status_code not in REDIRECTS or not location:
                    content = read(response, limits.max_bytes)
                    # A body without a length ends where the deadline cut it off, and looks complete.
                    if deadline.has_passed:
                        raise NoAnswer
                    return Reply(request, response, content)
                request = request.redirected(response.status_code, location)
        raise NoAnswer(f"the server redirected more than {MOST_REDIRECTS} times")

    def _sent(self, request, total_seconds):
        return self._session().request(
            request.method,
            request.uri,
            headers=request.headers,
            data=request.body,
            timeout=tuple(min(seconds or total_seconds, total_seconds) for seconds in request.timeouts),
            stream=True,
            allow_redirects=False,
        )

    def _session(self):
        # A forked process may not speak over its parent's connections.
        if getattr(self._thread, "pid", None) != os.getpid():
            self._thread.pid, self._thread.session = os.getpid(), Session(self._guard)
        return self._thread.session


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
        return f"{self.method} {shown(self.uri)}"

    def redirected(self, status, location):
        """The request that follows a redirect: another origin learns no credentials."""
        uri, headers = urljoin(self.uri, location), self.headers.copy()
        if not is_web(uri):
            raise NoAnswer("the server redirected to something that is not http")
        if origin(uri) != origin(self.uri):
            headers = without(headers, PRIVATE_HEADERS)
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            method = "HEAD" if self.method == "HEAD" else "GET"
            return replace(self, uri=uri, headers=without(headers, ("content-type",)), method=method, body=None)
        return replace(self, uri=uri, headers=headers)


@dataclass(frozen=True)
class Reply:
    """The answer to a request, its body read."""

    request: Request
    response: requests.Response
    content: bytes

    @property
    def outcome(self):
        """Success for 2xx; a failure's `response` is text, as Conductor's clients expect it."""
        status, text = self.response.status_code, decoded(self.content, self.response.headers.get("content-type", ""))
        if status >= 400:
            said = f"{status} {self.response.reason or ''}".strip()[:200] + f" ({self.request})"
            output = {"response": f"{said}: {text[:LONGEST_EXCERPT]}" if text else said, "statusCode": status}
            return Outcome("FAILED", output, f"{FAILURE} {said}")
        output = {"response": self._described(parsed(text))}
        if not 200 <= status < 300:
            return Outcome("FAILED", output, text[:LONGEST_EXCERPT] or f"{FAILURE} {status} ({self.request})")
        return Outcome("IN_PROGRESS" if self.request.is_async else "COMPLETED", output)

    def _described(self, body):
        headers = self.response.raw.headers
        return {
            "statusCode": self.response.status_code,
            "reasonPhrase": self.response.reason or "",
            "headers": {name: headers.getlist(name) for name in headers},
            "body": body,
        }


def failed(text):
    """The outcome of a request that got no answer."""
    return Outcome("FAILED", {"response": text}, f"{FAILURE} {text}")


def refused(request, refusal):
    """The outcome of a request that may not be made; trying again would not help."""
    rule = "is not a public address, and no network in HTTP_TASK_ALLOWED_NETWORKS contains it"
    text = f"{refusal.address} {rule} ({request})"
    return Outcome("FAILED_WITH_TERMINAL_ERROR", {"response": text}, f"{FAILURE} {text}")


def requested(inputs):
    """The request in a task's input: under `http_request`, or the input itself."""
    given = inputs.get("http_request")
    given = inputs if given is None else given
    if not isinstance(given, dict):
        raise BadRequest("http_request must be an object")
    headers = headers_of(given)
    return Request(
        method=method_of(given),
        uri=uri_of(given),
        headers=headers,
        body=body_of(given, headers.get("content-type", "")),
        timeouts=(seconds_of(given, "connectionTimeOut"), seconds_of(given, "readTimeOut")),
        is_async=str(given.get("asyncComplete", inputs.get("asyncComplete"))).lower() == "true",
    )


def method_of(given):
    """The method, which has no default."""
    method = given.get("method")
    if not method:
        raise BadRequest("the input has no method")
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise BadRequest(f"method must be one of {', '.join(METHODS)}")
    return method.upper()


def uri_of(given):
    """The address, which must be a whole one."""
    uri = given.get("uri")
    if not uri:
        raise BadRequest("the input has no uri")
    if not isinstance(uri, str) or not is_web(uri.strip()):
        raise BadRequest("uri must begin with http:// or https:// and name a host")
    return uri.strip()


def headers_of(given):
    """All headers to send; those that the task names win over `accept` and `contentType`."""
    named = given.get("headers") or {}
    if not isinstance(named, dict):
        raise BadRequest("headers must be an object")
    json_type = "application/json"
    headers = CaseInsensitiveDict({"Accept": given.get("accept") or json_type})
    headers["Content-Type"] = given.get("contentType") or json_type
    headers.update({name: value for name, value in named.items() if value is not None})
    return CaseInsensitiveDict(
        {checked_name(name): checked_value(name, value) for name, value in without(headers, TRANSPORT_HEADERS).items()}
    )


def checked_name(name):
    """A header's name, if it is one."""
    if not HEADER_NAME.fullmatch(name):
        raise BadRequest(f"{name[:100]!r} is not a header's name")
    return name


def checked_value(name, value):
    """A header's value as text. Line ends would begin another header, so they are refused."""
    text = ", ".join(texts_of(value))
    if not HEADER_VALUE.fullmatch(text):
        raise BadRequest(f"the value of header {name} holds a line end, a control character or one beyond Latin-1")
    return text.strip()


def texts_of(value):
    """A value, or each value of a list, as text that another system reads: true, not True."""
    values = value if isinstance(value, list) else [value]
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def body_of(given, content_type):
    """The body's bytes: text as it stands, a form if the content type says so, JSON otherwise."""
    body = given.get("body")
    if body is None:
        return None
    if isinstance(body, dict) and content_type.lower().startswith("application/x-www-form-urlencoded"):
        return urlencode({name: texts_of(value) for name, value in body.items()}, True, errors="replace").encode()
    try:
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BadRequest("body cannot be written as JSON") from None
    return text.encode("utf-8", "replace")


def seconds_of(given, name):
    """A timeout, given in milliseconds; 0 leaves the total limit alone."""
    value = given.get(name)
    try:
        milliseconds = DEFAULT_TIMEOUT if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        milliseconds = math.nan
    if not 0 <= milliseconds < math.inf:
        raise BadRequest(f"{name} must be a number of milliseconds")
    return milliseconds / 1000


def read(response, most):
    """The body, decompressed, if it is no longer than it may be."""
    content = bytearray()
    while chunk := response.raw.read1(CHUNK, decode_content=True):
        content += chunk
        if len(content) > most:
            raise NoAnswer(f"the body is larger than {most / (1 << 20):g} MB")
    return bytes(content)


def decoded(content, content_type):
    """The body as text, in the charset that it names or in UTF-8."""
    header = Message()
    header["content-type"] = content_type
    charset = header.get_content_charset("utf-8").replace("-", "_")
    try:
        text = content.decode("utf_8" if charset in NOT_CHARSETS else charset, "replace")
    except (LookupError, ValueError):
        text = content.decode("utf_8", "replace")
    return text.removeprefix("\ufeff")


def parsed(text):
    """JSON's lists, objects and numbers as values; everything else as text, and nothing as null."""
    try:
        value = json.loads(text, parse_constant=float_within_json, parse_float=float_within_json)
    except (ValueError, RecursionError):
        return text or None
    if isinstance(value, (bool, type(None))):
        return text.strip()
    # Half of a surrogate pair can be spelled in JSON but not be written to a database.
    return (
        json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        if "\\ud" in text.lower()
        else value
    )


def float_within_json(text):
    """A number that can be written again."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


CAUSES = (
    (broken.NameResolutionError, lambda _: "the host's name cannot be resolved"),
    (ssl.SSLCertVerificationError, lambda error: f"the certificate is not trusted: {error.verify_message}"),
    (ssl.SSLError, lambda error: f"TLS failed: {error.reason}"),
    (broken.ReadTimeoutError, lambda _: "the server sent nothing within readTimeOut"),
    (TimeoutError, lambda _: "no connection within connectionTimeOut"),
    (broken.DecodeError, lambda _: "the body is not encoded as its headers say"),
    (NoAnswer, str),
    (OSError, lambda error: error.strerror),
    ((broken.ProtocolError, HTTPException), lambda _: "the connection broke before the answer was complete"),
    ((broken.LocationParseError, ValueError), lambda _: "the uri is not valid"),
)


def cause(error):
    """Why there is no answer, without the addresses that libraries put into their messages: they hold secrets."""
    chain = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    said = (say(each) for kind, say in CAUSES for each in chain if isinstance(each, kind))
    return next(filter(None, said), type(chain[0]).__name__)


def shown(uri):
    """An address without what may be secret in it: user, password, query and fragment."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:200]


def is_web(uri):
    """Whether this is an absolute http address."""
    try:
        parts = urlsplit(uri)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def origin(uri):
    """Whom an address speaks to."""
    parts = urlsplit(uri)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme]


def without(headers, names):
    """The headers whose names are not among these."""
    return CaseInsensitiveDict({name: value for name, value in headers.items() if str(name).lower() not in names})
