"""What requests of the API contain: query parameters, JSON documents and their fields, uploads.

A body is read as its client meant it: decompressed, and text of any charset as UTF-8.
"""

import codecs
import hashlib
import json
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import Any
from urllib.parse import parse_qsl

from django.core.files.base import File
from django.http import HttpRequest, RawPostDataException
from django.http.request import UnreadablePostError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from ...core.document.fields import DocumentPosition, FieldTable, read_document
from ...core.errors import (
    InputInvalid,
    Invalid,
    PayloadTooLarge,
    UnsupportedMediaType,
    ValidationError,
    ValidationFailed,
)
from ...core.masking import NOT_FROM_CLIENTS, contains_mark
from ...core.primitives import JsonValue
from ...settings import conf
from ...utils.json_values import MAX_DEPTH, find_unreadable, is_too_deep, loads_repaired

TOO_DEEP = f"The request body is nested more than {MAX_DEPTH} levels deep."
CHUNK_BYTES = 64 * 1024
MAX_MEMORY_BYTES = 1024 * 1024
UPLOAD_INTERRUPTED = "The upload broke off before its end."
GZIP, ZLIB, RAW_DEFLATE = zlib.MAX_WBITS | 16, zlib.MAX_WBITS, -zlib.MAX_WBITS
MAX_MEMBERS = 1_000
"""The maximum number of concatenated members. The end of each copies the rest of its chunk."""
UTF_8 = ("utf-8", "utf8", "us-ascii", "ascii")
CHARSETS = re.compile(
    r"utf-(16|32)(-[lb]e)?|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|euc_(jp|kr)|gb(k|2312|18030)|big5|mac-roman"
)
"""Names of Python's codecs. It has others, such as `punycode` and `unicode_escape`, which are no charsets."""


class UnreadableBody(Invalid):
    """The body has values that JSON or this server does not have, such as NaN, or is nested too deeply.

    `document` is the body without them.
    """

    def __init__(self, message: str, document: JsonValue) -> None:
        super().__init__(message)
        self.document = document


def read_bytes(request: HttpRequest) -> bytes:
    """Return the bytes of the body, decompressed.

    Raises:
        Invalid: when the client sent less than it announced
        UnsupportedMediaType: when it is compressed in an unknown way
        PayloadTooLarge: when it is too large.
    """
    content_length(request, conf.max_request_bytes)
    try:
        body = request.body
    except (UnreadablePostError, RawPostDataException):
        raise Invalid("The body of the request could not be read.") from None
    encoding = request.META.get("HTTP_CONTENT_ENCODING")
    return decompress(body, encoding, conf.max_request_bytes) if encoding and body else body


def read_text(request: HttpRequest) -> bytes:
    """Return the body as text in UTF-8, whatever charset the client declares.

    Raises:
        Invalid: as `read_bytes`, or when it is no text in its charset
        UnsupportedMediaType: when the charset is unknown.
    """
    body = read_bytes(request)
    charset = (request.content_params or {}).get("charset")
    return to_utf8(body, charset) if charset else body


def content_length(request: HttpRequest, max_bytes: int) -> int:
    """Return the length of the body in bytes.

    Raises:
        PayloadTooLarge: when it exceeds `max_bytes`
        Invalid: when the header is no number.
    """
    try:
        size = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        raise Invalid("Invalid Content-Length: it must be a number.") from None
    if size > max_bytes:
        raise PayloadTooLarge(f"The body of a request may have at most {max_bytes} bytes.")
    return size


