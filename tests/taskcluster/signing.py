"""Signs requests as Taskcluster's clients do, at the product's time."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import mohawk
from mohawk.base import Resource
from mohawk.bewit import get_bewit
from taskcluster.client import createTemporaryCredentials

from conductor_app.taskcluster.auth.signatures import Caller, HawkRequest, identify_caller
from conductor_app.utils import clock

HOST = "http://tc.example.org:8000"
PING = "/api/queue/v1/ping"


def credentials(id: str, token: str, certificate: str | None = None) -> dict[str, str]:
    """Return credentials in the form that the official client takes."""
    given = {"clientId": id, "accessToken": token}
    return given if certificate is None else {**given, "certificate": certificate}


def issue_temporary(
    issuer: tuple[str, str], scopes: list[str], name: str | None = None, minutes: int = 60
) -> dict[str, str]:
    """Return temporary credentials that the official client derives from the issuer's."""
    now = datetime.fromtimestamp(clock.now() / 1000, UTC)
    made = createTemporaryCredentials(*issuer, now, now + timedelta(minutes=minutes), scopes, name)
    return {**made, "accessToken": made["accessToken"].decode()}


def hawk_ext(given: dict[str, str], authorized: list[str] | None = None) -> str:
    """Return the `ext` value of a Hawk signature."""
    said = {}
    if "certificate" in given:
        said["certificate"] = json.loads(given["certificate"])
    if authorized is not None:
        said["authorizedScopes"] = authorized
    return base64.b64encode(json.dumps(said).encode()).decode()


def _signer(given: dict[str, str]) -> dict[str, str]:
    return {"id": given["clientId"], "key": given["accessToken"], "algorithm": "sha256"}


def sign_request(
    given: dict[str, str], authorized: list[str] | None = None, method: str = "GET", path: str = PING
) -> str:
    """Return the Authorization header of a request without a body."""
    return _authorization_header(given, path, method, authorized, content="", content_type="")


def sign_without_body_hash(given: dict[str, str], method: str, path: str) -> str:
    """Return the Authorization header of a request without a body hash, as the JavaScript client sends it."""
    return _authorization_header(given, path, method, None, always_hash_content=False)


def _authorization_header(
    given: dict[str, str], path: str, method: str, authorized: list[str] | None, **content: Any
) -> str:
    ext, now = hawk_ext(given, authorized), clock.now() // 1000
    sender = mohawk.Sender(_signer(given), HOST + path, method, ext=ext, _timestamp=now, nonce="n", **content)
    return sender.request_header


def sign_bewit(given: dict[str, str], path: str = PING, seconds: int = 900) -> str:
    """Return the path with a bewit."""
    resource = Resource(credentials=_signer(given), method="GET", ext=hawk_ext(given), url=HOST + path, nonce="",
                        timestamp=clock.now() // 1000 + seconds)  # fmt: skip
    return f"{path}{'&' if '?' in path else '?'}bewit={get_bewit(resource).rstrip('=')}"


def identified_caller(given: dict[str, str], authorized: list[str] | None = None, **asked: str) -> Caller:
    """Return the caller that the server identifies from a signed request."""
    header = sign_request(given, authorized, **asked)
    return identify_caller(
        HawkRequest(asked.get("method", "GET"), asked.get("path", PING), "tc.example.org", "8000"), header
    )
