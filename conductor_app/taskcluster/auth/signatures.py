"""Hawk: requests signed with a shared key, in a header or in the URL (taskcluster §6.1, §6.4).

The signature covers the URL byte for byte as the client sent it; a decoded URL cannot be verified.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass

from ..core.errors import Unauthenticated

MAX_SKEW_SECONDS = 15 * 60
HEADER, BEWIT, PAYLOAD = "hawk.1.header", "hawk.1.bewit", "hawk.1.payload"
ATTRIBUTE_PATTERN = re.compile(r'\s*([a-z]+)="([ !#-\[\]-~]*)"\s*(?:,|\Z)')
KNOWN_ATTRIBUTES = {"id", "ts", "nonce", "hash", "ext", "mac", "app", "dlg"}
REQUIRED_ATTRIBUTES = ("id", "ts", "nonce", "mac")
BEWIT_PATTERN = re.compile(r"(.*)([?&])bewit=([^&]*)(?:&(.+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HawkRequest:
    """The signed parts of a request: method, raw target, and the host and port that the client connected to."""

    method: str
    resource: str
    host: str
    port: str


@dataclass(frozen=True, slots=True)
class HawkSignature:
    """The parts of a signature. `hash`, of the payload, and `ext` may be empty."""

    kind: str
    id: str
    ts: str
    nonce: str
    hash: str
    ext: str
    mac: str


def parse_authorization(text: str) -> HawkSignature:
    """Return the signature in an Authorization header.

    Raises:
        Unauthenticated: when the header is invalid or incomplete.
    """
    scheme, _, rest = text.partition(" ")
    if scheme.lower() != "hawk":
        raise Unauthenticated("The Authorization header must use Hawk.")
    attributes: dict[str, str] = {}
    position = 0
    while position < len(rest):
        match = ATTRIBUTE_PATTERN.match(rest, position)
        if match is None or match[1] not in KNOWN_ATTRIBUTES or match[1] in attributes:
            raise Unauthenticated("Invalid Authorization header.")
        attributes[match[1]] = match[2]
        position = match.end()
    if not all(attributes.get(name) for name in REQUIRED_ATTRIBUTES):
        raise Unauthenticated("The Authorization header is incomplete.")
    # `app` and `dlg` would be part of the signed text, but Taskcluster's clients do not send them.
    return HawkSignature(
        HEADER,
        attributes["id"],
        attributes["ts"],
        attributes["nonce"],
        attributes.get("hash", ""),
        attributes.get("ext", ""),
        attributes["mac"],
    )


def parse_bewit(resource: str) -> tuple[HawkSignature, str] | None:
    """Return the bewit of a URL and the URL without it, or None if the URL has no bewit.

    Raises:
        Unauthenticated: when the bewit is invalid.
    """
    match = BEWIT_PATTERN.fullmatch(resource)
    if match is None:
        return None
    before, separator, bewit, after = match.groups()
    try:
        id, expires, mac, ext = decode_base64(bewit).decode().split("\\")
    except ValueError:
        raise Unauthenticated("Invalid bewit in the URL.") from None
    # Other parameters keep their order: some clients put the bewit last, others sort the parameters.
    stripped_resource = f"{before}{separator}{after}" if after else before
    return HawkSignature(BEWIT, id, expires, "", "", ext, mac), stripped_resource


def verify_signature(signature: HawkSignature, request: HawkRequest, key: str, now: int) -> None:
    """Verify that the key has signed this request recently.

    Raises:
        Unauthenticated: when the signature is wrong or too old.
    """
    if not constant_time_equal(compute_mac(signature, request, key), signature.mac):
        raise Unauthenticated("The signature of the request is wrong.")
    seconds = _parse_seconds(signature.ts)
    if signature.kind == BEWIT and seconds * 1000 <= now:
        raise Unauthenticated("The signed URL has expired.")
    if signature.kind == HEADER and abs(now / 1000 - seconds) > MAX_SKEW_SECONDS:
        raise Unauthenticated("The signature is too old or too far in the future. Check the clock of the client.")


def verify_payload(signature: HawkSignature, content_type: str, body: bytes) -> None:
    """Verify that the signature covers this body. A signature without a hash is accepted.

    Raises:
        Unauthenticated: when the signature covers another body.
    """
    if signature.hash and not constant_time_equal(payload_hash(content_type, body), signature.hash):
        raise Unauthenticated("The body does not match the signature.")


def compute_mac(signature: HawkSignature, request: HawkRequest, key: str) -> str:
    """Return the signature of a request with a key."""
    method = "GET" if signature.kind == BEWIT else request.method.upper()
    lines = (signature.kind, signature.ts, signature.nonce, method, request.resource, request.host.lower(),
        request.port,
             signature.hash, signature.ext)  # fmt: skip
    text = "".join(f"{line}\n" for line in lines)
    return base64.b64encode(hmac_sha256(key, text)).decode()


def payload_hash(content_type: str, body: bytes) -> str:
    """Return the hash that represents a body in a signature."""
    media_type = content_type.partition(";")[0].strip().lower()
    hashed = hashlib.sha256(b"%s\n%s\n%s\n" % (PAYLOAD.encode(), media_type.encode("utf-8", "replace"), body))
    return base64.b64encode(hashed.digest()).decode()


def hmac_sha256(key: str, text: str) -> bytes:
    """Return the HMAC-SHA256 of a text."""
    return hmac.digest(key.encode(), text.encode("utf-8", "surrogatepass"), "sha256")


def constant_time_equal(expected: str, actual: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(expected.encode("utf-8", "surrogatepass"), actual.encode("utf-8", "surrogatepass"))


def decode_base64(text: str) -> bytes:
    """Decode base64 in either alphabet, with or without padding.

    Raises:
        ValueError: when the text is invalid.
    """
    standard = text.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _parse_seconds(ts: str) -> int:
    if not (ts.isascii() and ts.isdigit() and len(ts) <= 15):
        raise Unauthenticated("The time of the signature must be a number of seconds.")
    return int(ts)
