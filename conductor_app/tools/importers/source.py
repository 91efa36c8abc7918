"""Requests to the server that is imported from.

The operator names the address, so private networks are allowed. Redirects are not followed: they could lead the
credentials, or the server that executes this command, to another host.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.exceptions import InsecureRequestWarning
from urllib3.util import Retry

from ...core.primitives import JsonValue
from ...utils.json_values import loads_repaired

CONNECT_SECONDS = 10
MAX_RETRY_AFTER_SECONDS = 30
MAX_REPLY_BYTES = 1 << 30
CHUNK_BYTES = 1 << 16
RETRIED_STATUS = (429, 502, 503, 504)
NOT_OFFERED = (404, 405, 501)
"""The status of an operation that a server does not have."""
TOKEN_HEADER = "X-Authorization"
ERROR_LENGTH = 300


class SourceError(Exception):
    """The source cannot be read. The message says why, and what to do."""


class NotOffered(SourceError):
    """The source does not have this operation."""


class ConnectionBroke(SourceError):
    """The connection ended before the reply did."""


class AccessDenied(SourceError):
    """The source refuses the credentials, or they do not permit this operation."""


@dataclass(frozen=True)
class SourceOptions:
    """How to reach a server. `token`, or `key` with `secret`, authenticate; `headers` are added to each request."""

    url: str
    token: str = field(default="", repr=False)
    key: str = ""
    secret: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str = ""
    client_certificate: str = ""
    client_key: str = ""
    verifies_certificate: bool = True
    timeout_seconds: float = 30
    retries: int = 4


class TokenAuth(AuthBase):
    """Sends the current token. Its presence also keeps requests from reading a `.netrc` file."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.token:
            request.headers[TOKEN_HEADER] = self.token
        return request


