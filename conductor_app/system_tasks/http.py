"""HTTP tasks, and HTTP_POLL tasks, which repeat their request until the reply meets a condition.

Requests are sent within the operator's limits and through the network guard, redirects included.
"""

import json
import math
import os
import re
import ssl
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from email.message import Message
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import requests
from requests.structures import CaseInsensitiveDict
from urllib3 import exceptions as broken

from ..core.expressions import quote_value
from ..core.masking import REDACTED
from ..core.primitives import JsonValue
from ..core.secret_places import Keys
from ..core.step_types.worker_tasks import HttpPollStep, HttpStep
from ..db.transient_errors import exception_chain, own_error_of_exchange
from ..scripts.pool import ScriptsUnavailable, evaluate
from ..settings import conf
from ..tasks.secrets import confidential_paths
from ..tasks.store import ClaimedAttempt
from .guarded_requests import GuardedSession, require_effective_guard
from .network_guard import AddressRefused, Deadline, Guard, GuardIneffective
from .registry import BuiltInWorker, WorkResult, with_trace

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
REQUEST = "http_request"
DEFAULT_TIMEOUT = 3000
# Headers of the transport. If tasks could set them, they could smuggle a second request into the connection.
TRANSPORT_HEADERS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
PRIVATE_HEADERS = frozenset(("authorization", "cookie", "proxy-authorization"))
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
CHUNK = 1 << 16
MAX_EXCERPT_LENGTH = 1000
FAILURE = "Failed to invoke HTTP task due to:"
# Codecs that Python lists as encodings, but that take quadratic time or produce strings that cannot be encoded.
IGNORED_CODECS = frozenset(("idna", "punycode", "raw_unicode_escape", "unicode_escape", "utf_7"))
REDIRECTS = (301, 302, 303, 307, 308)
MAX_REDIRECTS = 5
TIMEOUT_TEXT = "the exchange took longer than {:g} s"


@dataclass(frozen=True)
class Request:
    method: str
    uri: str
    headers: CaseInsensitiveDict
    body: bytes | None
    timeouts: tuple[float, float]
    is_async: bool
    secret_headers: frozenset[str] = PRIVATE_HEADERS
    has_secret_body: bool = False

    def __str__(self) -> str:
        return f"{self.method} {redact_uri(self.uri)}"

    def redirect_to(self, status: int, location: str) -> "Request":
        """Return the request that follows a redirect. Another origin gets neither secrets nor masked values.

        Raises:
            InvalidHttpRequest: when the target is not an HTTP address, or another origin would get a confidential body.
        """
        uri, headers = urljoin(self.uri, location), self.headers.copy()
        if not is_http_uri(uri):
            raise InvalidHttpRequest("the server redirected to an address that does not begin with http:// or https://")
        is_elsewhere = origin_of(uri) != origin_of(self.uri)
        if is_elsewhere:
            headers = drop_headers(headers, self.secret_headers)
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            method = "HEAD" if self.method == "HEAD" else "GET"
            bodiless = drop_headers(headers, ("content-type",))
            return replace(self, uri=uri, headers=bodiless, method=method, body=None, has_secret_body=False)
        if is_elsewhere and self.has_secret_body:
            raise InvalidHttpRequest(
                f"the server redirected to another origin, {redact_uri(uri)}, and the body has a secret or masked value"
            )
        return replace(self, uri=uri, headers=headers)


@dataclass(frozen=True)
class Reply:
    """The reply to a request, with its body."""

    request: Request
    response: requests.Response
    content: bytes

    @property
    def outcome(self) -> WorkResult:
        """Return the result: success for 2xx. The `response` of a failure is text, as Conductor's clients expect it."""
        status, text = self.response.status_code, self._text()
        if status >= 400:
            status_line = f"{status} {self.response.reason or ''}".strip()[:200] + f" ({self.request})"
            output = {
                "response": f"{status_line}: {text[:MAX_EXCERPT_LENGTH]}" if text else status_line,
                "statusCode": status,
            }
            return WorkResult("FAILED", output, f"{FAILURE} {status_line}")
        output = {"response": self._describe_body(parse_json_body(text))}
        if not 200 <= status < 300:
            return WorkResult("FAILED", output, text[:MAX_EXCERPT_LENGTH] or f"{FAILURE} {status} ({self.request})")
        return WorkResult("IN_PROGRESS" if self.request.is_async else "COMPLETED", output)

    def _text(self) -> str:
        """Return the body without the credentials of the address, which the client has sent as `Basic` and Base64."""
        text = decode_body(self.content, self.response.headers.get("content-type", ""))
        sent = str(self.response.request.headers.get("Authorization") or "")
        is_from_address = "Authorization" not in self.request.headers
        return text.replace(sent.removeprefix("Basic "), REDACTED) if sent and is_from_address else text

    def _describe_body(self, body: JsonValue) -> dict[str, Any]:
        headers = self.response.raw.headers
        return {
            "statusCode": self.response.status_code,
            "reasonPhrase": self.response.reason or "",
            "headers": {name: headers.getlist(name) for name in headers},
            "body": body,
        }


