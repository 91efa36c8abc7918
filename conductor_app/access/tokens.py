"""Signed links, which grant access to one payload or artifact, for one purpose and a limited time."""

from urllib.parse import quote, urlencode

from django.conf import settings
from django.core.signing import Signer
from django.urls import get_script_prefix
from django.utils.crypto import constant_time_compare

from .. import clock, conf
from ..core.errors import Forbidden

MINUTE_MS = 60_000
DEFAULT_VALID_MS = 15 * MINUTE_MS
UPLOAD, DOWNLOAD = "send artifact", "fetch artifact"
UPLOAD_VALID_MS, DOWNLOAD_VALID_MS = 45 * MINUTE_MS, 30 * MINUTE_MS
"""The lifetime of an address for the upload and for the download of an artifact, in milliseconds."""
SALT = "conductor.payload"
ARTIFACT_PREFIX = "/api/artifacts/"
DOT_SEGMENTS = frozenset((".", ".."))


def is_artifact_host(host: str) -> bool:
    """Return True if browsers load artifacts, and nothing else, from this host, which may have a port."""
    return bool(conf.artifact_url) and host.lower() == conf.artifact_url.partition("://")[2]


def sign_link(path: str, purpose: str, valid_ms: int = DEFAULT_VALID_MS) -> dict[str, str]:
    """Return the query parameters of a signed link."""
    expires = str(clock.now() + valid_ms)
    return {"operation": purpose, "expires": expires, "signature": _sign(path, purpose, expires)}


def artifact_address(task_id: str, number: int, name: str, purpose: str) -> str:
    """Return the address for the upload or download of an artifact's content. Downloads may have their own host."""
    valid_ms = UPLOAD_VALID_MS if purpose == UPLOAD else DOWNLOAD_VALID_MS
    permission = sign_link(artifact_path(task_id, number, name), purpose, valid_ms)
    host = (conf.artifact_url if purpose == DOWNLOAD else "") + get_script_prefix().rstrip("/")
    return f"{host}{ARTIFACT_PREFIX}v1/{task_id}/{number}/{_quote_name(name)}?{urlencode(permission)}"


def _quote_name(name: str) -> str:
    """Return a name for a path. Clients would remove segments such as `..`, so they are no segments of their own."""
    return quote(name, safe="" if DOT_SEGMENTS.intersection(name.split("/")) else "/")


def artifact_path(task_id: str, number: int, name: str) -> str:
    """Return the signed path of an artifact's address."""
    return f"{task_id}/{number}/{name}"


def file_address(run_id: str, file_id: str, operation: str, part: str = "") -> tuple[str, int]:
    """Return the address for the upload (PUT) or download (GET) of a file, and its expiry.

    `part`: the number of the part, for an upload in parts.
    """
    valid_ms = UPLOAD_VALID_MS if operation == "PUT" else DOWNLOAD_VALID_MS
    query = sign_link(file_path(run_id, file_id, part), f"{operation} file", valid_ms)
    permission = {"op": operation, "exp": query["expires"], "sig": query["signature"]}
    part_query = {"part": part} if part else {}
    address = f"/api/files/content/{quote(run_id)}/{quote(file_id)}?{urlencode({**part_query, **permission})}"
    return address, int(query["expires"])


def file_path(run_id: str, file_id: str, part: str = "") -> str:
    """Return the signed path of a file's address."""
    return f"{run_id}/{file_id}/{part}"


def verify_file_link(path: str, operation: str, query: dict[str, str]) -> None:
    """Verify that this server has signed the link to the file for this operation, and that it has not expired.

    Raises:
        Forbidden: when the signature is wrong or the link has expired.
    """
    verify_link(path, f"{operation} file", {"expires": query["exp"], "signature": query["sig"]})


def verify_link(path: str, purpose: str, query: dict[str, str]) -> None:
    """Verify that this server has signed the link for this purpose, and that it has not expired.

    Raises:
        Forbidden: when the signature is wrong or the link has expired.
    """
    expires, signature = query.get("expires", ""), query.get("signature", "")
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    if not any(constant_time_compare(signature, _sign(path, purpose, expires, key)) for key in keys):
        raise Forbidden("The signature of this link is wrong.")
    if int(expires) < clock.now():
        raise Forbidden("This link has expired. Request a new one.")


def _sign(path: str, purpose: str, expires: str, key: str | None = None) -> str:
    return Signer(key=key, salt=SALT).signature(f"{purpose}\n{path}\n{expires}")
