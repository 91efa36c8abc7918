"""The client of remote commands, with the variables of the official SDKs, their shared options and their output."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from typing import Any
from urllib.parse import quote

import click
import requests

from ...core.primitives import JsonValue

CONNECT_SECONDS, READ_SECONDS = 10, 60
DEFAULT_URL = "http://localhost:8080/api"


class ServerError(Exception):
    """The server cannot be reached, or refuses a request. The message is meant for the user."""


@dataclass
class ApiClient:
    """Requests to one server. `key` and `secret` are exchanged for a token before the first request."""

    url: str = DEFAULT_URL
    token: str = ""
    key: str = ""
    secret: str = field(default="", repr=False)
    session: requests.Session = field(default_factory=requests.Session, repr=False)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ServerError(f"The address of the server must begin with http:// or https:// (got {self.url!r}).")
        self.url = self.url.rstrip("/")
        if not self.url.endswith("/api"):
            self.url += "/api"

    def get(self, *path: str, **query: Any) -> Any:
        """Return the JSON of a response.

        Raises:
            ServerError: when there is no successful response.
        """
        return self._request(
            "GET", path, params={name: value for name, value in query.items() if value not in ("", None)}
        )

    def post(self, *path: str, body: Any = None, seconds: int = READ_SECONDS) -> Any:
        """Send a JSON document, and return the JSON or the text of the response. `seconds`: to wait for it.

        Raises:
            ServerError: when there is no successful response.
        """
        return self._request("POST", path, json=body, timeout=(CONNECT_SECONDS, seconds))

    def _request(self, method: str, path: tuple[str, ...], **options: Any) -> Any:
        if not self.token and self.key:
            self._request_token()
        address = "/".join([self.url, *(quote(part, safe="") for part in path)])
        return self._send(method, address, **options)

    def _request_token(self) -> None:
        credentials = {"keyId": self.key, "keySecret": self.secret}
        # Not repeated when the server requires no tokens: it answers 404.
        self.key, self.secret = "", ""
        try:
            self.token = self._send("POST", f"{self.url}/token", json=credentials)["token"]
        except NotFoundError:
            self.token = ""

    def _send(self, method: str, address: str, **options: Any) -> Any:
        headers = {"Accept": "application/json"} | ({"X-Authorization": self.token} if self.token else {})
        try:
            options = {"timeout": (CONNECT_SECONDS, READ_SECONDS), **options}
            response = self.session.request(method, address, headers=headers, **options)
        except requests.RequestException as error:
            raise ServerError(f"The server {self.url} cannot be reached: {describe_connection_error(error)}") from error
        if not response.ok:
            raise _refusal(response)
        if not response.content:
            return None
        if response.headers.get("Content-Type", "").startswith("text/plain"):
            return response.text
        try:
            return response.json()
        except ValueError as error:
            raise ServerError(f"{self.url} is not the API of a Conductor server: its response is not JSON.") from error


class NotFoundError(ServerError):
    """There is no such object, or no such address."""


def _refusal(response: requests.Response) -> ServerError:
    """Return the error of an unsuccessful response."""
    try:
        document = response.json()
    except ValueError:
        document = {}
    document = document if isinstance(document, dict) else {}
    message = str(document.get("message") or response.reason or "no message")
    details = "".join(
        f"\n  {each.get('path')}: {each.get('message')}" for each in document.get("validationErrors") or ()
    )
    if response.status_code == requests.codes.unauthorized:
        message += " Set CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET, or CONDUCTOR_AUTH_TOKEN."
    kind = NotFoundError if response.status_code == requests.codes.not_found else ServerError
    return kind(f"{message}{details} (HTTP {response.status_code})")


def describe_connection_error(error: Exception) -> str:
    """Return a short reason: nested exceptions of the HTTP library repeat the address several times."""
    if isinstance(error, requests.Timeout):
        return "it does not respond in time."
    text = str(error)
    for words, sentence in REASONS.items():
        if words in text:
            return sentence
    return text[:200]


REASONS = {
    "Connection refused": "connection refused. Is it running, and is the port right?",
    "Name or service not known": "its name cannot be resolved.",
    "nodename nor servname": "its name cannot be resolved.",
    "Temporary failure in name resolution": "its name cannot be resolved.",
    "CERTIFICATE_VERIFY_FAILED": "its certificate cannot be verified. Set REQUESTS_CA_BUNDLE for a private authority.",
    "WRONG_VERSION_NUMBER": "it does not use TLS. Does its address begin with http://?",
}


TABLE, JSON = "table", "json"


def print_json(document: JsonValue) -> None:
    """Print a document as indented JSON."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def clean_text(value: object) -> str:
    """Return a value on one line, without control characters, which could change the terminal."""
    text = "" if value is None else str(value)
    return "".join(character if character.isprintable() else " " for character in text)


def format_time(moment: Any) -> str:
    """Return a time in the local zone. The API gives milliseconds, or a text in ISO 8601."""
    if not moment:
        return ""
    if isinstance(moment, str):
        try:
            found = datetime.fromisoformat(moment.replace("Z", "+00:00"))
        except ValueError:
            return moment
    else:
        found = datetime.fromtimestamp(moment / 1000, UTC)
    return found.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def server_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the server and of the output. The command receives `server` and `as_json`.

    An error of the server ends the program with its message and the exit status 1.
    """

    @click.option(
        "--url",
        envvar="CONDUCTOR_SERVER_URL",
        default=DEFAULT_URL,
        show_default=True,
        help="Address of the server's API.  [env: CONDUCTOR_SERVER_URL]",
    )
    @click.option("--token", envvar="CONDUCTOR_AUTH_TOKEN", default="", help="Token.  [env: CONDUCTOR_AUTH_TOKEN]")
    @click.option(
        "--output",
        "-o",
        type=click.Choice([TABLE, JSON]),
        default=TABLE,
        show_default=True,
        help="Print text, or the JSON of the API.",
    )
    @wraps(command)
    def with_server(url: str, token: str, output: str, **options: Any) -> None:
        try:
            command(server=_client(url, token), as_json=output == JSON, **options)
        except ServerError as error:
            raise click.ClickException(str(error)) from error

    return with_server


def _client(url: str, token: str) -> ApiClient:
    key, secret = os.environ.get("CONDUCTOR_AUTH_KEY", ""), os.environ.get("CONDUCTOR_AUTH_SECRET", "")
    return ApiClient(url, token, key if not token else "", secret)