class InvalidHttpRequest(Exception):
    """The input of the task does not describe a valid request."""


class NoReply(Exception):
    """The exchange ended without a reply that can be the output of the task."""


class RequestFailed(Exception):
    """The request has no reply. `outcome`: the result of the task; `is_retryable`: True if a retry may succeed."""

    def __init__(self, outcome: WorkResult, is_retryable: bool = False) -> None:
        super().__init__(outcome.reason)
        self.outcome, self.is_retryable = outcome, is_retryable


@dataclass(frozen=True)
class HttpLimits:
    """Limits of HTTP tasks, set by the operator."""

    allowed_networks: tuple[str, ...] = ()
    total_seconds: float = 60
    max_bytes: int = 10 << 20


def configured_limits() -> HttpLimits:
    """Return the limits in this server's settings."""
    return HttpLimits(conf.http_task_allowed_networks)


class HttpTransport:
    """The connections of the HTTP workers, per thread, and only to addresses that the guard permits."""

    def __init__(self, limits: Callable[[], HttpLimits] = configured_limits) -> None:
        self._limits, self._thread = limits, threading.local()
        self._guard = Guard(lambda: limits().allowed_networks)

    def reply_to(self, inputs: dict[str, Any], confidential: Collection[Keys] = ()) -> Reply:
        """Return the reply to the request in a task's input. `confidential`: the paths of secrets and masked values.

        Raises:
            RequestFailed: when there is no reply.
            OSError: when this server is the cause, for example because it has too many open files.
        """
        try:
            request = parse_request(inputs, confidential)
        except InvalidHttpRequest as error:
            raise RequestFailed(failure_result(str(error))) from error
        limits = self._limits()
        with Deadline(limits.total_seconds) as deadline:
            try:
                return self._exchange(request, limits, deadline)
            except AddressRefused as refusal:
                raise RequestFailed(refusal_result(request, refusal)) from refusal
            except GuardIneffective as error:
                raise RequestFailed(failure_result(str(error)), is_retryable=True) from error
            except CONNECTION_ERRORS as error:
                if own := own_error_of_exchange(error):
                    raise own from None
                reason = TIMEOUT_TEXT.format(limits.total_seconds) if deadline.has_passed else describe_failure(error)
                raise RequestFailed(
                    failure_result(f"{reason} ({request})"), not isinstance(error, InvalidHttpRequest)
                ) from error

    def _exchange(self, request: Request, limits: HttpLimits, deadline: Deadline) -> Reply:
        for _ in range(MAX_REDIRECTS + 1):
            with closing(self._send(request, limits.total_seconds)) as response:
                location = response.headers.get("location")
                if response.status_code not in REDIRECTS or not location:
                    content = read_body(response, limits.max_bytes)
                    # A body without a Content-Length looks complete when the deadline has cut it off.
                    if deadline.has_passed:
                        raise NoReply
                    return Reply(request, response, content)
                request = request.redirect_to(response.status_code, location)
        raise NoReply(f"the server redirected more than {MAX_REDIRECTS} times")

    def _send(self, request: Request, total_seconds: float) -> requests.Response:
        connect_seconds, read_seconds = (min(seconds or total_seconds, total_seconds) for seconds in request.timeouts)
        return self._session().request(
            request.method,
            request.uri,
            headers=request.headers,
            data=request.body,
            timeout=(connect_seconds, read_seconds),
            stream=True,
            allow_redirects=False,
        )

    def _session(self) -> GuardedSession:
        # A forked process must not use the connections of its parent.
        if getattr(self._thread, "pid", None) != os.getpid():
            require_effective_guard()
            self._thread.pid, self._thread.session = os.getpid(), GuardedSession(self._guard)
        return self._thread.session


