"""The body of a request as its client meant it: decompressed, and text of any charset as UTF-8."""

import codecs
import json
import re
import zlib
from codecs import BOM_UTF8

from ..core.errors import Invalid, PayloadTooLarge, UnsupportedMediaType

GZIP, ZLIB, RAW_DEFLATE = zlib.MAX_WBITS | 16, zlib.MAX_WBITS, -zlib.MAX_WBITS
CHUNK, MAX_MEMBERS = 64 * 1024, 1_000
"""How many bytes are decompressed at once, and the maximum number of concatenated members.

The end of each member copies the rest of its chunk.
"""
UTF_8 = ("utf-8", "utf8", "us-ascii", "ascii")
CHARSETS = re.compile(
    r"utf-(16|32)(-[lb]e)?|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|euc_(jp|kr)|gb(k|2312|18030)|big5|mac-roman"
)
"""Names of Python's codecs. It has others, such as `punycode` and `unicode_escape`, which are no charsets."""


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
        chunk = compressed[at : at + CHUNK]
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