def decompress(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return the body without its content encoding: gzip, deflate, or none.

    Raises:
        UnsupportedMediaType: when the encoding is another one
        PayloadTooLarge: when the decompressed body exceeds `max_bytes`
        Invalid: when the body is not compressed so, incomplete, or in too many parts.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding in ("gzip", "x-gzip"):
        return _inflate(body, encoding, GZIP, max_bytes)
    if encoding == "deflate":
        # Some clients send the data without the header that the name stands for.
        has_header = body[:1] == b"\x78"
        return _inflate(body, encoding, ZLIB if has_header else RAW_DEFLATE, max_bytes)
    raise UnsupportedMediaType(
        f"The Content-Encoding {encoding[:100]!r} is not supported. Send the body as it is, or with gzip or deflate."
    )


def _inflate(body: bytes, encoding: str, window_bits: int, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    compressed, at, size, members = memoryview(body), 0, 0, 0
    decoder = None
    while at < len(body):
        if decoder is None:
            decoder, members = zlib.decompressobj(window_bits), members + 1
        if members > MAX_MEMBERS:
            raise Invalid(f"The body consists of more than {MAX_MEMBERS} parts of {encoding} data. Compress it as one.")
        chunk = compressed[at : at + CHUNK_BYTES]
        try:
            part = decoder.decompress(chunk, max_bytes - size + 1)
        except zlib.error:
            raise Invalid(f"The body is not compressed with {encoding}, as its Content-Encoding says.") from None
        size += len(part)
        if size > max_bytes:
            raise PayloadTooLarge(f"The decompressed body of a request may have at most {max_bytes} bytes.")
        parts.append(part)
        at += len(chunk) - len(decoder.unused_data)
        if decoder.eof:
            decoder = None
    if decoder is not None:
        raise Invalid(f"The body ends within its {encoding} data. Send all of it.")
    return b"".join(parts)


def to_utf8(body: bytes, charset: str) -> bytes:
    """Return text in the charset that a client declared as UTF-8.

    Raises:
        UnsupportedMediaType: when the charset is unknown
        Invalid: when the body is no text in this charset.
    """
    name = charset.strip("\"' ").lower()
    if name in UTF_8:
        return body
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        codec = ""
    if not CHARSETS.fullmatch(codec):
        raise UnsupportedMediaType(f"The charset {charset[:100]!r} is not supported. Send the body as UTF-8.")
    try:
        return body.decode(codec).encode()
    except ValueError:
        raise Invalid(f"The body is not text in the charset {charset[:100]} that its Content-Type declares.") from None


def without_mark(body: bytes) -> bytes:
    """Return text as UTF-8 without a byte order mark. JSON in UTF-16 or UTF-32 is recognized without one, too."""
    if body.startswith(BOM_UTF8):
        return body[len(BOM_UTF8) :]
    encoding = json.detect_encoding(body)
    if encoding == "utf-8":
        return body
    try:
        return body.decode(encoding).removeprefix("\ufeff").encode()
    except ValueError:
        return body


class JsonParser(BaseParser):
    """The body as JSON, whatever type the client declares."""

    media_type = "*/*"

    def parse(self, stream: HttpRequest, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Return the body of a request as a JSON value."""
        return parse_json(read_text(stream))


def read_json(request: HttpRequest | Request) -> Any:
    """Return the body as a JSON value. It is parsed once, unless the request is that of a worker, which reads it once.

    Raises:
        Invalid: when it is missing or invalid.
    """
    return request.data if isinstance(request, Request) else parse_json(read_text(request))


def parse_json(body: bytes) -> Any:
    """Return a JSON value.

    Raises:
        Invalid: when the body is missing or invalid
        UnreadableBody: when it is valid but for single values, or its depth.
    """
    if not body:
        raise Invalid("Required request body is missing.")
    try:
        # A worker whose text was cut within a character has done its work all the same.
        value = loads_repaired(body)
    except (ValueError, RecursionError) as error:
        if (text := without_mark(body)) != body:
            return parse_json(text)
        _refuse_unreadable(body)
        raise Invalid(f"The request body is not valid JSON: {str(error)[:200]}") from None
    if is_too_deep(value, body, MAX_DEPTH):
        raise UnreadableBody(TOO_DEEP, value)
    if contains_mark(body, value):
        raise Invalid(NOT_FROM_CLIENTS)
    return value


def _refuse_unreadable(body: bytes) -> None:
    """Refuse values that cannot be read, by name."""
    try:
        document, found = find_unreadable(body)
    except ValueError:
        return
    if is_too_deep(document, body, MAX_DEPTH):
        raise UnreadableBody(TOO_DEEP, document)
    if found:
        others = f" Other values that cannot be read: {len(found) - 1}." if len(found) > 1 else ""
        raise UnreadableBody(f"The request body cannot be read: {found[0]}{others}", document)


def read_object(request: HttpRequest) -> dict[str, Any]:
    """Return the body as a JSON object."""
    value = read_json(request)
    if not isinstance(value, dict):
        raise Invalid("The request body must be a JSON object.")
    return value


def read_objects(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the body as a list of JSON objects."""
    value = read_json(request)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Invalid("The request body must be a list of JSON objects.")
    return value


def read_texts(request: HttpRequest) -> list[str]:
    """Return the body as a list of texts."""
    value = read_json(request)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Invalid("The request body must be a list of texts.")
    return value


def read_request(
    document: dict[str, Any],
    table: FieldTable,
    path: str,
    check: Callable[[dict, DocumentPosition], None] | None = None,
) -> dict[str, Any]:
    """Return the document with every field converted to its type. `check`: adds errors that concern several fields."""
    position = DocumentPosition(path)
    fields = read_document(document, table, position)
    if check is not None:
        check(fields, position)
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return fields


@contextmanager
def errors_under(path: str) -> Iterator[None]:
    """Prefix the paths of validation errors that are raised inside (api §3.15).

    Raises:
        ValidationFailed: with the prefixed paths
        InputInvalid: with the prefixed paths.
    """
    try:
        yield
    except InputInvalid:
        raise
    except ValidationFailed as failed:
        raise ValidationFailed([ValidationError(_join_paths(path, each.path), each.message, each.value)
                                for each in failed.validation_errors]) from None  # fmt: skip


def _join_paths(path: str, rest: str) -> str:
    return f"{path}{'' if rest.startswith('[') or not rest else '.'}{rest}"


BOOLEAN_BY_WORD = {
    "true": True,
    "on": True,
    "yes": True,
    "1": True,
    "false": False,
    "off": False,
    "no": False,
    "0": False,
}


class QueryParameters:
    """Query parameters of a request. Unknown parameters are ignored."""

    def __init__(self, request: HttpRequest) -> None:
        pairs = parse_qsl(request.META.get("QUERY_STRING", ""), keep_blank_values=True, errors="replace")
        self.values: dict[str, list[str]] = {}
        for name, value in pairs:
            # PostgreSQL keeps no NUL in text.
            self.values.setdefault(name, []).append(value.replace("\0", ""))

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as text."""
        return self.values.get(name, (default,))[0]

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean parameter. An empty value counts as absent."""
        text = self.text(name).strip().lower()
        if not text:
            return default
        if text not in BOOLEAN_BY_WORD:
            raise Invalid(f"Query parameter '{name}' must be true or false, not '{text[:100]}'.")
        return BOOLEAN_BY_WORD[text]

    def integer(self, name: str, default: int, bits: int = 32) -> int:
        """Return an integer parameter. An empty value counts as absent."""
        text = self.text(name).strip()
        return parse_integer(text, f"Query parameter '{name}'", bits) if text else default

    def required(self, name: str) -> str:
        """Return the value of a required parameter."""
        if name not in self.values:
            raise Invalid(f"Required query parameter '{name}' is missing.")
        return self.text(name)

    def texts(self, name: str) -> list[str]:
        """Return all values of a repeated parameter."""
        return [each for value in self.values.get(name, ()) for each in value.split(",") if each]


def parse_integer(text: str, label: str, bits: int = 32) -> int:
    """Return the integer that a text represents."""
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise Invalid(f"{label} must be an integer, not '{text[:100]}'.")
    if not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise Invalid(f"{label} is out of range: '{text}'.")
    return int(text)


class ReceivedFile(File):
    """An uploaded file with its SHA-256 digest."""

    def __init__(self, file: SpooledTemporaryFile, size: int, digest: str) -> None:
        super().__init__(file)
        self.size, self.digest = size, digest


@contextmanager
def receive_body(request: HttpRequest, max_bytes: int) -> Iterator[ReceivedFile]:
    """Receive the body of a request in a temporary file.

    Raises:
        PayloadTooLarge: when it exceeds `max_bytes`
        Invalid: when the client disconnects.
    """
    size, digest = 0, hashlib.sha256()
    with SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES) as file:
        for chunk in _read_chunks(request, max_bytes):
            size += len(chunk)
            if size > max_bytes:
                raise PayloadTooLarge(f"An upload may have at most {max_bytes} bytes.")
            digest.update(chunk)
            file.write(chunk)
        file.seek(0)
        yield ReceivedFile(file, size, digest.hexdigest())


def _read_chunks(request: HttpRequest, max_bytes: int) -> Iterator[bytes]:
    if request.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
        # Django does not read a body without a Content-Length.
        yield from iter(lambda: _read_chunk(request.META["wsgi.input"].read, CHUNK_BYTES), b"")
        return
    remaining = content_length(request, max_bytes)
    while remaining:
        if not (chunk := _read_chunk(request.read, min(remaining, CHUNK_BYTES))):
            raise Invalid(UPLOAD_INTERRUPTED)
        remaining -= len(chunk)
        yield chunk


def _read_chunk(read: Callable[[int], bytes], size: int) -> bytes:
    try:
        return read(size)
    except (UnreadablePostError, OSError):
        raise Invalid(UPLOAD_INTERRUPTED) from None