class Http(BuiltInWorker):
    """Sends the request that the input describes, unless the network guard refuses its address."""

    type = HttpStep.type

    def __init__(self, limits: Callable[[], HttpLimits] = configured_limits) -> None:
        self._transport = HttpTransport(limits)

    def work_on(self, attempt: ClaimedAttempt) -> WorkResult:
        return self._send(traced_inputs(self, attempt), confidential_paths(attempt))

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Return the reply as `response`. A failure is a result with a readable message, not an exception."""
        return self._send(inputs)

    def _send(self, inputs: dict[str, Any], confidential: Collection[Keys] = ()) -> WorkResult:
        try:
            return self._transport.reply_to(inputs, confidential).outcome
        except RequestFailed as failure:
            return failure.outcome


def traced_inputs(worker: BuiltInWorker, attempt: ClaimedAttempt) -> dict[str, Any]:
    """Return the input of an attempt. Its request has the trace of the run as a header, unless it sets that header."""
    inputs = worker.inputs_of(attempt)
    request = inputs.get(REQUEST)
    if request is None:
        return with_trace(inputs, attempt)
    return {**inputs, REQUEST: with_trace(request, attempt)} if isinstance(request, dict) else inputs


def parse_request(inputs: dict[str, Any], confidential: Collection[Keys] = ()) -> Request:
    """Return the request in a task's input: under `http_request`, or the input itself.

    `confidential`: the paths of secrets and masked values in the input.
    """
    fields = inputs.get(REQUEST)
    fields = inputs if fields is None else fields
    if not isinstance(fields, dict):
        raise InvalidHttpRequest("http_request must be an object")
    headers = parse_headers(fields)
    paths = [keys if fields is inputs else keys[1:] for keys in confidential if fields is inputs or keys[0] == REQUEST]
    # The path of a value in an object that is confidential as a whole ends at the object.
    secret_headers = {
        name.lower() for name in headers if any(keys[:2] in ((), ("headers",), ("headers", name)) for keys in paths)
    }
    return Request(
        method=parse_method(fields),
        uri=parse_uri(fields),
        headers=headers,
        body=encode_body(fields, headers.get("content-type", "")),
        timeouts=(parse_timeout(fields, "connectionTimeOut"), parse_timeout(fields, "readTimeOut")),
        is_async=any(str(each.get("asyncComplete")).lower() == "true" for each in (fields, inputs)),
        secret_headers=PRIVATE_HEADERS | secret_headers,
        has_secret_body=any(keys[:1] in ((), ("body",)) for keys in paths),
    )


def parse_method(fields: dict[str, Any]) -> str:
    """Return the method. It is required."""
    method = fields.get("method")
    if not method:
        raise InvalidHttpRequest("method is missing")
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise InvalidHttpRequest(f"method must be one of {', '.join(METHODS)}")
    return method.upper()


def parse_uri(fields: dict[str, Any]) -> str:
    """Return the absolute address."""
    uri = fields.get("uri")
    if not uri:
        raise InvalidHttpRequest("uri is missing")
    if not isinstance(uri, str) or not is_http_uri(uri.strip()):
        raise InvalidHttpRequest("uri must begin with http:// or https:// and name a host")
    return uri.strip()


def parse_headers(fields: dict[str, Any]) -> CaseInsensitiveDict:
    """Return all headers. Those of the task take precedence over `accept` and `contentType`."""
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
    if not HEADER_NAME.fullmatch(name):
        raise InvalidHttpRequest(f"{quote_value(name)} is not a valid header name")
    return name


def validate_header_value(name: str, value: JsonValue) -> str:
    """Return the value of a header as text. Line breaks are refused, because they would start another header."""
    text = ", ".join(header_texts(value))
    if not HEADER_VALUE.fullmatch(text):
        raise InvalidHttpRequest(
            f"the value of header {name} contains a line break, a control character or a character outside Latin-1"
        )
    return text.strip()


def header_texts(value: JsonValue) -> list[str]:
    """Return a value, or each value of a list, as text. Booleans are written as in JSON: true, not True."""
    values = value if isinstance(value, list) else [value]
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def encode_body(fields: dict[str, Any], content_type: str) -> bytes | None:
    """Return the body as bytes: text unchanged, otherwise a form or JSON, depending on the content type."""
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
    """Return a timeout in seconds from a field in milliseconds. 0 means only the total limit."""
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
    return CaseInsensitiveDict({name: value for name, value in headers.items() if str(name).lower() not in names})


def read_body(response: requests.Response, max_bytes: int) -> bytes:
    """Return the decompressed body.

    Raises:
        NoReply: when it exceeds the limit.
    """
    content = bytearray()
    while chunk := response.raw.read1(CHUNK, decode_content=True):
        content += chunk
        if len(content) > max_bytes:
            raise NoReply(f"the body is larger than {max_bytes / (1 << 20):g} MB")
    return bytes(content)


def decode_body(content: bytes, content_type: str) -> str:
    """Return the body as text, in its charset or in UTF-8."""
    header = Message()
    header["content-type"] = content_type
    charset = header.get_content_charset("utf-8").replace("-", "_")
    try:
        text = content.decode("utf_8" if charset in IGNORED_CODECS else charset, "replace")
    except (LookupError, ValueError):
        text = content.decode("utf_8", "replace")
    return text.removeprefix("\ufeff")


def parse_json_body(text: str) -> Any:
    """Return lists, objects and numbers in JSON as values, everything else as text, and an empty body as null."""
    try:
        value = json.loads(text, parse_constant=parse_finite_float, parse_float=parse_finite_float)
    except (ValueError, RecursionError):
        return text or None
    if isinstance(value, (bool, type(None))):
        return text.strip()
    # JSON can contain an escaped lone surrogate, which databases cannot store.
    return (
        json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        if "\\ud" in text.lower()
        else value
    )


def parse_finite_float(text: str) -> float:
    """Return a finite number."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def failure_result(text: str) -> WorkResult:
    """Return the result of a request without a reply."""
    return WorkResult("FAILED", {"response": text}, f"{FAILURE} {text}")


