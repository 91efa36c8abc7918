"""Send the requests of HTTP tasks, with redirects, within the operator's limits and through the network guard."""

import os
import ssl
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

import requests
from urllib3 import exceptions as broken

from conductor_app import conf
from conductor_app.transient_errors import own_error_of_exchange
from conductor_app.workers.http_reply import FAILURE, NoReply, Reply, read_body
from conductor_app.workers.http_request import InvalidHttpRequest, Request, parse_request
from conductor_app.workers.network_guard import (
    AddressRefused,
    Guard,
    GuardedSession,
    GuardIneffective,
    require_effective_guard,
)
from conductor_app.workers.socket_deadline import Deadline
from conductor_app.workers.worker import WorkResult

REDIRECTS = (301, 302, 303, 307, 308)
MAX_REDIRECTS = 5
TIMEOUT_TEXT = "the exchange took longer than {:g} s"


@dataclass(frozen=True)
class HttpLimits:
    """Limits of HTTP tasks, set by the operator."""

    allowed_networks: tuple[str, ...] = ()
    total_seconds: float = 60
    max_bytes: int = 10 << 20


def configured_limits() -> HttpLimits:
    """Return the limits in this server's settings."""
    return HttpLimits(conf.http_task_allowed_networks)


class RequestFailed(Exception):
    """The request has no reply. `outcome`: the result of the task; `is_retryable`: True if a retry may succeed."""

    def __init__(self, outcome: WorkResult, is_retryable: bool = False) -> None:
        super().__init__(outcome.reason)
        self.outcome, self.is_retryable = outcome, is_retryable


class HttpTransport:
    """The connections of the HTTP workers, per thread, and only to addresses that the guard permits."""

    def __init__(self, limits: Callable[[], HttpLimits] = configured_limits) -> None:
        self._limits, self._thread = limits, threading.local()
        self._guard = Guard(lambda: limits().allowed_networks)

    def reply_to(self, inputs: dict[str, Any]) -> Reply:
        """Return the reply to the request in a task's input.

        Raises:
            RequestFailed: when there is no reply.
            OSError: when this server is the cause, for example because it has too many open files.
        """
        try:
            request = parse_request(inputs)
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


def exception_chain(error: BaseException) -> list[BaseException]:
    """Return an exception and its causes, the innermost last."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def describe_failure(error: BaseException) -> str:
    """Return the reason why there is no reply. Messages of libraries may contain secret addresses and are not used."""
    chain = exception_chain(error)
    texts = (describe(each) for kind, describe in FAILURE_TEXTS for each in chain if isinstance(each, kind))
    return next(filter(None, texts), type(chain[0]).__name__)