class HttpSource:
    """A server with Conductor's API. Its methods only read, except the exchange of a key for a token."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.url = base_address(options.url)
        self._auth = TokenAuth(options.token)
        self._session = _new_session(options)

    def get(self, path: str, **query: str | int) -> Any:
        """Return the JSON value of a reply.

        Raises:
            NotOffered: when the server does not have the operation.
            AccessDenied: when the server refuses the caller.
            SourceError: when the server cannot be reached, or the reply is not JSON.
        """
        with self._send("GET", path, query) as response:
            return _parse(path, _read_all(response, path))

    def post(self, path: str, body: Any = None) -> Any:
        """Return the JSON value of a reply to a POST.

        Raises:
            NotOffered: when the server does not have the operation.
            AccessDenied: when the server refuses the caller.
            SourceError: when the server cannot be reached, or the reply is not JSON.
        """
        with self._send("POST", path, {}, body) as response:
            return _parse(path, _read_all(response, path))

    def list(self, path: str) -> list[Any]:
        """Return the items of a list.

        Raises:
            NotOffered: when the server does not have the operation.
            AccessDenied: when the server refuses the caller.
            SourceError: when the server cannot be reached, or the reply is not a list.
        """
        with self._send("GET", path, {}) as response:
            body = _read_all(response, path)
            is_page = "html" in response.headers.get("Content-Type", "")
        try:
            items = None if is_page else loads_repaired(body)
        except (ValueError, RecursionError):
            items = None
        if isinstance(items, list):
            return items
        sent = "a web page" if is_page else f"a text that begins with {body[:40].decode(errors='replace')!r}"
        hint = "" if self.url.endswith("/api") else f" Did you mean --from {self.url}/api?"
        raise SourceError(
            f"{self.url}{path} does not answer as Conductor does: it sent {sent} instead of a list in JSON.{hint}"
        )

    def _send(self, method: str, path: str, query: Mapping[str, Any], body: JsonValue = None) -> requests.Response:
        if self.options.key and not self._auth.token:
            self._auth.token = self._new_token()
        response = self._exchange(method, path, query, body)
        if response.status_code == HTTPStatus.UNAUTHORIZED and self.options.key:
            # The token has expired, or the server was restarted with other keys.
            response.close()
            self._auth.token = self._new_token()
            response = self._exchange(method, path, query, body)
        self._require_success(response, path)
        return response

    def _new_token(self) -> str:
        body = {"keyId": self.options.key, "keySecret": self.options.secret}
        self._auth.token = ""
        with self._exchange("POST", "/token", {}, body) as response:
            if response.status_code in NOT_OFFERED:
                raise AccessDenied(f"{self.url} has no access keys (POST /token answers {response.status_code}).")
            if response.status_code in (400, 401, 403):
                raise AccessDenied(f"{self.url} refuses the access key {self.options.key}.")
            self._require_success(response, "/token")
            reply = _parse("/token", _read_all(response, "/token"))
        token = reply.get("token") if isinstance(reply, dict) else None
        if not isinstance(token, str) or not token:
            raise SourceError(f"{self.url}/token sent no token.")
        return token

    def _exchange(self, method: str, path: str, query: Mapping[str, Any], body: JsonValue) -> requests.Response:
        try:
            return self._session.request(
                method,
                self.url + path,
                params=query,
                json=body,
                auth=self._auth,
                # Set for each request, because a session prefers the certificates that the environment names.
                verify=(self.options.ca_file or True) if self.options.verifies_certificate else False,
                stream=True,
                allow_redirects=False,
                timeout=(min(CONNECT_SECONDS, self.options.timeout_seconds), self.options.timeout_seconds),
            )
        except requests.exceptions.SSLError as error:
            raise SourceError(
                f"The certificate of {self.url} was refused: {_say(error)}. For an authority of your own: --ca-file."
            ) from None
        except (requests.RequestException, OSError, ValueError) as error:
            raise SourceError(f"{self.url} cannot be reached: {_say(error)}.") from None

    def _require_success(self, response: requests.Response, path: str) -> None:
        status = response.status_code
        if status < 300:
            return
        with response:
            message = _error_message(response)
            if 300 <= status < 400:
                target = response.headers.get("Location", "another address")
                raise SourceError(
                    f"{self.url}{path} redirects to {target}. Redirects are not followed: name that server."
                )
            if status in (401, 403):
                raise AccessDenied(f"{self.url}{path} refuses the caller ({status}). {message}".strip())
            if status in NOT_OFFERED:
                raise NotOffered(f"{self.url}{path} does not exist ({status}). {message}".strip())
            raise SourceError(f"{self.url}{path} answers with status {status}. {message}".strip())


def base_address(url: str) -> str:
    """Return the address of the API. Without a path, it is `/api`.

    Raises:
        SourceError: when the address is not one of HTTP, or contains credentials.
    """
    try:
        parts = urlsplit(url.strip())
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise SourceError(f"The address {url!r} is invalid: {error}.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise SourceError(f"The address must begin with http:// or https:// and name a host (got {url!r}).")
    if parts.username or parts.password:
        raise SourceError("The address must not contain a user or password, which logs would show. Use --header-from.")
    if parts.query or parts.fragment:
        raise SourceError(f"The address must not have a query or a fragment (got {url!r}).")
    path = parts.path.rstrip("/") or "/api"
    return f"{parts.scheme}://{parts.netloc}{path}"


def _new_session(options: SourceOptions) -> requests.Session:
    session = requests.Session()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers.update({"Accept": "application/json", "User-Agent": "conductor-app import", **options.headers})
    if not options.verifies_certificate:
        # The command has warned once; urllib3 would do so for each connection.
        urllib3.disable_warnings(InsecureRequestWarning)
    if options.client_certificate:
        session.cert = (
            (options.client_certificate, options.client_key) if options.client_key else options.client_certificate
        )
    retry = Retry(
        total=options.retries,
        backoff_factor=0.5,
        status_forcelist=RETRIED_STATUS,
        allowed_methods=None,
        raise_on_status=False,
        retry_after_max=MAX_RETRY_AFTER_SECONDS,
    )
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))
    return session


def _read_all(response: requests.Response, path: str) -> bytes:
    received = bytearray()
    try:
        for chunk in response.iter_content(CHUNK_BYTES):
            received += chunk
            if len(received) > MAX_REPLY_BYTES:
                raise SourceError(f"The reply of {path} is larger than {MAX_REPLY_BYTES >> 20} MiB.")
    except requests.RequestException as error:
        raise ConnectionBroke(f"The connection broke while {path} was read: {_say(error)}.") from None
    return bytes(received)


def _parse(path: str, body: bytes) -> Any:
    try:
        return loads_repaired(body) if body.strip() else None
    except (ValueError, RecursionError):
        start = body[:40].decode(errors="replace")
        raise SourceError(f"The reply of {path} is not JSON: it begins with {start!r}.") from None


def _error_message(response: requests.Response) -> str:
    """Return the message in the reply to a refused request, as far as it is one in JSON."""
    try:
        reply = json.loads(next(response.iter_content(CHUNK_BYTES), b""))
    except (ValueError, RecursionError, requests.RequestException):
        return ""
    message = reply.get("message") if isinstance(reply, dict) else None
    return f"It says: {message[:ERROR_LENGTH]}" if isinstance(message, str) else ""


def _say(error: Exception) -> str:
    """Return the innermost reason of an error, without the objects that libraries put around it."""
    reason: Any = error
    while True:
        inner = getattr(reason, "reason", None) or (reason.args[0] if getattr(reason, "args", None) else None)
        if not isinstance(inner, Exception):
            break
        reason = inner
    return str(reason).rpartition(">: ")[2].rpartition("): ")[2].rstrip(".")[:ERROR_LENGTH] or type(error).__name__