def refusal_result(request: Request, refusal: AddressRefused) -> WorkResult:
    """Return the result of a request to a forbidden address. A retry cannot succeed."""
    rule = "is not a public address, and no network in HTTP_TASK_ALLOWED_NETWORKS contains it"
    text = f"{refusal.address} {rule} ({request})"
    return WorkResult("FAILED_WITH_TERMINAL_ERROR", {"response": text}, f"{FAILURE} {text}")


FAILURE_TEXTS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Callable[[Any], str | None]], ...] = (
    (broken.NameResolutionError, lambda _: "the host's name cannot be resolved"),
    (ssl.SSLCertVerificationError, lambda error: f"the certificate is not trusted: {error.verify_message}"),
    (ssl.SSLError, lambda error: f"TLS failed: {error.reason}"),
    (broken.ReadTimeoutError, lambda _: "the server sent no data within readTimeOut"),
    (TimeoutError, lambda _: "no connection within connectionTimeOut"),
    (broken.DecodeError, lambda _: "the body does not match its Content-Encoding"),
    ((NoReply, InvalidHttpRequest), str),
    (OSError, lambda error: error.strerror),
    ((broken.ProtocolError, HTTPException), lambda _: "the connection was closed before the reply was complete"),
    ((broken.LocationParseError, ValueError), lambda _: "the uri is invalid"),
)
CONNECTION_ERRORS = (
    NoReply,
    InvalidHttpRequest,
    HTTPException,
    broken.HTTPError,
    requests.RequestException,
    OSError,
    ValueError,
)


def describe_failure(error: BaseException) -> str:
    """Return the reason why there is no reply. Messages of libraries may contain secret addresses and are not used."""
    chain = exception_chain(error)
    texts = (describe(each) for kind, describe in FAILURE_TEXTS for each in chain if isinstance(each, kind))
    return next(filter(None, texts), type(chain[0]).__name__)


STRATEGIES = {
    "FIXED": lambda polls: 1,
    "LINEAR_BACKOFF": lambda polls: polls,
    "EXPONENTIAL_BACKOFF": lambda polls: 2 ** min(polls - 1, 32),
}
"""The factor of the interval after a number of polls, by strategy."""
DEFAULT_INTERVAL = 60
MAX_INTERVAL = 86_400


class InvalidPollInput(Exception):
    """The input of the task does not describe a valid poll."""


