"""Convert replies to HTTP requests to results of tasks."""

import json
import math
from dataclasses import dataclass
from email.message import Message
from typing import Any

import requests

from conductor_app.workers.http_request import Request
from conductor_app.workers.worker import WorkResult

CHUNK = 1 << 16
MAX_EXCERPT_LENGTH = 1000
FAILURE = "Failed to invoke HTTP task due to:"
# Codecs that Python lists as encodings, but that take quadratic time or produce strings that cannot be encoded.
IGNORED_CODECS = frozenset(("idna", "punycode", "raw_unicode_escape", "unicode_escape", "utf_7"))


class NoReply(Exception):
    """The exchange ended without a reply that can be the output of the task."""


@dataclass(frozen=True)
class Reply:
    """The reply to a request, with its body."""

    request: Request
    response: requests.Response
    content: bytes

    @property
    def outcome(self) -> WorkResult:
        """Return the result: success for 2xx. The `response` of a failure is text, as Conductor's clients expect it."""
        status, text = (
            self.response.status_code,
            decode_body(self.content, self.response.headers.get("content-type", "")),
        )
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

    def _describe_body(self, body: Any) -> dict[str, Any]:
        headers = self.response.raw.headers
        return {
            "statusCode": self.response.status_code,
            "reasonPhrase": self.response.reason or "",
            "headers": {name: headers.getlist(name) for name in headers},
            "body": body,
        }


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
    """Return a finite number.

    Raises:
        ValueError: when JSON cannot represent it.
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