class HttpPoll(BuiltInWorker):
    """Sends the request once per claim, and releases the attempt until the next poll, so that no thread waits."""

    type = HttpPollStep.type

    def __init__(self, limits: Callable[[], HttpLimits] = configured_limits) -> None:
        self._transport = HttpTransport(limits)

    def work_on(self, attempt: ClaimedAttempt) -> WorkResult:
        return self.perform_again(traced_inputs(self, attempt), attempt.poll_count, confidential_paths(attempt))

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Poll for the first time."""
        return self.perform_again(inputs, 1)

    def perform_again(self, inputs: dict[str, Any], polls: int, confidential: Collection[Keys] = ()) -> WorkResult:
        """Poll once. A reply that meets the condition completes the task; any other becomes its current output."""
        try:
            policy = parse_policy(inputs)
            outcome = self._transport.reply_to(inputs, confidential).outcome
        except InvalidPollInput as error:
            return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, str(error))
        except RequestFailed as failure:
            outcome = failure.outcome
            if not failure.is_retryable:
                return WorkResult(outcome.status, outcome.output | {"polls": polls}, outcome.reason)
        return schedule_next_poll(
            policy, inputs, WorkResult(outcome.status, outcome.output | {"polls": polls}, outcome.reason)
        )


@dataclass(frozen=True)
class PollPolicy:
    """The policy of a poll. `interval`: in seconds. `most`: the maximum number of polls, 0 for no limit."""

    condition: str
    interval: float
    strategy: str
    most: int

    def seconds(self, polls: int) -> int:
        """Return the seconds to wait after a number of polls."""
        return math.ceil(min(self.interval * STRATEGIES[self.strategy](polls), MAX_INTERVAL))


def parse_policy(inputs: dict[str, Any]) -> PollPolicy:
    """Return the policy in the input, at its top level or in `http_request`."""
    request = inputs.get("http_request")
    options = {**(request if isinstance(request, dict) else {}), **inputs}
    condition, strategy = options.get("terminationCondition"), options.get("pollingStrategy") or "FIXED"
    if condition is not None and not isinstance(condition, str):
        raise InvalidPollInput("terminationCondition must be text: a script such as $.output.response.body.done")
    if not isinstance(strategy, str) or strategy.upper() not in STRATEGIES:
        raise InvalidPollInput(f"pollingStrategy must be one of {', '.join(STRATEGIES)}")
    interval = parse_number(options, "pollingInterval", DEFAULT_INTERVAL)
    return PollPolicy(
        (condition or "").strip(), max(interval, 1), strategy.upper(), int(parse_number(options, "maxPollCount", 0))
    )


def parse_number(options: dict[str, Any], name: str, default: float) -> float:
    """Return an option as a number of at least zero."""
    value = options.get(name)
    try:
        number = default if value in (None, "") else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InvalidPollInput(f"{name} must be a number of at least 0, not {value!r:.100}")
    return number


def schedule_next_poll(policy: PollPolicy, inputs: dict[str, Any], reply: WorkResult) -> WorkResult:
    """Return the result of a reply: completed, in progress until the next poll, or failed.

    An error reply can complete the task only if there is a condition.
    """
    output, polls, is_refusal = reply.output, reply.output["polls"], reply.status == "FAILED"
    try:
        is_met, error = (
            is_condition_met(policy.condition, inputs, output) if policy.condition or not is_refusal else (False, "")
        )
    except ScriptsUnavailable:
        # No helper process was available. The next poll evaluates the condition again.
        is_met, error = False, ""
    if error and not is_refusal:
        reason = f"The terminationCondition failed: {error}"
        return WorkResult("FAILED_WITH_TERMINAL_ERROR", output, reason)
    if is_met:
        return WorkResult("COMPLETED", output)
    if policy.most and polls >= policy.most:
        last = f" The last reply: {reply.reason}" if is_refusal else ""
        return WorkResult("FAILED", output, f"The terminationCondition did not become true within {polls} polls.{last}")
    return WorkResult("IN_PROGRESS", output, reply.reason, policy.seconds(polls))


def is_condition_met(condition: str, inputs: dict[str, Any], output: dict[str, Any]) -> tuple[bool, str]:
    """Return True if the reply meets the condition, and an error message. An empty condition is always met."""
    if not condition:
        return True, ""
    answer = evaluate(
        "javascript",
        condition,
        condition_scope(inputs, output),
        # A worker does not know the definition of its task, but most definitions have conditions of their own.
        key=f"condition {condition}",
    )
    if answer.error:
        return False, answer.error
    is_number = isinstance(answer.value, int | float)
    return answer.value is True or (is_number and answer.value > 0), ""


def condition_scope(inputs: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    """Return the scope of the condition as `$`.

    It has the output of the task as `output` and its input as `input`. The parts of the reply, the fields of its body,
    and the fields of the input are also available at the top level. In an error reply, the body is text.
    """
    response = output["response"]
    parts = response if isinstance(response, dict) else {"statusCode": output.get("statusCode"), "body": response}
    fields = parts["body"] if isinstance(parts["body"], dict) else {}
    return {**inputs, **fields, **parts, "input": inputs, "output": {**parts, **output}}
